"""Splits: one immutable file each, with an index to search and columns to read."""
