"""Answers to the Java side: one method for each question it asks while Spark plans.

Everything is decided here, in the driver's Python, where snapshots and cross-references stay warm
between queries. A query crosses over three times: ``describe`` when a table is loaded, ``open`` or
``aggregate`` with what Spark offers to push down, and ``plan``, whose answer has the rows or tasks
and all that is said of the scan. Scans are remembered by handle (``opened.py``), one for each
request, so that two scans of one DataFrame share nothing. Errors travel as text and are raised in
Java as plain IllegalArgumentException.
"""

from __future__ import annotations

import base64
import json
import struct
import traceback
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pyarrow as pa

from indextables.errors import IndexTablesError
from indextables.naming import stored_columns
from indextables.planner import Plan
from indextables.spark import compat
from indextables.spark.driver.opened import GoneError, Opened, OpenScans
from indextables.spark.driver.quick import as_stream, quick_answer
from indextables.spark.driver.scan import Request
from indextables.spark.driver.tableanswers import TableAnswers
from indextables.spark.driver.workers import Watch
from indextables.spark.tasks.grouped import Aggregation
from indextables.splits.read.partials import group_states
from indextables.table.execute import SCORE
from indextables.types import type_to_json

OK, FAILED, NOTHING, ROWS, GONE = b"\0", b"\1", b"\2", b"\3", b"\4"


class Bridge(TableAnswers):
    """The Python end of ``io.indextables.Bridge``."""

    class Java:
        implements: ClassVar = ["io.indextables.Bridge$Callback"]

    def __init__(
        self,
        parallelism: int | None = None,
        run_command: Callable[[str, Any], Any] | None = None,
    ) -> None:
        self.parallelism = parallelism
        self.last_plan: Plan | None = None
        self.layer = 2
        self.sessions: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self.crossings: Counter[str] = Counter()
        self.opened = OpenScans(parallelism)
        self.workers = Watch()
        self._run_command = run_command

    # -- the three calls Java makes -------------------------------------------------------------

    def ask(self, verb: str, text: str) -> str:
        self.crossings[verb] += 1
        try:
            answer = getattr(self, f"_{verb}")(json.loads(text))
        except GoneError:
            answer = {"gone": True}
        except IndexTablesError as error:
            answer = {"error": str(error)}
        except Exception as error:
            answer = {"error": f"indextables failed to {verb}: {error!r}\n{traceback.format_exc()}"}
        return json.dumps(answer)

    def fetch(self, verb: str, text: str) -> bytes:
        self.crossings[verb] += 1
        try:
            return self._read_function(json.loads(text))
        except GoneError:
            return GONE
        except IndexTablesError as error:
            return FAILED + str(error).encode()
        except Exception as error:
            return FAILED + f"indextables failed to {verb}: {error!r}".encode()

    def plan(self, command: str, session: str) -> Any:
        """The plan of a command's rows, or what went wrong as text."""
        self.crossings["command"] += 1
        if self._run_command is None or session not in self.sessions:
            return "commands are not available in this session"
        try:
            return self._run_command(command, self.sessions[session])
        except IndexTablesError as error:
            return str(error)
        except Exception as error:
            return f"indextables failed to run {command!r}: {error!r}\n{traceback.format_exc()}"

    # -- scans ----------------------------------------------------------------------------------

    def _open(self, body: Mapping[str, Any]) -> dict[str, Any]:
        opened = self.opened.find(body)
        return {**opened.named, "accepted": opened.scan.accepted}

    def _aggregate(self, body: Mapping[str, Any]) -> dict[str, Any]:
        whole = self.opened.scan(body)
        opened = self.opened.aggregated(whole, body)
        if opened is None or opened.aggregation is None:
            return {**whole.named, "accepted": False}
        answer = {**whole.named, "accepted": True, "aggregated": opened.handle}
        answer["schema"] = _result_schema(opened.aggregation)
        if opened.aggregation.counts_rows and not opened.aggregation.keys:
            plan = self._planned(opened, body)
            known = counts_by_partition(plan, opened.aggregation)
            if known is not None:
                answer["rows"] = base64.b64encode(as_stream([known])).decode()
                answer["story"] = self._story(opened, plan, None)
        return answer

    def _planned(self, opened: Opened, body: Mapping[str, Any]) -> Plan:
        self.last_plan = opened.plan(body.get("output"), body.get("limit"))
        return self.last_plan

    def _summary(self, body: Mapping[str, Any]) -> dict[str, Any]:
        opened = self.opened.find(body)
        plan = self._planned(opened, body)
        return self._story(opened, plan, body.get("limit"), body.get("bestScores"))

    def _story(
        self, opened: Opened, plan: Plan, limit: int | None, best: int | None = None
    ) -> dict[str, Any]:
        """What is said of a scan: its line in EXPLAIN, and about how much it reads."""
        from indextables.spark.driver.describing import summary

        report = plan.report
        rows = report.rows if report.rows is not None else report.most_rows
        if rows is not None and limit is not None:
            rows = min(rows, limit)
        size = int(report.bytes_selected * opened.scan.share(plan.columns))
        text = summary(opened.scan, plan, limit, opened.aggregation, self.layer)
        if best is not None:
            text += f", best {best} by _score"
        return {"text": text, "bytes": max(size, 1), "rows": -1 if rows is None else rows}

    # -- plans for executors --------------------------------------------------------------------

    def _read_function(self, body: Mapping[str, Any]) -> bytes:
        opened = self.opened.find(body)
        plan = self._planned(opened, body)
        reader = _reader(opened, plan, body)
        said = self._story(opened, plan, body.get("limit"), body.get("bestScores"))
        story = json.dumps(said).encode()
        head = struct.pack(">i", len(story)) + story
        if not reader.partitions():
            return NOTHING + head
        rows = quick_answer(reader, reader.access.config)
        if rows is None:
            self.workers.require()
            return OK + head + packed(reader, reader.output)
        return ROWS + head + as_stream(rows) if rows else NOTHING + head

    def reader(self, body: Mapping[str, Any]) -> Any:
        """The reader of one scan with its tasks; none where there is nothing to read."""
        opened = self.opened.find(body)
        return _reader(opened, self._planned(opened, body), body)

    def _distribution(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from indextables.spark.driver.distributing import distribution

        self.workers.require()
        return distribution(Request(body).access, body["partitionColumns"])

    # -- searches above scans -------------------------------------------------------------------

    def _search(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from indextables.spark.tasks.searching import planned

        return {"note": planned(body)}

    # -- SQL ------------------------------------------------------------------------------------

    def _sql(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from indextables.spark.sql import functions as sqlfunctions
        from indextables.spark.sql import rewrite as sqltext

        text = body["text"]
        session = self.sessions.get(body.get("key", ""))
        if session is not None and sqlfunctions.BUCKETS in text.lower():
            sqlfunctions.register_buckets(session)
        if sqltext.is_command(text, session):
            return {"command": True}
        return {"sql": sqltext.rewritten(text)}

    def _advice(self, body: Mapping[str, Any]) -> dict[str, Any]:
        from indextables.spark.sql.foreign import advice

        return {"advice": advice(body["text"]) or ""}


def _reader(opened: Opened, plan: Plan, body: Mapping[str, Any]) -> Any:
    from indextables.spark.tasks.reading import TaskPartition, TaskReader

    scan, aggregation = opened.scan, opened.aggregation
    output = spark_type(body["output"])
    found = scan.tasks(plan)
    if SCORE in output.fieldNames():
        found = scan.ranked(found, body.get("bestScores"), bool(body.get("withTies")))
    tasks = [TaskPartition(task) for task in found]
    known = counts_by_partition(plan, aggregation)
    if known is not None:
        tasks = [TaskPartition(None, known)]
    if not tasks and aggregation is not None and not aggregation.keys:
        tasks = [TaskPartition(None, next(aggregation.of(())))]
    schema = scan.table.snapshot.schema
    return TaskReader(scan.request.access, schema, output, tasks, aggregation)


def _result_schema(aggregation: Aggregation) -> dict[str, Any]:
    pairs = [(key.name, key.value.dtype) for key in aggregation.keys]
    pairs += [(a.name, a.dtype) for a in aggregation.aggregates]
    fields = [
        {"name": n, "type": type_to_json(t), "nullable": True, "metadata": {}} for n, t in pairs
    ]
    return {"type": "struct", "fields": fields}


def counts_by_partition(plan: Plan, aggregation: Aggregation | None) -> pa.RecordBatch | None:
    """COUNT(*) by partition columns, from the log alone where it can tell."""
    if aggregation is None or not aggregation.counts_rows:
        return None
    snapshot = plan.snapshot
    names = [key.value.column or "" for key in aggregation.keys]
    count = plan.count()
    if not set(names) <= set(snapshot.partition_columns) or count is None:
        return None
    if not names:
        return next(aggregation.counted(count))
    from indextables.splits.format.partition_values import partition_array

    keys = []
    for name in names:
        (stored,) = stored_columns(snapshot.schema, [name])
        codes, texts = snapshot.partition_codes(stored)
        dtype = snapshot.schema.field(name).type
        values = pa.concat_arrays([partition_array(t, dtype, 1, name) for t in texts])
        keys.append(values.take(pa.array(codes[plan.selection])))
    rows = pa.array(snapshot.live_records[plan.selection], pa.int64())
    states = group_states(aggregation.grouping, keys, {"rows": rows})
    return next(iter(aggregation.finished(states)), None)


def spark_type(text: str) -> Any:
    """Spark's struct of its JSON."""
    from pyspark.sql.types import StructType

    return StructType.fromJson(json.loads(text))


def packed(reader: Any, output: Any) -> bytes:
    """The read function and its partitions as Spark's own planner process sends them."""
    from indextables.spark.source import PythonSource

    return compat.packed(reader, PythonSource({}), output)
