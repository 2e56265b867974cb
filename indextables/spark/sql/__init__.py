"""Our additions to Spark SQL: operators and functions."""
