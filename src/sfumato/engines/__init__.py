"""Engines: each carries a plan out in its own way, and all end in an `Outcome` for `sfumato.publish`."""
