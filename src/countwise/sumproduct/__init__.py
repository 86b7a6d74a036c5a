"""Exact laws of counts on a tree: messages up from the cells and down from the root.

Owns priors of cells, what published values say about a count, and how the children of a parent
hang together. Inference asks it what the true counts can be, and empirical Bayes what they are
on average. Must not know releases, plans or adjustments.
"""
