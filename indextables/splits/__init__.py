"""One split: an immutable file with rows and an index. Decides how it is written and read."""
