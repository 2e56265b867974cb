"""Predicates as index queries: exact keys are terms, everything else cannot be decided."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.mapping import DocMapping, IndexingOptions
from indextables.planner import to_query

SCHEMA = pa.schema(
    [
        ("s", pa.string()),
        ("body", pa.string()),
        ("i", pa.int64()),
        ("x", pa.float64()),
        ("u", pa.struct([("age", pa.int32())])),
        ("p", pa.int32()),
        ("hidden", pa.string()),
    ]
)
MAPPING = DocMapping.for_schema(
    SCHEMA, ["p"], IndexingOptions(text=("body",), unindexed=("hidden",))
)


def converted(sql: str) -> tuple[ast.Query, bool]:
    predicate = bind(sql, SCHEMA, partition_columns=["p"], mapping=MAPPING)
    part = to_query(predicate, SCHEMA, MAPPING)
    return part.query, part.exact


EXISTS = ast.Exists


@pytest.mark.parametrize(
    ("sql", "query", "exact"),
    [
        ("s = 'a'", ast.Term("s", "a"), True),
        ("i = 5", ast.Term("i", 5), True),
        ("s IN ('a', 'b')", ast.TermSet("s", ("a", "b")), True),
        ("i > 5", ast.Range("i", lower=5, include_lower=False), True),
        ("i <= 5", ast.Range("i", upper=5), True),
        ("i != 5", ast.Bool(must=(EXISTS("i"),), must_not=(ast.Term("i", 5),)), True),
        ("i IS NULL", ast.Bool(must_not=(EXISTS("i"),)), True),
        ("i IS NOT NULL", EXISTS("i"), True),
        ("startswith(s, 'a*')", ast.Wildcard("s", "a\\**"), True),
        ("endswith(s, '?')", ast.Wildcard("s", "*\\?"), True),
        ("contains(s, 'b')", ast.Wildcard("s", "*b*"), True),
        ("s LIKE 'a_%!%b' ESCAPE '!'", ast.Wildcard("s", "a?*%b"), True),
        ("body = 'quick fox'", EXISTS("body"), False),
        ("hidden = 'a'", EXISTS("hidden"), False),
        ("u.age = 5", EXISTS("u.age"), False),
        ("p = 5", EXISTS("p"), False),
        ("lower(s) = 'a'", EXISTS("s"), False),
        ("FALSE", ast.MatchNone(), True),
        ("TRUE", ast.MatchAll(), True),
    ],
)
def test_leaves(sql: str, query: Any, exact: bool) -> None:
    assert converted(sql) == (query, exact)


def test_an_or_with_an_undecidable_leg_stays_undecidable() -> None:
    query, exact = converted("s = 'a' OR lower(s) = 'b'")
    assert query == ast.Bool(should=(ast.Term("s", "a"), EXISTS("s")), minimum_should_match=1)
    assert not exact


def test_an_and_goes_on_without_it() -> None:
    query, exact = converted("s = 'a' AND lower(s) = 'b'")
    assert query == ast.Bool(must=(ast.Term("s", "a"), EXISTS("s")))
    assert not exact


def test_text_searches_are_their_own_query() -> None:
    query, exact = converted("body TEXTSEARCH 'quick'")
    assert exact
    assert "body" in repr(query)
    negated, exact = converted("NOT (body TEXTSEARCH 'quick')")
    assert negated == ast.Bool(must_not=(query,))


def test_without_a_mapping_the_default_one_counts() -> None:
    predicate = bind("body = 'a'", SCHEMA)
    assert to_query(predicate, SCHEMA).query == ast.Term("body", "a")
    assert to_query(predicate).query == EXISTS("body")
