"""Facts to claims to certificate."""
