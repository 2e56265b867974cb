"""Reading the log. Decides which files make up a version; snapshots, history and caches."""
