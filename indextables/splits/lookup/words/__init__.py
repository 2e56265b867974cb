"""Word directories: the terms of an index, and where the rows of each are."""
