"""The pruning stages. Each decides a verdict for every split, from a predicate and a snapshot."""
