"""One split open for reading: bytes, rows, counts, aggregates."""
