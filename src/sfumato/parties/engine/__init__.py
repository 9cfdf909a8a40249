"""The worker that computes on secret shares: numpy, the standard library and spu alone, in its own environment."""
