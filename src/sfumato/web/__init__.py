"""The local page: a file dropped in, what will happen to it, the verdict, and the release to take away."""
