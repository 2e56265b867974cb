"""Defining, building and dropping indexes of a table.

A definition lives in the log, and once more in the table's configuration, where it outlives writers
that do not know the action. Splits written from then on carry the index inside; ``index_splits``
builds files for the others. A build is a pure function of a split, so it may run twice; the commit
names only files of splits that are still live, and so never conflicts with other writers.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import pyarrow as pa

from indextables.columnindex.building import BuildRunner, BuildTask, IndexRow, build_locally
from indextables.errors import MaintenanceError, StorageError, UnknownColumnError
from indextables.expr import filters
from indextables.expr.bind import bind
from indextables.log.actions import (
    Action,
    AddFile,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    Metadata,
)
from indextables.log.actions.schema_registry import COLUMN_INDEX_PREFIX
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.naming import stored_columns, user_name
from indextables.progress import progress
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.layout import DIRECTORY, new_index_id, sidecar_path
from indextables.splits.lookup.colindex.opening import (
    UNREADABLE,
    IndexRefs,
    forget_indexes,
    open_index,
)
from indextables.splits.lookup.colindex.postings import Rows
from indextables.splits.lookup.colindex.predicates import extract_indexable
from indextables.splits.lookup.colindex.values import require_kind
from indextables.splits.read.access import without_rows
from indextables.splits.read.reader import SplitReader
from indextables.storage.deleting import Kind, Live, delete, sift
from indextables.storage.machine import refuse_to_judge

LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """A defined index."""

    column: str
    id: str
    format: str
    created_time: int
    files: int
    splits: int


@dataclass(frozen=True, slots=True)
class IndexCoverage:
    """How many splits carry the index of a column."""

    column: str
    covered: int
    total: int

    @property
    def percent(self) -> float:
        return 100.0 * self.covered / self.total if self.total else 100.0

    def __str__(self) -> str:
        return f"{self.column}: {self.covered}/{self.total} ({self.percent:.2f}%)"


# -- definitions ----------------------------------------------------------------------------------


@mutates("DEFINE INDEX")
def define_index(log: TransactionLog, column: str) -> DefineIndex:
    """Index this column in all splits written from now on."""
    snapshot = log.snapshot()
    given = _resolved(snapshot, column)
    if given in snapshot.partition_columns:
        raise MaintenanceError(
            f"column '{given}' is a partition column", hint="Its values prune splits already"
        )
    require_kind(snapshot.schema.field(given).type, given)
    (name,) = stored_columns(snapshot.schema, [given])
    made = DefineIndex(
        new_index_id(), name, int(time.time() * 1000), log.config["columnIndex.format"]
    )

    def actions(latest: Snapshot) -> list[Action]:
        if name in latest.indexes.definitions:
            raise MaintenanceError(
                f"Index already exists for column '{given}'",
                path=log.path,
                hint="Use index_splits to complete it, or drop_index first",
            )
        text = json.dumps(made.to_dict(), separators=(",", ":"))
        return [_configured(latest.metadata, {COLUMN_INDEX_PREFIX + name: text}), made]

    log.commit(Transaction(snapshot, "DEFINE INDEX", parameters={"column": name}, actions=actions))
    return made


def _configured(metadata: Metadata, changes: Mapping[str, str | None]) -> Metadata:
    merged = {**metadata.configuration, **changes}
    return replace(metadata, configuration={k: v for k, v in merged.items() if v is not None})


def _resolved(snapshot: Snapshot, column: str) -> str:
    names: list[str] = list(snapshot.schema.names)
    for name in names:
        if name == column:
            return name
    for name in names:
        if name.lower() == column.lower():
            return name
    raise UnknownColumnError.of(column, names)


def _definition(snapshot: Snapshot, column: str) -> DefineIndex:
    """The index of a column; definitions have the names of files."""
    (wanted,) = stored_columns(snapshot.schema, [column])
    for name, definition in snapshot.indexes.definitions.items():
        if name.lower() == wanted.lower():
            return definition
    raise MaintenanceError(
        f"No index found for column '{column}'", hint="Define it with define_index first"
    )


@mutates("DROP INDEX")
def drop_index(log: TransactionLog, column: str) -> IndexRow:
    """Forget an index and delete its files; what splits carry inside stays, unused."""
    snapshot = log.snapshot()
    definition = _definition(snapshot, column)
    name = definition.column

    def actions(latest: Snapshot) -> list[Action]:
        return [without_index(latest, latest.metadata, name), dropping(latest, name)]

    log.commit(Transaction(snapshot, "DROP INDEX", parameters={"column": name}, actions=actions))
    gone = _delete_files(log, snapshot, definition)
    forget_indexes()
    shown = user_name(snapshot.schema, name)
    return IndexRow(log.path, shown, "dropped", size_bytes=0, rows=0, cardinality=len(gone))


def without_index(latest: Snapshot, metadata: Metadata, stored: str) -> Metadata:
    """The metadata without the definition of an index."""
    if stored not in latest.indexes.definitions:
        raise MaintenanceError(f"the index of '{stored}' was dropped meanwhile")
    return _configured(metadata, {COLUMN_INDEX_PREFIX + stored: None})


def dropping(latest: Snapshot, stored: str) -> DropIndex:
    """The action that drops the index of a column, by its name in files."""
    known = latest.indexes.definitions[stored]
    return DropIndex(known.id, stored, int(time.time() * 1000))


def _delete_files(log: TransactionLog, snapshot: Snapshot, dropped: DefineIndex) -> list[str]:
    """Delete the files that the log names for an index; what is none of its files stays."""
    named = [(c, f.path) for (c, _), f in snapshot.indexes.files.items()]
    others = Live(path for column, path in named if column != dropped.column)
    mine = [path for column, path in named if column == dropped.column]
    files, refused = sift(Kind.SIDECAR, mine, others)
    for refusal in refused:
        LOG.warning("the log names an index file of %s, left alone: %s", dropped.column, refusal)
    try:
        delete(log.store, Kind.SIDECAR, files, others)
    except StorageError as error:
        LOG.warning("index files are left to PURGE: %s", error)
        return []
    return files


def indexes(snapshot: Snapshot) -> list[IndexInfo]:
    """The defined indexes."""
    counts: dict[str, int] = {}
    named = list(snapshot.indexes.files)
    places = snapshot.indices_of([split for _, split in named])
    for (column, _), place in zip(named, places.tolist(), strict=True):
        counts[column] = counts.get(column, 0) + (place >= 0)
    return [
        IndexInfo(
            user_name(snapshot.schema, c),
            d.id,
            d.format,
            d.created_time,
            counts.get(c, 0),
            snapshot.num_files,
        )
        for c, d in snapshot.indexes.definitions.items()
    ]


# -- building -------------------------------------------------------------------------------------


def create_index(
    log: TransactionLog, column: str, *, run: BuildRunner | None = None
) -> list[IndexRow]:
    """Define the index and build it for all splits."""
    define_index(log, column)
    return index_splits(log, columns=[column], run=run)


def rebuild_index(
    log: TransactionLog, column: str, *, run: BuildRunner | None = None
) -> list[IndexRow]:
    """Rebuild the index of a column for all splits."""
    return index_splits(log, columns=[column], force=True, run=run)


def index_splits(
    log: TransactionLog,
    *,
    columns: Sequence[str] | None = None,
    scope: frozenset[str] | None = None,
    force: bool = False,
    dry_run: bool = False,
    run: BuildRunner | None = None,
) -> list[IndexRow]:
    """Build the defined indexes where they are missing (all of them with ``force``).

    ``scope`` limits the work to some splits, ``run`` says where tasks run (in threads of this
    process where not given). One row for each column and split.
    """
    snapshot = log.snapshot() if dry_run else log.writable_snapshot()
    definitions = list(snapshot.indexes.definitions.values())
    if columns is not None:
        definitions = [_definition(snapshot, column) for column in columns]
    files = [f for f in snapshot.files() if scope is None or f.path in scope]
    rows: list[IndexRow] = []
    for definition in definitions:
        have, tasks = _work(log, snapshot, definition, files, force)
        rows += have
        if dry_run:
            rows += [
                IndexRow(log.path, t.column, f"would_{_VERBS[t.action]}", t.add.path) for t in tasks
            ]
        elif tasks:
            rows += _build(log, snapshot, definition, tasks, run or build_locally)
    return [replace(row, column=user_name(snapshot.schema, row.column)) for row in rows]


def _work(
    log: TransactionLog,
    snapshot: Snapshot,
    definition: DefineIndex,
    files: Sequence[AddFile],
    force: bool,
) -> tuple[list[IndexRow], list[BuildTask]]:
    """What is there already, and what is to be built."""
    rows, tasks = [], []
    column = definition.column
    names = (*snapshot.stored_partition_columns, column)
    schema = pa.schema([snapshot.stored_schema.field(n) for n in names])
    for add in files:
        have = _existing(log, snapshot, definition, add)
        if have is not None and not force:
            rows.append(have)
            continue
        action = "created" if have is None else "rebuilt"
        tasks.append(
            BuildTask(log.store, log.config, schema, log.path, definition.id, column, add, action)
        )
    return rows, tasks


_VERBS = {"created": "create", "rebuilt": "rebuild"}


def _existing(
    log: TransactionLog, snapshot: Snapshot, definition: DefineIndex, add: AddFile
) -> IndexRow | None:
    """The index a split has already, if it can be opened."""
    column = definition.column
    refs = IndexRefs.of(snapshot, [add.path]) or IndexRefs()
    reader = SplitReader.open(log.store, add, config=log.config)
    try:
        index, place = open_index(log.store, reader, column, refs, log.config)
    except UNREADABLE as error:
        refuse_to_judge(error, path=add.path)
        return None
    if index is None or (place and "!" not in place and (column, add.path) not in refs.sidecars):
        return None
    named = refs.sidecars.get((column, add.path))
    size = named[1] if named else _member_size(reader, place)
    return IndexRow(
        log.path, column, "unchanged", add.path, place, index.cardinality, index.num_rows, size
    )


def _member_size(reader: SplitReader, place: str) -> int:
    start, end = reader.source.range_of(place.rsplit("!", 1)[-1])
    return end - start


def _build(
    log: TransactionLog,
    snapshot: Snapshot,
    definition: DefineIndex,
    tasks: Sequence[BuildTask],
    run: BuildRunner,
) -> list[IndexRow]:
    rows, files = [], []
    with progress(f"index of {definition.column}", len(tasks)) as bar:
        for row, file in run(tasks):
            rows.append(row)
            files.append(file)
            bar.advance(1)
    forget_indexes()

    def actions(latest: Snapshot) -> list[Action]:
        known = latest.indexes.definitions.get(definition.column)
        if known is None or known.id != definition.id:
            raise MaintenanceError(f"the index of '{definition.column}' was dropped meanwhile")
        places = latest.indices_of([f.split for f in files])
        live = tuple(f for f, place in zip(files, places, strict=True) if place >= 0)
        magic = "BBIDX001" if log.config["columnIndex.format"] == "bbidx1" else "BBIDX002"
        return [IndexBlocks(definition.id, definition.column, magic, live)]

    log.commit(
        Transaction(
            snapshot,
            "INDEX SPLITS",
            parameters={"column": definition.column, "splits": len(files)},
            actions=actions,
        )
    )
    return rows


# -- questions ------------------------------------------------------------------------------------


def index_coverage(
    log: TransactionLog, column: str | None = None
) -> IndexCoverage | list[IndexCoverage]:
    """How many splits carry the index of a column, or of each column."""
    snapshot = log.snapshot()
    if column is None:
        return [_coverage(log, snapshot, d) for d in snapshot.indexes.definitions.values()]
    return _coverage(log, snapshot, _definition(snapshot, column))


def _coverage(log: TransactionLog, snapshot: Snapshot, definition: DefineIndex) -> IndexCoverage:
    have = sum(_existing(log, snapshot, definition, add) is not None for add in snapshot.files())
    return IndexCoverage(user_name(snapshot.schema, definition.column), have, snapshot.num_files)


def index_lookup(
    log: TransactionLog, column: str, *, eq: Any = None, isin: Any = None, between: Any = None
) -> dict[str, Rows]:
    """Row numbers by split, from the index of a column alone; splits with none are left out."""
    snapshot = log.snapshot()
    stored = _definition(snapshot, column).column
    name = user_name(snapshot.schema, stored)
    given: list[Any] = []
    if eq is not None:
        given.append(filters.EqualTo(name, eq))
    if isin is not None:
        given.append(filters.In(name, tuple(isin)))
    if between is not None:
        low, high = between
        given += [filters.GreaterThanOrEqual(name, low), filters.LessThanOrEqual(name, high)]
    if not given:
        raise MaintenanceError("nothing to look up", hint="Give eq=, isin= or between=")
    predicate = bind(given, snapshot.schema, partition_columns=snapshot.partition_columns)
    asked = extract_indexable(predicate)
    if not asked:
        return {}
    found = {}
    for add in snapshot.files():
        rows = _required_index(log, snapshot, stored, add).lookup(asked[0].predicate)
        gone = SplitReader.open(log.store, add, config=log.config).deleted
        if gone is not None:
            rows = without_rows(rows, gone)
        if len(rows):
            found[add.path] = rows
    return found


def _required_index(
    log: TransactionLog, snapshot: Snapshot, column: str, add: AddFile
) -> ColumnIndex:
    refs = IndexRefs.of(snapshot, [add.path]) or IndexRefs()
    reader = SplitReader.open(log.store, add, config=log.config)
    index, _ = open_index(log.store, reader, column, refs, log.config)
    if index is None:
        raise MaintenanceError(
            f"a split has no index of column '{column}'",
            path=add.path,
            hint="Run index_splits first",
        )
    return index


@mutates("PRUNE INDEXES")
def prune_stale_indexes(log: TransactionLog) -> int:
    """Delete index files whose split or definition is gone; returns how many."""
    snapshot = log.snapshot()
    live = {add.path for add in snapshot.files()}
    definitions = snapshot.indexes.definitions.values()
    wanted = {sidecar_path(definition.id, path) for definition in definitions for path in live}
    wanted.update(f.path for f in snapshot.indexes.files.values() if f.split in live)
    there = (o.path for o in log.store.list(DIRECTORY, recursive=True))
    stale, _ = sift(Kind.SIDECAR, there, Live(wanted))
    delete(log.store, Kind.SIDECAR, stale, Live(wanted))
    if stale:
        forget_indexes()
    return len(stale)


# -- tables ---------------------------------------------------------------------------------------


def rows_table(rows: Sequence[IndexRow]) -> pa.Table:
    """Rows as a table, in the order of the columns of ``INDEX SPLITS``."""
    kinds = {"str": pa.string(), "int": pa.int64()}
    schema = pa.schema([(f.name, kinds[str(f.type)]) for f in fields(IndexRow)])
    return pa.Table.from_pylist([{n: getattr(r, n) for n in schema.names} for r in rows], schema)


def describe_indexes(log: TransactionLog) -> pa.Table:
    """Every index of every split, and those ``INDEX SPLITS`` would build."""
    return rows_table(index_splits(log, dry_run=True))
