"""Text filters meet the document mapping: which fields are asked, and whether they may be.

TEXTSEARCH needs a tokenised column, FIELDMATCH one that is not, INDEXQUERY takes any. With ``*``
INDEXQUERY asks every field; TEXTSEARCH and FIELDMATCH ask the text fields, and all of them must be
of the right kind. Words without a field name may be asked of at most ``max_unqualified_fields``
fields (0: any number). The query is parsed here, so a bad one fails at planning.
"""

from __future__ import annotations

from indextables.errors import PlanningError, UnknownColumnError
from indextables.expr import ast
from indextables.expr import filters as f
from indextables.expr.predicate import FALSE, TRUE, Predicate, TextMatch
from indextables.expr.querystring import parse_query
from indextables.expr.scope import Scope
from indextables.mapping import DocMapping, FieldMapping
from indextables.naming import stored_columns, user_mapping


def bind_text(node: f.TextFilter, scope: Scope, negated: bool) -> Predicate:
    """The text match, or a constant where the query decides every row alike."""
    if scope.mapping is None:
        raise PlanningError(
            f"'{node!r}' needs the table's document mapping",
            hint="Search a table that was opened, not a bare schema",
        )
    defaults = _default_fields(node, user_mapping(scope.mapping, scope.schema))
    query = parse_query(
        node.query,
        default_fields=defaults,
        mapping=scope.mapping,
        schema=scope.schema,
        time_zone=scope.zone_name,
        max_default_fields=scope.max_unqualified_fields if node.column is None else 0,
    )
    if isinstance(query, ast.MatchAll | ast.MatchNone):
        return TRUE if isinstance(query, ast.MatchAll) != negated else FALSE
    fields = ast.query_fields(query) or stored_columns(scope.schema, defaults)
    return TextMatch(query, tuple(fields), node.query, node.verb, negated)


def _default_fields(node: f.TextFilter, mapping: DocMapping) -> list[str]:
    if node.column is None:
        return _every_field(node, mapping)
    name = ".".join(node.column.path)
    found = mapping.get(name) or mapping.get(node.column.path[0])
    if found is None:
        listed = ", ".join(mapping.names)
        raise UnknownColumnError(
            f"{node.verb.upper()} names the unknown field '{name}'", hint=f"Fields: {listed}"
        )
    _check_kind(node, found, name)
    return [name]


def _check_kind(node: f.TextFilter, found: FieldMapping, name: str) -> None:
    cut = found.is_tokenized or found.type == "json"
    if node.verb == "textsearch" and not cut:
        raise PlanningError(
            f"TEXTSEARCH needs a tokenised text column; '{name}' is {_kind(found)}",
            hint="Use FIELDMATCH or INDEXQUERY, or write the column as text",
        )
    if node.verb == "fieldmatch" and found.is_tokenized:
        raise PlanningError(
            f"FIELDMATCH needs a column that is not cut into words; '{name}' is tokenised text",
            hint="Use TEXTSEARCH or INDEXQUERY",
        )


def _kind(found: FieldMapping) -> str:
    return "exact text" if found.is_exact_text else f"of type {found.type}"


def _every_field(node: f.TextFilter, mapping: DocMapping) -> list[str]:
    if node.verb == "indexquery":
        return [m.name for m in mapping.fields if m.type not in ("json", "null")]
    texts = [m for m in mapping.fields if m.type == "text"]
    if not texts:
        raise PlanningError(f"* {node.verb.upper()} needs a text field; the table has none")
    for found in texts:
        _check_kind(node, found, found.name)
    return [m.name for m in texts]
