# Sums of counts by labels, with the standard error that the published noise gives them.

sum_counts <- function(release, ..., level = 0.95) {
  asked <- named_levels(release$variables, list(...))
  depths <- named_depths(release$variables, asked)
  covering <- Filter(function(table) all(table >= depths), release$tables)
  if (length(covering) == 0) {
    stop("no published table has all of the levels ", paste(names(asked), collapse = ", "),
         ". To fix, ask with infer(), which adds up the cells.", call. = FALSE)
  }
  rows <- vapply(names(covering), function(name) sum(release$counts$level == name), 0)
  counts <- ranges_or_counts(release, names(covering)[which.min(rows)])
  inside <- chosen_rows(counts, asked)
  count <- sum(counts$count[inside])
  error <- sum_error(release, asked)
  low <- high <- NA_real_
  if (sum(inside) == 1 && level == 0.95 && !is.null(counts$low)) {
    low <- counts$low[inside]
    high <- counts$high[inside]
  } else if (!is.na(error)) {
    reach <- stats::qnorm(0.5 + level / 2) * error
    low <- max(0, ceiling(count - reach))
    high <- max(0, floor(count + reach))
  }
  data.frame(count = count, se = error, low = low, high = high)
}

ranges_or_counts <- function(release, table) {
  release$counts[release$counts$level == table, , drop = FALSE]
}

# The standard error of the least-squares estimate of a sum: with f the cells that are in it and A
# the sum over measured tables of S'S / variance, f'z where A z = f. It needs no noisy count.
sum_error <- function(release, asked) {
  facts <- release$facts
  measured <- if (facts$format == 1) facts$levels else facts$measured
  known <- vapply(measured, function(each) {
    (!is.null(each$exact) && each$exact > 0) || each$law == "exact"
  }, NA)
  joint <- identical(facts$plan$mechanism, "joint")
  if (any(known) || joint) {
    return(NA_real_)
  }
  measured <- Filter(function(each) !is.null(each$scale), measured)
  cells <- release_cells(release)
  if (is.null(cells)) {
    return(NA_real_)
  }
  wanted <- as.numeric(chosen_rows(cells, asked))
  names <- vapply(measured, function(each) if (facts$format == 1) each$level else each$margin, "")
  nodes <- lapply(names, function(name) cell_nodes(cells, release$variables, name))
  weights <- vapply(measured, function(each) 1 / noise_variance(each$law, each$scale), 0)
  solved <- conjugate_gradients(nodes, weights, wanted)
  if (is.null(solved)) NA_real_ else sqrt(sum(wanted * solved))
}

# One row a cell, every level a column: all combinations of the categories that tables show.
release_cells <- function(release) {
  parts <- lapply(release$variables, function(levels) {
    rows <- unique(release$counts[, levels, drop = FALSE])
    rows[!is.na(rows[[length(levels)]]), , drop = FALSE]
  })
  sizes <- vapply(parts, nrow, 0L)
  if (prod(sizes) > 1e6 || any(sizes == 0)) {
    return(NULL)
  }
  places <- expand.grid(lapply(sizes, seq_len))
  columns <- lapply(seq_along(parts), function(i) parts[[i]][places[[i]], , drop = FALSE])
  found <- do.call(cbind, columns)
  names(found) <- unlist(release$variables, use.names = FALSE)
  rownames(found) <- NULL
  found
}

# For every cell the number of the count of a table that it adds to.
cell_nodes <- function(cells, variables, table) {
  depths <- table_depths(table, variables)
  levels <- unlist(Map(function(each, depth) each[seq_len(depth)], variables, depths))
  if (length(levels) == 0) {
    return(rep(1L, nrow(cells)))
  }
  place <- rep(0, nrow(cells))
  for (level in levels) {
    codes <- match(cells[[level]], unique(cells[[level]]))
    place <- match(place * (max(codes) + 1) + codes, unique(place * (max(codes) + 1) + codes))
  }
  place
}

noise_variance <- function(law, scale) {
  parts <- as.numeric(strsplit(as.character(scale), "/", fixed = TRUE)[[1]])
  scale <- if (length(parts) == 2) parts[1] / parts[2] else parts
  ratio <- exp(-1 / scale)
  if (law == "geometric") {
    return(2 * ratio / (1 - ratio)^2)
  }
  if (law == "laplace") {
    return(exp(-1 / (2 * scale)) * (1 + ratio) / (1 - ratio)^2)
  }
  k <- seq(-ceiling(40 * scale) - 1, ceiling(40 * scale) + 1)
  weights <- exp(-k^2 / (2 * scale^2))
  sum(weights * k^2) / sum(weights)
}

# z with A z = wanted, or NULL where the measured tables do not determine the sum.
conjugate_gradients <- function(nodes, weights, wanted, most = 1000, near = 1e-9) {
  sizes <- vapply(nodes, max, 0)
  product <- function(values) {
    found <- numeric(length(values))
    for (i in seq_along(nodes)) {
      sums <- numeric(sizes[i])
      added <- rowsum(values, nodes[[i]], reorder = FALSE)
      sums[as.integer(rownames(added))] <- added
      found <- found + weights[i] * sums[nodes[[i]]]
    }
    found
  }
  solved <- numeric(length(wanted))
  left <- wanted
  towards <- left
  square <- sum(left^2)
  first <- square
  for (step in seq_len(most)) {
    pushed <- product(towards)
    curvature <- sum(towards * pushed)
    if (curvature <= 0) {
      return(NULL)
    }
    solved <- solved + square / curvature * towards
    left <- left - square / curvature * pushed
    last <- square
    square <- sum(left^2)
    if (square <= near^2 * first) {
      return(solved)
    }
    towards <- left + square / last * towards
  }
  NULL
}
