"""Reading one split. Decides between index and scan; rows, counts and aggregates."""
