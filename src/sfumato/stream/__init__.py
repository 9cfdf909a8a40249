"""Streams: groups maintained as records arrive, in a state that survives crashes, and published by epochs."""
