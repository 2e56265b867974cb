"""Data in and out in the forms of other libraries: Arrow, pandas, Polars, DuckDB, files."""
