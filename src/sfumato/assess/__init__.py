"""Measuring what a release still gives and what it gives away; runs at the owner's."""
