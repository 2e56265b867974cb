"""The rows of a split: a few scattered rows as cheaply as a full scan is fast.

``RowsWriter`` takes batches and gives a payload (dictionary pages and blocks of every column) and
a small directory. ``RowsReader`` needs the directory and something that reads ranges of the
payload; for each call it works out every range first and asks for all of them at once.

Guarantees: rows come back exactly as written (float bits included), in order; every byte read is
covered by a checksum that is compared on every read, a difference is a ``CorruptFileError`` that
names the column; what a forged file can make a reader allocate is bounded by the file's own size
and the rows asked for. The format is described in ``docs/formats/rows.md``.
"""

from indextables.splits.rows.read import RowsReader
from indextables.splits.rows.write import RowsFile, RowsWriter

__all__ = ["RowsFile", "RowsReader", "RowsWriter"]
