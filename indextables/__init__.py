"""A table format for Apache Spark that is searched instead of scanned."""

from indextables.errors import IndexTablesError

__version__ = "0.1.0"

__all__ = ["IndexTablesError", "__version__"]
