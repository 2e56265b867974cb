"""Code that runs in Spark tasks: reading splits, partial aggregates, computed columns."""
