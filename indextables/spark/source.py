"""Layer 1: the plain Python data source, right on classic sessions and on Spark Connect.

Spark keeps one reader for all queries of a DataFrame, and filters pushed by one query leak into
the next. So this source never takes filters from Spark: it prunes by what is fixed when the
DataFrame is made (``where``, ``columns``, ``version``, ``timestamp``) and lets Spark check
everything else.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from indextables.errors import UnknownColumnError
from indextables.spark.driver.request import Access, access, asks_for_feed
from indextables.spark.driver.scan import VIRTUAL, Request, Scan
from indextables.table.feed import feed_schema
from indextables.types import schema_to_json


class PythonSource(DataSource):  # type: ignore[misc]
    """The source that layer 2 uses for writes and streams, by its own name."""

    session: ClassVar[dict[str, str]] = {}

    @classmethod
    def name(cls) -> str:
        return "indextables_python"

    @property
    def access(self) -> Access:
        return access(dict(self.options), self._session())

    def _session(self) -> dict[str, str]:
        """The session's settings: those of now where layer 2 sent them along."""
        sent = self.options.get("__session")
        return dict(json.loads(sent)) if sent else self.session

    def _request(self) -> Request:
        zone = self.options.get("__timezone", "UTC")
        return Request(
            {"options": dict(self.options), "session": self._session(), "timeZone": zone}
        )

    def schema(self) -> StructType:
        if "__ask" in self.options:
            return answer(self.options["__verb"], self.options["__ask"])
        request = self._request()
        schema = request.table().snapshot.schema
        if asks_for_feed(self.options):
            return spark_schema(feed_schema(schema))
        chosen = request.access.config["read.columns"]
        return spark_schema(chosen_fields(schema, chosen) if chosen else schema)

    def reader(self, schema: StructType) -> DataSourceReader:
        if "__plan" in self.options:
            return worker_bridge().reader(json.loads(self.options["__plan"]))
        if asks_for_feed(self.options):
            from indextables.spark.driver.feeding import FeedReader

            return FeedReader(self.access, schema, dict(self.options))
        return planned_reader(Scan(self._request()), schema)

    def streamReader(self, schema: StructType) -> Any:  # noqa: N802
        from indextables.spark.driver.feeding import FeedStream
        from indextables.spark.driver.streaming import StreamReader

        if asks_for_feed(self.options):
            return FeedStream(self.access, schema, dict(self.options))
        return StreamReader(self.access, schema, dict(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> Any:
        from indextables.spark.driver.writing import BatchWriter

        return BatchWriter.prepare(self.access, schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> Any:  # noqa: N802
        from indextables.spark.driver.streaming import StreamWriter

        return StreamWriter.start(self.access, schema, overwrite)


class NamedSource(PythonSource):
    """The same under the public name, where layer 2 cannot serve."""

    @classmethod
    def name(cls) -> str:
        return "indextables"


_bridge: Any = None


def worker_bridge() -> Any:
    """The bridge of this worker, for servers where no Python driver lives."""
    global _bridge
    if _bridge is None:
        from indextables.spark.driver.bridge import Bridge

        _bridge = Bridge()
    return _bridge


def answer(verb: str, text: str) -> StructType:
    """The answer to a question of the Java side, in the metadata of a schema."""
    return StructType().add("answer", "string", True, {"answer": worker_bridge().ask(verb, text)})


def planned_reader(scan: Scan, schema: StructType) -> DataSourceReader:
    """A reader of the columns of ``schema``, pruned by what was fixed at load."""
    from indextables.spark.tasks.reading import TaskPartition, TaskReader

    names = [n for n in schema.fieldNames() if n not in VIRTUAL]
    plan = scan.plan(names)
    plan.check_decidable()
    tasks = [TaskPartition(task) for task in scan.tasks(plan)] or [TaskPartition(None)]
    return TaskReader(scan.request.access, scan.table.snapshot.schema, schema, tasks)


def chosen_fields(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    """The named columns, in that order, in the table's spelling."""
    known = {n.lower(): n for n in schema.names}
    for name in names:
        if name.lower() not in known:
            raise UnknownColumnError.of(name, schema.names)
    return pa.schema([schema.field(known[name.lower()]) for name in names])


def spark_schema(schema: pa.Schema) -> StructType:
    """Spark's struct of a table schema."""
    return StructType.fromJson(json.loads(schema_to_json(schema)))
