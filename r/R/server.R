# Asking a verification server, by its JSON API: what it has, what a question costs, its answer.

server <- function(url, key) {
  secure <- startsWith(url, "https://")
  own <- grepl("^http://(127\\.0\\.0\\.1|localhost|\\[::1\\])(:|/|$)", url)
  if (!secure && !own) {
    stop("a key is sent over https:// only, or to this machine. To fix, write https://", call. = FALSE)
  }
  needs_httr2()
  structure(list(url = sub("/+$", "", url), key = key), class = "countwise_server")
}

print.countwise_server <- function(x, ...) {
  cat("A verification server of countwise at ", x$url, "\n", sep = "")
  invisible(x)
}

question <- function(dataset, model, claim, epsilon, partitions = 50, family = "ols",
                     mechanism = "lattice", alpha = 1, project = "") {
  list(dataset = dataset, model = model, claim = claim, epsilon = as.character(epsilon),
       partitions = as.integer(partitions), family = family, mechanism = mechanism,
       alpha = as.list(alpha), project = project)
}

datasets <- function(server) call_server(server, "datasets")

budget <- function(server) {
  rows <- lapply(call_server(server, "budget"), function(each) {
    data.frame(scope = each$scope, name = each$name, cap = each$cap, spent = each$spent,
               left = each$left, unit = each$unit)
  })
  do.call(rbind, rows)
}

plan_question <- function(server, question) call_server(server, "plan", body = question)

rehearse <- function(server, question, repetitions = 1) {
  asked <- c(question, list(repetitions = as.integer(repetitions)))
  call_server(server, "rehearse", body = asked)
}

# A question that was sent before with the same submission key is not charged again.
ask <- function(server, question, submission = new_submission()) {
  call_server(server, "jobs", body = question, submission = submission)
}

wait_answer <- function(server, job, timeout = 3600) {
  id <- if (is.list(job)) job$id else job
  path <- paste0("jobs/", id)
  end <- Sys.time() + timeout
  pause <- 0.5
  repeat {
    now <- call_server(server, path)
    if (!now$status %in% c("queued", "running")) break
    if (Sys.time() + pause > end) {
      stop("no answer within ", timeout, " seconds; job ", id, " goes on.", call. = FALSE)
    }
    Sys.sleep(pause)
    pause <- min(1.5 * pause, 10)
  }
  if (now$status != "answered") {
    stop("job ", id, " is ", now$status, "; there is no answer to it.", call. = FALSE)
  }
  call_server(server, paste0(path, "/answer"))
}

# The receipt as the server sent it, to the byte: what its signature is checked against.
save_receipt <- function(server, job, file) {
  id <- if (is.list(job)) job$id else job
  answer <- request_of(server, paste0("jobs/", id, "/receipt"))
  text <- httr2::resp_body_string(httr2::req_perform(answer))
  writeLines(sub("[[:space:]]+$", "", text), file, useBytes = TRUE)
  invisible(file)
}

# Signature and posterior, checked without a network by the program.
check_receipt <- function(file, key = NULL) {
  words <- c("receipt", "check", file, if (!is.null(key)) c("--key", key), "--json")
  jsonlite::fromJSON(paste(countwise(words), collapse = "\n"))
}

server_keys <- function(server) {
  said <- call_server(server, "key")$keys
  data.frame(key = vapply(said, `[[`, "", "key"), since = vapply(said, `[[`, "", "since"))
}

call_server <- function(server, path, body = NULL, submission = NULL) {
  request <- request_of(server, path)
  if (!is.null(body)) request <- httr2::req_body_json(request, body, auto_unbox = TRUE)
  if (!is.null(submission)) {
    request <- httr2::req_headers(request, `Idempotency-Key` = submission)
  }
  httr2::resp_body_json(httr2::req_perform(request))
}

request_of <- function(server, path) {
  request <- httr2::request(paste0(server$url, "/api/v1/", path))
  request <- httr2::req_headers(request, Authorization = paste("Bearer", server$key))
  request <- httr2::req_timeout(request, 60)
  # What is busy is tried again; that is safe, since a submission key is charged once.
  request <- httr2::req_retry(request, max_tries = 5,
                              is_transient = function(said) httr2::resp_status(said) == 503)
  httr2::req_error(request, body = said_by)
}

# The server's own words of a refusal.
said_by <- function(response) {
  tryCatch(httr2::resp_body_json(response)$error$message, error = function(problem) NULL)
}

new_submission <- function() {
  paste(format(openssl::rand_bytes(16)), collapse = "")
}

needs_httr2 <- function() {
  if (!requireNamespace("httr2", quietly = TRUE)) {
    stop("a server is asked with httr2. To fix: install.packages(\"httr2\")", call. = FALSE)
  }
}
