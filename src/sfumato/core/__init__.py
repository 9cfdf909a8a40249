"""Foundations: errors, randomness, documents, records, group statistics, noise distributions."""
