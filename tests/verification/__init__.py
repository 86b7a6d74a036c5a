"""Rows and schemas that tests of verification share."""
