"""From a predicate to row numbers: index terms, hash tables, codes, zones."""
