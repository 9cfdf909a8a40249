"""Randomized answers, as their persons would have sent them [JS07, sec. 3]."""
