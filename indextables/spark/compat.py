"""Every difference between the minors of Spark that we serve, and what is done about it.

One package serves Spark 4.0 and later. The Java side is compiled by the Spark that is there, so one
source tree can fit all of them: what is the same lies in ``java/io``, what differs lies in
``java/since/<minor>``, one small class to a difference. For a session the newest file of each name
is taken that is not newer than its Spark; a Spark that is newer than all of them gets the newest.
Whether the result works is not believed but tried (``selftest.py``).

On the Python side this module is the only one that asks for a version or for a name that some
PySpark lacks. ``DIFFERENCES`` lists them all; the page on compatibility is made from it.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

JAVA = Path(__file__).parent / "java"
TESTED = ((4, 0), (4, 1), (4, 2), (4, 3))
"""The minors that ``make test-matrix`` runs."""

Minor = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in all minors; ``since`` is the first with the new form."""

    name: str
    since: Minor
    what: str
    done: str


DIFFERENCES = (
    Difference(
        "memory partitions",
        (4, 1),
        "The classes that carry rows of the driver to executors moved to another package.",
        "ScanEdge.java",
    ),
    Difference(
        "whole filters",
        (4, 1),
        "Any scan may ask for filters as they are in the query. Before, only scans of files may.",
        "FilterEdge.java",
    ),
    Difference(
        "rows without columns",
        (4, 1),
        "A count needs no column. In 4.0 batches without columns lose their rows on the way from "
        "Python, so the smallest column is read along.",
        "FilterEdge.java",
    ),
    Difference(
        "the plan of Python tasks",
        (4, 1),
        "Spark can write and read such a plan outside its planner process; its reader of tasks "
        "also takes the id of the session.",
        "ScanEdge.java; compat.packed",
    ),
    Difference(
        "Arrow in streaming sinks",
        (4, 1),
        "A sink says with a class of its own that it takes Arrow batches. Before, Spark asks for "
        "the class of batch writes, also in streams.",
        "compat.StreamArrowWriter",
    ),
    Difference(
        "limits of streaming sources",
        (4, 2),
        "Spark says where a batch starts and how large it may be. Before, a source has "
        "to remember where the last batch ended: maxFilesPerTrigger holds for all batches but the "
        "first one of each run.",
        "compat.ReadMaxFiles and its kind; streaming.StreamReader",
    ),
    Difference(
        "the time zone of Arrow schemas",
        (4, 2),
        "The zone of timestamps is named; before, a flag stands for UTC.",
        "compat.arrow_schema",
    ),
    Difference(
        "copies of a definition",
        (4, 2),
        "CREATE TABLE LIKE asks the catalog. Before, Spark copies its own entry alone, which is "
        "not a table of ours: the statement is refused with what to write instead.",
        "SessionEdge.java",
    ),
    Difference(
        "the scan of local rows",
        (4, 3),
        "Spark's scan of rows of the driver can ask for a single task.",
        "KnownRowsExec.java",
    ),
    Difference(
        "loading a table",
        (4, 3),
        "One call with a context and options in place of one call for each purpose. Before, the "
        "identifier says whether a DataFrame or SQL names the table.",
        "CatalogEdge.java",
    ),
)


def minor_of(version: str) -> Minor:
    """The minor of a version of Spark, such as (4, 2) of ``4.2.1-amzn-0``."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def java_sources(version: str) -> list[Path]:
    """The Java files for this version of Spark; none if it is older than all we serve."""
    minor = minor_of(version)
    chosen: dict[str, Path] = {}
    for folder in sorted((JAVA / "since").iterdir(), key=lambda f: minor_of(f.name)):
        if minor_of(folder.name) <= minor:
            chosen.update({path.name: path for path in sorted(folder.glob("*.java"))})
    return [*sorted((JAVA / "io").rglob("*.java")), *chosen.values()] if chosen else []


def is_tested(version: str) -> bool:
    """Is this a minor that our tests run on?"""
    return minor_of(version) in TESTED


# -- PySpark ------------------------------------------------------------------------------------


def arrow_schema(output: Any) -> Any:
    """The Arrow schema that Spark expects of rows of this struct."""
    from pyspark.sql.pandas.types import to_arrow_schema

    try:
        return to_arrow_schema(output, timezone="UTC")
    except TypeError:
        return to_arrow_schema(output, timestamp_utc=True)


def packed(reader: Any, source: Any, output: Any) -> bytes:
    """The read function and its partitions as Spark's own planner process sends them."""
    out = io.BytesIO()
    try:
        from pyspark.sql.worker.plan_data_source_read import write_read_func_and_partitions
    except ImportError:
        _write_plan(out, reader, output)
    else:
        write_read_func_and_partitions(
            out,
            reader=reader,
            data_source=source,
            schema=output,
            max_arrow_batch_size=10_000,
            binary_as_bytes=True,
        )
    return out.getvalue()


def _write_plan(out: Any, reader: Any, output: Any) -> None:
    from pyspark.serializers import CloudPickleSerializer, write_int

    pickler = CloudPickleSerializer()
    pickler._write_with_length((TaskFunction(reader), output), out)
    partitions = reader.partitions()
    write_int(len(partitions), out)
    for partition in partitions:
        pickler._write_with_length(partition, out)


class TaskFunction:
    """What a task runs: it is given its partition as one value and gives batches of rows."""

    def __init__(self, reader: Any) -> None:
        self.reader = reader

    def __call__(self, given: Iterator[Any]) -> Iterator[Any]:
        from pyspark.serializers import CloudPickleSerializer

        for batch in given:
            partition = CloudPickleSerializer().loads(batch.column(0)[0].as_py())
            yield from self.reader.read(partition)


@dataclass(frozen=True)
class _MaxFiles:
    max_files: int


_STREAMING = (
    "ReadAllAvailable",
    "ReadMaxFiles",
    "StreamArrowWriter",
    "SupportsTriggerAvailableNow",
)


def _stream_classes() -> dict[str, Any]:
    """The classes of streams by the names of the newest PySpark; older ones get a stand-in."""
    from pyspark.sql import datasource

    try:
        from pyspark.sql.streaming import datasource as streaming
    except ImportError:
        plain = {"__module__": __name__}
        found: dict[str, Any] = {"ReadMaxFiles": _MaxFiles}
        for name in ("ReadAllAvailable", "SupportsTriggerAvailableNow"):
            found[name] = type(name, (), plain)
    else:
        found = {name: getattr(streaming, name) for name in _STREAMING if hasattr(streaming, name)}
    writer = getattr(datasource, "DataSourceStreamArrowWriter", None)
    if writer is None:
        both = (datasource.DataSourceStreamWriter, datasource.DataSourceArrowWriter)
        writer = type("StreamArrowWriter", both, {"__module__": __name__})
    return {**found, "StreamArrowWriter": writer}


def __getattr__(name: str) -> Any:
    if name in _STREAMING:
        globals().update(_stream_classes())
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
