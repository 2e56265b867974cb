"""Writing splits from Arrow batches. Decides when a split is full and what it contains."""
