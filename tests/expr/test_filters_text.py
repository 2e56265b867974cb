"""Filters as SQL text: literals, operators, errors that point at the place."""

from __future__ import annotations

from typing import Any

import pytest
from spelling import attr, bound, node, value

from indextables.errors import IndexTablesError, PlanningError, QuerySyntaxError
from indextables.expr import filters as f
from indextables.expr.column import col, indexquery
from indextables.expr.filters import parse_filters
from indextables.expr.predicate import Undecided

# -- SQL text -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (r"b = 'it\'s'", "it's"),
        ("b = 'it''s'", "it's"),
        ('b = "it\'s"', "it's"),
        ('b = "say ""hi"""', 'say "hi"'),
        (r"b = 'a\\b'", "a\\b"),
        (r"b = 'tab\tend'", "tab\tend"),
        (r"b = r'a\nb'", r"a\nb"),
        (r"b = '\u00e9'", "é"),
        (r"b = '\%'", r"\%"),
        ("b = 'one ' 'two'", "one two"),
        ("b = '-- no comment /* here */'", "-- no comment /* here */"),
        ("b = '#0' -- a comment with ' a quote", "#0"),
        ("/* ' */ b = 'x'", "x"),
        ("b = 'x TEXTSEARCH y'", "x TEXTSEARCH y"),
        ("b = '日本語 \U0001f600'", "日本語 \U0001f600"),
    ],
)
def test_string_literals(sql: str, expected: str) -> None:
    assert bound(sql).value == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("msg TEXTSEARCH 'a b'", f.TextSearch("msg", "a b")),
        ("msg textsearch 'it''s'", f.TextSearch("msg", "it's")),
        ("msg FIELDMATCH 'x'", f.FieldMatch("msg", "x")),
        ("`odd name`.sub INDEXQUERY \"say 'hi'\"", f.IndexQuery(("odd name", "sub"), "say 'hi'")),
        ("* TEXTSEARCH 'x'", f.TextSearch("*", "x")),
        ("_indexall indexquery 'x'", f.IndexQuery(None, "x")),
        ("textsearch(msg, 'x')", f.TextSearch("msg", "x")),
        ("textsearch('msg', 'x')", f.TextSearch("msg", "x")),
        ("indexqueryall('x')", f.IndexQuery("*", "x")),
        ("tantivy4spark_indexquery('msg', 'x')", f.IndexQuery("msg", "x")),
        ("tantivy4spark_textsearchall('x')", f.TextSearch("*", "x")),
        ("msg NOT TEXTSEARCH 'x'", f.Not(f.TextSearch("msg", "x"))),
        ("NOT msg TEXTSEARCH 'x'", f.Not(f.TextSearch("msg", "x"))),
        (
            "a = 1 AND (msg TEXTSEARCH 'x' OR msg TEXTSEARCH 'y')",
            f.And(f.EqualTo("a", 1), f.Or(f.TextSearch("msg", "x"), f.TextSearch("msg", "y"))),
        ),
    ],
)
def test_text_operators(sql: str, expected: f.Filter) -> None:
    assert parse_filters(sql) == expected


def test_python_text_filters() -> None:
    assert parse_filters(col("msg").textsearch("x")) == f.TextSearch("msg", "x")
    assert parse_filters(col("msg").fieldmatch("x")) == f.FieldMatch("msg", "x")
    assert parse_filters(indexquery("x")) == f.IndexQuery("*", "x")
    udf = {"op": "PythonUDF", "name": "textsearch", "children": [attr("msg"), value("string", "x")]}
    assert parse_filters(udf) == f.TextSearch("msg", "x")


@pytest.mark.parametrize(
    ("sql", "position"),
    [
        ("a = ", 4),
        ("a = 'x", 4),
        ("a = 1 AND", 9),
        ("msg TEXTSEARCH foo", 15),
        ("(a = 1", 6),
        ("a = 1; DROP TABLE t", 5),
        ("b = 'äöü' AND AND c = 1", 16),
    ],
)
def test_syntax_errors_point_at_the_place(sql: str, position: int) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_filters(sql)
    assert caught.value.position is not None
    assert abs(caught.value.position - position) <= 1, str(caught.value)
    assert sql in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "SELECT 1",
        "DROP TABLE t",
        "b LIKE 'x' ESCAPE 'ab'",
        "X'0G' = bin",
        "textsearch(b)",
        "textsearch(b, 5)",
        "textsearch(lower(b), 'x')",
        object(),
        5,
        {"op": "EqualTo", "children": [attr("a")]},
        '{"op": "EqualTo", ',
        [{"class": "x.EqualTo", "num-children": 2}],
        [{"class": "x.Not", "num-children": 0}, {"class": "x.Not", "num-children": 0}],
    ],
)
def test_nonsense_is_an_error_of_ours(source: Any) -> None:
    with pytest.raises(IndexTablesError):
        bound(source)


def test_unknown_catalyst_nodes_are_kept_as_text() -> None:
    leaf = bound(node("Soundex", attr("b"), sql="soundex(b)"))
    assert isinstance(leaf, Undecided)
    assert leaf.text == "soundex(b)"
    assert leaf.references == ("b",)
    interval = node("EqualTo", attr("a"), value("interval day", 1))
    assert isinstance(bound(interval), Undecided)


def test_collated_text_of_catalyst_is_not_compared() -> None:
    column = {"op": "attr", "name": ["b"], "type": "string collate UTF8_LCASE"}
    for made in (
        node("EqualTo", column, value("string", "x")),
        node("EqualTo", attr("b"), value("string collate UNICODE", "x")),
        node("StartsWith", column, value("string", "x")),
    ):
        leaf = bound(made)
        assert isinstance(leaf, Undecided)
        assert leaf.expression is None
        assert leaf.references == ("b",)
    plain = {"op": "attr", "name": ["b"], "type": "string collate UTF8_BINARY"}
    assert bound(node("EqualTo", plain, value("string", "x"))) == bound("b = 'x'")


def test_legacy_casts_are_left_to_spark() -> None:
    def cast(name: str, mode: str) -> Any:
        made = node("Cast", attr(name), type="long", mode=mode)
        return bound(node("EqualTo", made, value("long", 1)))

    assert cast("a", "legacy") == bound("a = 1")
    assert cast("b", "ansi").expression is not None
    assert cast("b", "legacy").expression is None
    assert repr(cast("b", "try")) == "<(try_cast(b as bigint) = 1)>"


def test_bottomless_json_is_an_error_of_ours() -> None:
    deep = node("EqualTo", attr("a"), value("integer", 1))
    for _ in range(5000):
        deep = node("Not", deep)
    with pytest.raises(PlanningError, match="deeply"):
        bound(deep)
