"""Facts to claims to certificate, and its signature."""
