"""Measures of what can still be learned, one file each."""
