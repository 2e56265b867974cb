"""From log files to a snapshot: listing, replay, columns of file entries, history, caches."""
