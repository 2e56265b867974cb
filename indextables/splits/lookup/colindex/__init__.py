"""Column indexes: from a value to the rows of a split, in its bundle or in a file beside it."""
