"""One look at a table as the console shows it: count, rows, times, facets and the plan, together.

A view is asked with a search string, a condition in SQL, a span of time and facets that were
chosen; all of them must hold. They become one filter, never a text that is put together.

The histogram divides the span of the matching rows into at most ``MOST_BUCKETS`` buckets of a round
width. Facets are counted for columns of exact values, partition columns first, as long as the time
for them lasts; a column with very many values is no facet and is left out.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from indextables.errors import ConfigError, PlanningError
from indextables.expr import filters as f
from indextables.expr.predicate import conjunction
from indextables.log.read.moments import moment_of, to_millis
from indextables.planner import Planner
from indextables.serve.questions import Questions, column_named
from indextables.splits.read.partials import DateHistogram
from indextables.table.searching import search_predicate

if TYPE_CHECKING:
    from indextables.table.table import Table

MOST_BUCKETS = 60
MOST_FACETS = 6
MOST_VALUES = 8
TOO_MANY_VALUES = 1000
FACET_SECONDS = 2.0
_SECOND = 1_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_WIDTHS = [
    n * unit
    for unit, numbers in (
        (1000, (1, 10, 100)),
        (_SECOND, (1, 5, 10, 30)),
        (60 * _SECOND, (1, 5, 10, 30)),
        (3600 * _SECOND, (1, 3, 6, 12)),
        (86_400 * _SECOND, (1, 7, 30, 90, 365, 3650, 36_500)),
    )
    for n in numbers
]


@dataclass(frozen=True)
class Asked:
    """What the person at the console wants to see."""

    table: str
    query: str = ""
    where: str = ""
    time: str | None = None
    start: str | None = None
    end: str | None = None
    facets: Mapping[str, str] = field(default_factory=dict)
    limit: int = 50

    @classmethod
    def of(cls, table: str, given: Mapping[str, Sequence[str]]) -> Asked:
        """From the parameters of a request; ``facet`` may be given several times."""
        one = {key: values[-1] for key, values in given.items() if values and values[-1]}
        chosen = dict(_pair(text) for text in given.get("facet", ()))
        try:
            limit = int(one.get("limit", "50"))
        except ValueError:
            raise ConfigError(f"limit {one['limit']!r} is not a number") from None
        return cls(
            table,
            one.get("q", ""),
            one.get("where", ""),
            one.get("time"),
            one.get("start"),
            one.get("end"),
            chosen,
            limit,
        )


def _pair(text: str) -> tuple[str, str]:
    name, mark, value = text.partition("=")
    if not mark:
        raise ConfigError(f"facet {text!r} is not COLUMN=VALUE")
    return name, value


def view(questions: Questions, asked: Asked) -> dict[str, Any]:
    """Everything that one screen shows."""
    table = questions.table(asked.table)
    moment = time_column(table, asked.time)
    rest = Planner(table).bind(list(_conditions(table, asked, moment)) or None)
    searched = asked.query.strip()
    where = conjunction([search_predicate(table, asked.query), rest]) if searched else rest
    count = table.count(where)
    snippet = next((m.name for m in table.mapping.fields if m.is_tokenized), None)
    if searched:
        found = questions.search(
            asked.table, asked.query, where=rest, limit=asked.limit, snippet=snippet
        )
    else:
        newest = None if moment is None else moment.name
        found = questions.rows(asked.table, where, None, asked.limit, newest)
    return {
        "count": count,
        "total": table.snapshot.num_rows,
        "time": None if moment is None else moment.name,
        "snippet_of": snippet,
        **found,
        "histogram": [] if moment is None else list(_histogram(table, moment, where)),
        "facets": list(_facets(questions, table, where)),
    }


def time_column(table: Table, name: str | None) -> pa.Field | None:
    """The time column: the one asked for, else the first date or timestamp."""
    if name:
        found = column_named(table, name)
        if not _is_time(found.type):
            raise PlanningError(f"column '{name}' is no date or timestamp")
        return found
    return next((column for column in table.schema if _is_time(column.type)), None)


def _is_time(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(dtype) or pa.types.is_date(dtype))


def _conditions(table: Table, asked: Asked, moment: pa.Field | None) -> Iterator[Any]:
    """All that must hold beside the search."""
    if asked.where.strip():
        yield asked.where
    if moment is not None:
        if asked.start:
            yield f.GreaterThanOrEqual((moment.name,), _moment(asked.start, moment.type))
        if asked.end:
            yield f.LessThan((moment.name,), _moment(asked.end, moment.type))
    for name, value in asked.facets.items():
        yield f.EqualTo((column_named(table, name).name,), value)


def _moment(text: str, dtype: pa.DataType) -> Any:
    found = moment_of(to_millis(int(text) if text.lstrip("-").isdigit() else text))
    if found is None:
        raise ConfigError(f"{text!r} is no date")
    if pa.types.is_date(dtype):
        return found.date()
    return found if dtype.tz else found.replace(tzinfo=None)


def _histogram(table: Table, moment: pa.Field, where: Any) -> Iterator[dict[str, Any]]:
    ends = table.aggregate({"a": ("min", moment.name), "b": ("max", moment.name)}, where=where)
    first, last = (_micros(ends[name][0].as_py()) for name in ("a", "b"))
    if first is None or last is None:
        return
    fitting = (w for w in _WIDTHS if (last - first) // w < MOST_BUCKETS)
    width = next(fitting, _WIDTHS[-1])
    if pa.types.is_date(moment.type):
        width = max(width, 86_400 * _SECOND)
    group = DateHistogram(moment.name, width, name="bucket")
    found = table.aggregate({"n": "count"}, [group], where=where).sort_by("bucket")
    for row in found.to_pylist():
        start = _micros(row["bucket"])
        if start is not None:
            yield {"start": start // 1000, "end": (start + width) // 1000, "count": row["n"]}


def _micros(value: Any) -> int | None:
    if value is None:
        return None
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    zoned = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
    return int((zoned - _EPOCH) // datetime.timedelta(microseconds=1))


def _facets(questions: Questions, table: Table, where: Any) -> Iterator[dict[str, Any]]:
    end = time.monotonic() + FACET_SECONDS
    exact = [m.name for m in table.mapping.fields if m.type == "text" and not m.is_tokenized]
    names = dict.fromkeys((*table.partition_columns, *exact))
    shown = 0
    for name in names:
        if shown == MOST_FACETS or time.monotonic() > end:
            return
        if not pa.types.is_string(table.schema.field(name).type):
            continue
        found = table.aggregate({"n": "count"}, [name], where=where)
        if found.num_rows > TOO_MANY_VALUES:
            continue
        shown += 1
        best = found.sort_by([("n", "descending")]).slice(0, MOST_VALUES).to_pylist()
        values = [{"value": row[name], "count": row["n"]} for row in best if row[name] is not None]
        yield {"column": name, "values": values, "distinct": found.num_rows}


def health(questions: Questions, name: str) -> dict[str, Any]:
    """What an operator wants to know of a table; no split is opened."""
    table = questions.table(name)
    snapshot = table.snapshot
    covered = {path for xref in snapshot.xrefs for path in xref.source_split_paths}
    live = set(snapshot.paths.to_pylist())
    findings = [
        {"severity": x.severity, "check": x.check, "detail": x.detail, "remedy": x.remedy}
        for x in table.doctor(checksums=False)
    ]
    return {
        **questions.describe(name),
        "xref_coverage": len(live & covered) / len(live) if live else 1.0,
        "findings": findings,
    }
