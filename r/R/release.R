# A release folder: what is in it, and its published counts with their ranges.

read_release <- function(folder) {
  manifest <- file.path(folder, "release.json")
  if (!file.exists(manifest)) {
    stop(folder, " is not a release folder: it has no release.json.", call. = FALSE)
  }
  facts <- jsonlite::fromJSON(manifest, simplifyVector = FALSE)
  if (!facts$format %in% 1:2) {
    stop("this package reads releases of format 1 and 2, and ", folder, " has format ",
         facts$format, ".", call. = FALSE)
  }
  release <- list(folder = folder, facts = facts, variables = release_variables(facts))
  release$counts <- read_counts(folder, unlist(release$variables, use.names = FALSE))
  release$tables <- release_tables(facts, release$variables)
  structure(release, class = "countwise_release")
}

print.countwise_release <- function(x, ...) {
  cat("A release of", nrow(x$counts), "counts in the tables",
      paste(names(x$tables), collapse = ", "), "\n")
  cat(x$facts$privacy$promise, "\n")
  invisible(x)
}

ranges <- function(release, table = NULL) {
  counts <- release$counts
  if (is.null(counts$low)) {
    stop("this release has no ranges. To fix, ask for them: infer(folder).", call. = FALSE)
  }
  if (is.null(table)) {
    return(counts)
  }
  if (!table %in% names(release$tables)) {
    stop("there is no table '", table, "'; there are ",
         paste(names(release$tables), collapse = ", "), ".", call. = FALSE)
  }
  counts <- counts[counts$level == table, , drop = FALSE]
  rownames(counts) <- NULL
  counts
}

# Levels of every variable from coarse to fine; a tree is one variable.
release_variables <- function(facts) {
  if (facts$format == 1) {
    return(list(tree = unlist(facts$by)))
  }
  found <- lapply(facts$variables, function(each) unlist(each$levels))
  names(found) <- vapply(facts$variables, function(each) each$name, "")
  found
}

# For every published table the depth of each variable in it; 0 where people are counted together.
release_tables <- function(facts, variables) {
  if (facts$format == 1) {
    names <- vapply(facts$levels, function(each) each$level, "")
  } else {
    names <- vapply(facts$margins, function(each) each$margin, "")
  }
  found <- lapply(names, table_depths, variables = variables)
  names(found) <- names
  found
}

table_depths <- function(name, variables) {
  crossed <- if (name == "total") character() else strsplit(name, "*", fixed = TRUE)[[1]]
  vapply(variables, function(levels) max(0L, match(crossed, levels), na.rm = TRUE), 0L)
}

read_counts <- function(folder, levels) {
  file <- file.path(folder, "counts.csv")
  if (file.exists(file)) {
    kinds <- c(rep("character", length(levels) + 1), "numeric")
    names(kinds) <- c(levels, "level", "count")
    return(utils::read.csv(file, colClasses = kinds, na.strings = "", check.names = FALSE,
                           encoding = "UTF-8"))
  }
  read_parquet_file(file.path(folder, "counts.parquet"), c(levels, "level"))
}

# A Parquet file as a data frame, labels as text; that takes the package arrow.
read_parquet_file <- function(file, labels) {
  if (!file.exists(file)) {
    stop(file, " is missing.", call. = FALSE)
  }
  if (!requireNamespace("arrow", quietly = TRUE)) {
    stop("reading ", file, " takes the package arrow. To fix, install.packages(\"arrow\"), or have ",
         "the file written as CSV.", call. = FALSE)
  }
  found <- as.data.frame(arrow::read_parquet(file))
  for (label in intersect(labels, names(found))) {
    found[[label]] <- as.character(found[[label]])
  }
  found
}
