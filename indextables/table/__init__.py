"""Tables without Spark. Decides how ``Table`` opens, writes, scans, counts and searches."""

from indextables.table.table import Table, open_table
from indextables.table.write import write_table

__all__ = ["Table", "open_table", "write_table"]
