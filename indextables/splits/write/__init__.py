"""Arrow batches to splits: indexes, statistics, rows, upload."""
