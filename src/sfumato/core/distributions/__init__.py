"""Noise distributions on a declared grid: the only source of privacy noise."""
