"""Noise laws, their exact samplers, sensitivities and the arithmetic of privacy loss.

Owns every random bit that protects a person. Draws come from the operating system's
generator and take no seed. Must not know tables, files or the command line.
"""
