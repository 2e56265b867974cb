"""The stages of pruning, each from a predicate and a snapshot to a verdict per split."""
