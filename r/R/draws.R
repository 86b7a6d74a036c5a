# Joint draws of the true counts, from a file of `countwise infer --draws-out`.

read_draws <- function(file) {
  if (grepl("\\.parquet$", file, ignore.case = TRUE)) {
    found <- read_parquet_file(file, character())
    labels <- grep("^draw_[0-9]+$", names(found), invert = TRUE)
    found[labels] <- lapply(found[labels], as.character)
    return(found)
  }
  heads <- names(utils::read.csv(file, nrows = 1, check.names = FALSE))
  drawn <- grepl("^draw_[0-9]+$", heads)
  if (!any(drawn)) {
    stop(file, " has no columns draw_1, draw_2, \u2026 To fix, have it written by countwise infer ",
         "--draws-out.", call. = FALSE)
  }
  kinds <- ifelse(drawn, "numeric", "character")
  utils::read.csv(file, colClasses = kinds, na.strings = "", check.names = FALSE,
                  encoding = "UTF-8")
}

draw_sums <- function(draws, ...) {
  asked <- list(...)
  drawn <- grepl("^draw_[0-9]+$", names(draws))
  unknown <- setdiff(names(asked), names(draws)[!drawn])
  if (length(unknown) > 0) {
    stop("there is no level '", unknown[1], "'; there are ",
         paste(names(draws)[!drawn], collapse = ", "), ".", call. = FALSE)
  }
  inside <- if (length(asked) == 0) rep(TRUE, nrow(draws)) else chosen_rows(draws, asked)
  colSums(draws[inside, drawn, drop = FALSE])
}
