# Labels by level: which rows of a table they choose.

# The depth of the finest level that is named, of every variable, with what is asked of each level.
named_levels <- function(variables, asked) {
  levels <- unlist(variables, use.names = FALSE)
  for (variable in setdiff(names(variables), levels)) {
    at <- which(names(asked) == variable)
    names(asked)[at] <- variables[[variable]][length(variables[[variable]])]
  }
  unknown <- setdiff(names(asked), levels)
  if (length(unknown) > 0 || is.null(names(asked)) && length(asked) > 0) {
    stop("there is no level '", paste(unknown, collapse = "', '"), "'; there are ",
         paste(levels, collapse = ", "), ".", call. = FALSE)
  }
  asked
}

named_depths <- function(variables, asked) {
  vapply(variables, function(levels) max(0L, match(names(asked), levels), na.rm = TRUE), 0L)
}

# Which rows have one of the labels asked for, at every level that is named.
chosen_rows <- function(rows, asked) {
  inside <- rep(TRUE, nrow(rows))
  for (level in names(asked)) {
    labels <- rows[[level]]
    known <- unique(labels[!is.na(labels)])
    fits <- character()
    for (each in as.character(asked[[level]])) {
      found <- known[label_fits(known, each)]
      if (length(found) == 0) {
        stop("level '", level, "' has no '", each, "'. One is '", known[1], "'.", call. = FALSE)
      }
      fits <- c(fits, found)
    }
    inside <- inside & labels %in% fits
  }
  if (!any(inside)) {
    stop("no count has all of these labels.", call. = FALSE)
  }
  inside
}

# A star at the start or end of what is asked stands for any letters.
label_fits <- function(labels, asked) {
  if (asked == "*") {
    return(rep(TRUE, length(labels)))
  }
  before <- startsWith(asked, "*")
  after <- endsWith(asked, "*")
  inner <- substr(asked, 1 + before, nchar(asked) - after)
  fits <- labels == asked
  if (before && after) {
    return(fits | grepl(inner, labels, fixed = TRUE))
  }
  if (before) {
    return(fits | endsWith(labels, inner))
  }
  if (after) {
    return(fits | startsWith(labels, inner))
  }
  fits
}
