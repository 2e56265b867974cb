"""Additions to Spark SQL. Decides how search operators and bucket functions are rewritten."""
