"""The change feed as Spark reads it: ``.option("readChangeFeed", "true")``, batch and streaming.

The options are those that Delta's users know. A batch says where it starts (``startingVersion`` or
``startingTimestamp``; a moment means the first version of then or later) and may say where it ends
(``endingVersion`` or ``endingTimestamp``, both included; without them, now). A stream starts with
the rows of the table as inserts, unless options say where it starts; then it follows the versions,
and shows deleted and updated rows, which a stream of the table itself cannot.

The driver names pieces of splits (``table.feed``); tasks read them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from indextables.config import parse_int
from indextables.errors import ConfigError, PlanningError
from indextables.log.log import TransactionLog
from indextables.log.read.moments import to_millis
from indextables.log.read.snapshot import Snapshot
from indextables.planner.tasks import deal_out, splits_per_task
from indextables.spark.compat import SupportsTriggerAvailableNow, arrow_schema
from indextables.spark.driver.request import Access, plain_options
from indextables.spark.driver.streaming import FIRST
from indextables.spark.driver.tables import SHARED, worker_store
from indextables.spark.tasks.reading import FULL_BATCH, shaped
from indextables.spark.tasks.stamped import Stamped
from indextables.spark.tasks.worker import settled_worker
from indextables.splits.read.aggregate import gathered
from indextables.splits.read.source import SplitRef
from indextables.table.feed import CHANGE_FIELDS, INSERT, Piece, pieces, read_piece

START = ("startingversion", "startingtimestamp")
END = ("endingversion", "endingtimestamp")
FACTS = frozenset(field.name for field in CHANGE_FIELDS)


class Bounds:
    """Where a feed starts and ends, as options say it."""

    def __init__(self, options: Mapping[str, Any], path: str) -> None:
        given = plain_options(options)
        self.path = path
        self.start = self._one(given, START)
        self.end = self._one(given, END)
        for key in ("versionasof", "timestampasof"):
            if key in given:
                raise ConfigError(
                    f"readChangeFeed cannot be combined with {key}",
                    path=path,
                    hint="Give startingVersion and endingVersion",
                )

    def _one(self, given: Mapping[str, Any], names: Sequence[str]) -> tuple[str, Any] | None:
        found = [(name, given[name]) for name in names if given.get(name) is not None]
        if len(found) > 1:
            raise ConfigError(f"give {names[0]} or {names[1]}, not both", path=self.path)
        return found[0] if found else None

    def versions(self, log: TransactionLog) -> tuple[int, Snapshot]:
        """The first version, and the snapshot of the last."""
        if self.start is None:
            raise ConfigError(
                "the change feed needs startingVersion or startingTimestamp",
                path=self.path,
                hint='Add .option("startingVersion", 0) for everything that the log still has',
            )
        newest = log.snapshot()
        first, last = self.first(log), self._last(log, newest)
        if first > newest.version:
            raise PlanningError(
                f"the change feed starts at version {first}, after the newest one",
                path=self.path,
                version=newest.version,
                hint=f"Give a version up to {newest.version}",
            )
        if last < first:
            raise PlanningError(
                f"the change feed ends at version {last}, before it starts at {first}",
                path=self.path,
                hint="Give an end that is not before the start",
            )
        return first, newest if last == newest.version else log.snapshot(version=last)

    def first(self, log: TransactionLog) -> int:
        """The version that the start means."""
        assert self.start is not None
        name, value = self.start
        if name.endswith("version"):
            return log.snapshot().version + 1 if str(value) == "latest" else _version(name, value)
        moment = _moment(name, value)
        later = [entry.version for entry in log.history() if entry.timestamp >= moment]
        return min(later, default=log.snapshot().version + 1)

    def _last(self, log: TransactionLog, newest: Snapshot) -> int:
        if self.end is None:
            return newest.version
        name, value = self.end
        if name.endswith("version"):
            return min(_version(name, value), newest.version)
        moment = _moment(name, value)
        return max((e.version for e in log.history() if e.timestamp <= moment), default=-1)


def _version(name: str, value: Any) -> int:
    try:
        found = parse_int(value)
    except (ValueError, TypeError):
        found = -1
    if found < 0:
        raise ConfigError(f"{name} must be a version, not '{value}'")
    return found


def _moment(name: str, value: Any) -> int:
    try:
        return int(to_millis(value))
    except ValueError as error:
        raise ConfigError(f"{name} is no moment: {error}") from None


class FeedPartition(InputPartition):  # type: ignore[misc]
    """The pieces that one task reads, in the order of the versions."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        super().__init__(None)
        self.pieces = tuple(pieces)


class _Rows(Stamped):
    """What both readers share: the tasks."""

    access: Access
    output: StructType
    schema: pa.Schema

    def _dealt(self, found: Sequence[Piece]) -> list[FeedPartition]:
        if not found:
            return [FeedPartition(())]
        per_task = splits_per_task(self.access.config, len(found), 2)
        groups = deal_out([piece.split.size or 1 for piece in found], per_task)
        return [FeedPartition([found[i] for i in sorted(group)]) for group in groups]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with settled_worker():
            wanted = arrow_schema(self.output)
            for batch in gathered(self._batches(partition), FULL_BATCH):
                yield shaped(batch, wanted)

    def _batches(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FeedPartition)
        known = {name.lower() for name in self.schema.names}
        columns = [n for n in self.output.fieldNames() if n.lower() in known - FACTS]
        store, config = worker_store(self.access), self.access.config
        for piece in partition.pieces:
            yield from read_piece(store, piece, self.schema, config, columns)


class FeedReader(_Rows, DataSourceReader):  # type: ignore[misc]
    """The feed of a range of versions."""

    def __init__(self, access: Access, output: StructType, options: Mapping[str, Any]) -> None:
        log = SHARED.log(access)
        first, newest = Bounds(options, access.path).versions(log)
        self.access, self.output, self.schema = access, output, newest.schema
        self._pieces = list(pieces(log, first, newest))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pieces": []}

    def partitions(self) -> list[FeedPartition]:
        return self._dealt(self._pieces)


class FeedStream(_Rows, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """The feed as it grows; an offset is the next version to read."""

    def __init__(self, access: Access, output: StructType, options: Mapping[str, Any]) -> None:
        self.access, self.output = access, output
        self.schema = SHARED.log(access).snapshot().schema
        self.bounds = Bounds(options, access.path)
        if self.bounds.end is not None:
            raise ConfigError("a stream of changes has no end", path=access.path)
        self.last_version: int | None = None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last_version = SHARED.log(self.access).snapshot().version

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        log = SHARED.log(self.access)
        if self.bounds.start is None:
            return {"version": log.snapshot().version, FIRST: True}
        return {"version": self.bounds.first(log), FIRST: False}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        newest = SHARED.log(self.access).snapshot().version
        last = newest if self.last_version is None else min(newest, self.last_version)
        after = 0 if start is None else int(start["version"])
        if start is not None and last < after:
            return dict(start)
        return {"version": last + 1, FIRST: False}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[FeedPartition]:
        log, found = SHARED.log(self.access), []
        version = int(start["version"])
        if start[FIRST]:
            found += self._everything(log.snapshot(version=version))
            version += 1
        if version < int(end["version"]):
            found += pieces(log, version, log.snapshot(version=int(end["version"]) - 1))
        return self._dealt(found)

    def _everything(self, snapshot: Snapshot) -> list[Piece]:
        """The rows of a table where the stream starts, as inserts."""
        version, moment = snapshot.version, snapshot.timestamp_ms
        refs = [SplitRef.of(add) for add in snapshot.files()]
        return [Piece(ref, None, INSERT, version, moment) for ref in refs]
