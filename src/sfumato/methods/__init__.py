"""What sanitizes records: condensation, noise, geometric moves, randomized answers."""
