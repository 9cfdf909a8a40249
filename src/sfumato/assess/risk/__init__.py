"""Measures of what is given away, one file each."""
