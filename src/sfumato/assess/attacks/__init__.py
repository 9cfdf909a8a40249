"""Published attacks, one file each, and the frame they slot into."""
