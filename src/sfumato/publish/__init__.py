"""The release: its public and its owner's part, the policy, and the reviewer's check."""
