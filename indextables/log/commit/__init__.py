"""Commits. Decides whether a transaction conflicts with others, and creates its version file."""
