"""The look of every page: one skeleton, one style sheet, charts as inline SVG.

Words and numbers in, HTML out. Knows nothing of releases or posteriors, loads nothing from the
network, and escapes every label.
"""
