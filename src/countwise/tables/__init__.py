"""Hierarchies of cells, tables of counts on them, and their files.

Owns what a table is and how it is read and written. Must not draw noise, and must not show a
count in a message or a representation.
"""
