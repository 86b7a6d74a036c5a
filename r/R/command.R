# Everything else is asked of the program.

countwise <- function(..., command = getOption("countwise.command", "countwise")) {
  arguments <- shQuote(as.character(c(...)))
  complaints <- tempfile()
  on.exit(unlink(complaints))
  said <- suppressWarnings(
    system2(command[1], c(command[-1], arguments), stdout = TRUE, stderr = complaints,
            env = paste0("LD_LIBRARY_PATH=", shQuote(own_library_path())))
  )
  status <- attr(said, "status")
  if (!is.null(status) && status != 0) {
    stop("countwise ended with ", status, ": ",
         paste(readLines(complaints, warn = FALSE), collapse = "\n"), call. = FALSE)
  }
  as.character(said)
}

infer <- function(folder, sums = character(), statements = character(), prior = "none",
                  level = 0.95) {
  asked <- c(rbind(rep("--sum", length(sums)), sums),
             rbind(rep("--statement", length(statements)), statements))
  said <- countwise("infer", folder, asked, "--prior", prior, "--level", level, "--json")
  jsonlite::fromJSON(paste(said, collapse = "\n"))
}

# The search path of libraries without what R put in front for itself, which would give the program
# other libraries than it was built with.
own_library_path <- function() {
  folders <- strsplit(Sys.getenv("LD_LIBRARY_PATH"), ":", fixed = TRUE)[[1]]
  of_r <- startsWith(folders, R.home()) | startsWith(folders, "/usr/lib") | folders == ""
  paste(folders[!of_r], collapse = ":")
}
