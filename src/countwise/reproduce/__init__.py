"""The papers' tables and figures, ours beside theirs, with a verdict a number.

Owns the printed numbers, each once, and the functions that compute ours. Every simulation takes
a required `rng`. Draws no page and knows no command line.
"""
