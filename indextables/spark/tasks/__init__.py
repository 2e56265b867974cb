"""What runs in Spark's tasks: reading splits, partial aggregates, computed columns."""
