"""Text searches on values, for predicates that stay above a scan.

A search that reaches the scan of a table is answered by its index. One that cannot (above an outer
join, a limit, a window, a cache, in a SELECT list, over Parquet) is a function of the value: the
same analyzer, the same query language and the same answers, NULL being no match. How a column is
indexed comes with it, in the metadata of its attribute, wherever the attribute goes. A column that
no table of ours knows is text cut by the default analyzer for TEXTSEARCH and INDEXQUERY, and whole
for FIELDMATCH.

``planned`` runs in the driver, while Spark plans: it checks the query against the column and gives
the note that workers need. What cannot be answered is refused there, never in a worker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import pyarrow as pa

from indextables.errors import PlanningError
from indextables.expr import filters
from indextables.expr.evaluate import evaluate
from indextables.expr.infix import OLD_PREFIX
from indextables.expr.predicate import Predicate
from indextables.expr.scope import Scope
from indextables.expr.searchbind import bind_text
from indextables.mapping import DocMapping, FieldMapping
from indextables.types import normalize_type, type_from_json

FIELD_NOTE = "indextables.field"
"""In the metadata of a column that Spark sees: how it is indexed."""
VALUE = "value"
"""What a value is called that is no column."""


def planned(body: Mapping[str, Any]) -> str:
    """The note for workers; raises where the search cannot be answered on values."""
    verb = body["verb"].removeprefix(OLD_PREFIX)
    if verb.endswith("all") or body.get("name") == "_indexall":
        raise PlanningError(
            f"{verb.removesuffix('all').upper()} of every field has to reach the scan of a table",
            hint="Name the column to search, or search in a subquery that reads the table alone",
        )
    if body.get("query") is None:
        raise PlanningError(
            f"{verb.upper()} needs a query that is known while Spark plans",
            hint="Write the query as a text in quotes or as a parameter",
        )
    spelled = type_from_json(body["type"]) if isinstance(body["type"], str) else pa.struct([])
    dtype = normalize_type(spelled)
    if not pa.types.is_string(dtype):
        raise PlanningError(
            f"{verb.upper()} on '{body.get('name') or 'an expression'}' has to reach the scan of a "
            "table: only text can be searched above it",
            hint="Search in a subquery that reads the table alone",
        )
    note = {
        "verb": verb,
        "field": _field(verb, body.get("name") or VALUE, body.get("note")),
        "zone": body.get("timeZone", "UTC"),
    }
    text = json.dumps(note, sort_keys=True)
    bound(text, body["query"])
    return text


def _field(verb: str, name: str, note: str | None) -> dict[str, Any]:
    if note is not None:
        return {**json.loads(note), "name": name}
    tokenizer = "raw" if verb == "fieldmatch" else "default"
    return FieldMapping(name, "text", tokenizer).to_dict()


@lru_cache(maxsize=256)
def bound(note: str, query: str) -> tuple[Predicate, DocMapping]:
    """The search as a predicate over one column, and the mapping of that column."""
    told = json.loads(note)
    field = FieldMapping.from_dict(told["field"])
    mapping = DocMapping((field,))
    schema = pa.schema([(field.name, pa.string())])
    scope = Scope(schema, mapping=mapping, zone_name=told["zone"])
    kind = {
        "textsearch": filters.TextSearch,
        "fieldmatch": filters.FieldMatch,
        "indexquery": filters.IndexQuery,
    }[told["verb"]]
    return bind_text(kind(filters.Attribute((field.name,)), query), scope, False), mapping


def found(values: pa.Array, query: str, note: str) -> pa.BooleanArray:
    """Which values match; NULL does not."""
    predicate, mapping = bound(note, query)
    batch = pa.record_batch([values.cast(pa.string())], names=mapping.names)
    return evaluate(predicate, batch, mapping=mapping)


def search_arrays(
    values: pa.Array, queries: pa.Array | None = None, notes: pa.Array | None = None
) -> pa.Array:
    """The function that Spark calls with arrays: values, the query, the note of ``planned``."""
    if queries is None or notes is None:
        raise _unplanned()
    if not len(values):
        return pa.array([], pa.bool_())
    return found(values, queries[0].as_py(), notes[0].as_py())


def search_value(value: Any = None, query: str | None = None, note: str | None = None) -> bool:
    """The same for one value, where Spark has no functions of arrays."""
    if query is None or note is None:
        raise _unplanned()
    return bool(found(pa.array([value], pa.string()), query, note)[0].as_py())


def _unplanned() -> PlanningError:
    return PlanningError(
        "a text search ran in a session that does not plan it",
        hint="Call indextables.register(spark) in this session, or pass the search as where= to "
        "indextables.read",
    )
