"""Finding rows in a split. Decides how a predicate becomes row numbers: terms, codes, zones."""
