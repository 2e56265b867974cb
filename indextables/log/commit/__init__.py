"""From a transaction to a version file, against other writers."""
