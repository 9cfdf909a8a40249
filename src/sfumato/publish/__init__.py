"""The release: what leaves, what stays with the owner, what the owner asks of it, and how a reviewer checks it."""
