"""Sanitizing methods: condensation, chain, noise, geometric transformations, randomized answers."""
