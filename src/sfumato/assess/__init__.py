"""Measures utility and disclosure risk of a release; runs at the data owner's."""
