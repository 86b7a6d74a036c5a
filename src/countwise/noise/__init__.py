"""Noise laws, their exact samplers, sensitivities and the arithmetic of privacy loss.

Owns every random bit that protects a person. Draws come from the operating system's
generator and take no seed. A tree reaches it as offsets, a table as a number of nodes: it knows
no tables, no files, no databases and no command line.
"""
