"""Retention. Decides which log files and data files are no longer needed, and deletes them."""
