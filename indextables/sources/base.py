"""What a companion asks of the table that it indexes.

A **source** is a table of another format: Delta, Iceberg, or a folder of Parquet files. A
**snapshot** of it is the source at one version, read from its own metadata: columns, data files,
and for each file which of its rows are gone. Nothing here knows about indexes.

Four rules keep answers exact:

- *Rows are addressed by file and position*, counted from the first row of the file. Positions
  are what deletion vectors and position deletes use, and they do not depend on the reader.
- *A file is the same as before only if its path, size and contents token are.* Its deletes have an
  identity of their own: a file whose rows were deleted is re-added under the same path.
- *Columns have identities* that survive renaming: the field id where the format has one, else
  the physical name. A column that was dropped and added again under its name is another column.
- *What is not understood is refused*: a reader feature, a format version, a row filter, a column
  mask, a path outside the declared roots.

Fields inside structs, lists and maps have identities as well. They travel in the metadata of the
Arrow fields in ``SourceColumn.type`` (``nested_field``, ``id_of``, ``names_of``), which Arrow does
not compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

if TYPE_CHECKING:
    from indextables.sources.footer import FooterFacts
    from indextables.sources.rows import ParquetRows

FIELD_ID = b"PARQUET:field_id"
"""Where Arrow's reader of Parquet notes the id that a file gives a field."""
FILE_NAMES = b"indextables.source.names"
UNMAPPED = "\0"
"""What files without ids call a field that is in none of them: no name can be this."""


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A top-level column of a source at one snapshot."""

    name: str
    type: pa.DataType
    identity: str
    """The same text for as long as it is the same column, under whatever name."""
    physical: str
    """What files without field ids call it; empty where such files cannot be read."""
    field_id: int | None = None
    nullable: bool = True
    default: Any = None
    """What rows of files written before the column was added hold."""
    comment: str | None = None
    aliases: tuple[str, ...] = ()
    """Other names that files without field ids may use."""

    @property
    def field(self) -> pa.Field:
        """The column as ``ParquetRows`` gives it: named by its identity."""
        return pa.field(self.identity, self.type, True)

    @property
    def file_names(self) -> tuple[str, ...]:
        """What files that are not read by field id call it, the likeliest first."""
        return (self.physical, *self.aliases)


def nested_field(
    name: str,
    dtype: pa.DataType,
    nullable: bool = True,
    *,
    field_id: int | None = None,
    names: Sequence[str] = (),
) -> pa.Field:
    """A field inside a struct that knows what files call it."""
    notes: dict[bytes, bytes] = {}
    if field_id is not None:
        notes[FIELD_ID] = str(field_id).encode()
    if names and tuple(names) != (name,):
        notes[FILE_NAMES] = json.dumps(list(names)).encode()
    return pa.field(name, dtype, nullable, notes or None)


def id_of(field: pa.Field) -> int | None:
    """The field's id; ``None`` where it has none."""
    found = (field.metadata or {}).get(FIELD_ID)
    return None if found is None or int(found) < 0 else int(found)


def names_of(field: pa.Field) -> tuple[str, ...]:
    """What files that are not read by field id call it."""
    found = (field.metadata or {}).get(FILE_NAMES)
    return tuple(json.loads(found)) if found else (field.name,)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the source's metadata says about one column of one file; ``None`` where it does not.

    ``low`` and ``high`` are values of the column's type as Arrow gives them to Python. No live row
    is outside; no row has to be at them. NaN lies outside of all bounds and proves nothing.
    """

    low: Any = None
    high: Any = None
    nulls: int | None = None
    """NULLs among the physical rows."""


@dataclass(frozen=True, slots=True)
class EqualityDelete:
    """Rows whose columns equal one of these rows are gone; NULL equals NULL here."""

    path: str
    size: int
    columns: tuple[str, ...]
    """Identities of the columns that are compared."""


@dataclass(frozen=True, slots=True)
class Deletes:
    """Which rows of a file are gone, by reference: ``SourceSnapshot`` reads what it refers to."""

    token: str = ""
    """Different whenever the deletes are; empty where there are none."""
    positions: tuple[Any, ...] = ()
    """Deletion vectors and position delete files, in the format's own descriptors."""
    equality: tuple[EqualityDelete, ...] = ()
    count: int | None = None
    """How many rows are gone by position, where the metadata says."""

    def __bool__(self) -> bool:
        return bool(self.positions or self.equality)


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One data file of a snapshot; small and picklable."""

    path: str
    """The whole address, as ``storage`` opens it."""
    size: int
    rows: int | None = None
    """Physical rows, deleted ones included, where the metadata says."""
    token: str = ""
    """What differs between files of one path and size: sequence number, time of change, etag."""
    partition: Mapping[str, Any] = field(default_factory=dict)
    """Values of columns that the file does not hold itself, by identity."""
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    """By identity of the column."""
    deletes: Deletes = Deletes()

    @property
    def key(self) -> tuple[str, int, str]:
        """The same for as long as the file's rows are, deleted ones included."""
        return self.path, self.size, self.token


class SourceSnapshot(Protocol):
    """A source at one version. Picklable, so that tasks can read files and deletes of it."""

    @property
    def format(self) -> str: ...  # "delta", "iceberg" or "parquet"

    @property
    def location(self) -> str: ...

    @property
    def version(self) -> int: ...  # Delta's version, Iceberg's snapshot id, 0 for a folder

    @property
    def timestamp(self) -> int | None: ...  # milliseconds

    @property
    def columns(self) -> Sequence[SourceColumn]: ...

    @property
    def partition_columns(self) -> Sequence[str]: ...  # identities; identity partitions only

    def files(self) -> Iterator[SourceFile]:
        """The live data files, in a fixed order."""
        ...

    def deleted_positions(self, file: SourceFile) -> NDArray[np.uint64] | None:
        """Positions that vectors and position deletes name, ascending; ``None`` for none."""
        ...

    def equality_rows(self, delete: EqualityDelete) -> pa.Table:
        """The rows of an equality delete, columns named by identity."""
        ...

    def rows(self, file: SourceFile, facts: FooterFacts | None = None) -> ParquetRows:
        """The physical rows of a file, deleted ones included, in this snapshot's columns.

        ``facts`` are what ``ParquetRows.facts`` gave for the same ``SourceFile.key`` earlier.
        """
        ...


class SourceTable(Protocol):
    """A source at whatever version is asked."""

    @property
    def format(self) -> str: ...

    @property
    def location(self) -> str: ...

    def snapshot(self, version: int | None = None, timestamp: int | None = None) -> SourceSnapshot:
        """The newest version, or the one that is named."""
        ...
