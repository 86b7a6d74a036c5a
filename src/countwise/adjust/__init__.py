"""From noisy counts to counts that are non-negative and add up.

One method a file, one protocol (`protocol.Adjustment`). Sees measurements only: everything
here is post-processing and costs no privacy. Must not read files or know of plans.
"""
