"""Which files of a log nobody needs any more, and deleting them."""
