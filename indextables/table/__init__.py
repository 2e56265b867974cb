"""The Spark-free table: open, write, scan, count, search, history."""

from indextables.table.table import Table, open_table
from indextables.table.write import write_table

__all__ = ["Table", "open_table", "write_table"]
