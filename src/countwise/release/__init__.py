"""From a confidential table to a published one.

Owns the plan, the one function that sees true counts and adds noise (`measure`), and the
release folder with its certificate. Must not simulate, and takes no seed.
"""
