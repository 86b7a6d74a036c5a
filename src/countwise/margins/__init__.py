"""Tables that cross: what overlapping noisy margins say together of every cell and every margin.

Owns least squares over any measured margins and its variances, which counts to measure and at what
share, and whole cells that keep to the margins. Sees noisy counts and public shapes only; reads and
writes no file, and knows no plan.
"""
