"""The search language: every string of the corpus finds its rows, every bad one is refused."""

from __future__ import annotations

import pyarrow as pa
import pytest
from corpus import CORPUS, ERRORS, LONG_TOKEN, SCHEMA, Case, corpus_mapping, corpus_table
from hypothesis import example, given
from hypothesis import strategies as st

from indextables.errors import (
    IndexTablesError,
    PlanningError,
    QuerySyntaxError,
    UnknownColumnError,
)
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.expr.column import col, indexquery, textsearch
from indextables.expr.evaluate import evaluate, matching_rows
from indextables.expr.predicate import FALSE, TRUE, TextMatch, referenced_columns
from indextables.expr.querystring import parse_query
from indextables.expr.textmatch import match_rows

MAPPING = corpus_mapping()
TABLE = corpus_table()


def parse(query: str, *fields: str) -> ast.Query:
    return parse_query(query, default_fields=fields or ("msg",), mapping=MAPPING, schema=SCHEMA)


def short(case: Case) -> str:
    return case.query.replace(LONG_TOKEN, "<300 x>") or "<empty>"


@pytest.mark.parametrize("case", CORPUS, ids=short)
def test_corpus(case: Case) -> None:
    query = parse(case.query, *case.fields)
    assert match_rows(query, TABLE, MAPPING).nonzero()[0].tolist() == case.rows, query
    assert ast.from_json(ast.to_json(query)) == query or "NaN" in case.query


def test_the_corpus_is_large_and_says_each_thing_once() -> None:
    assert len(CORPUS) >= 150
    assert len({(c.query, c.fields) for c in CORPUS}) == len(CORPUS)
    assert all(c.rows == sorted(set(c.rows)) for c in CORPUS)


@pytest.mark.parametrize(("query", "kind"), ERRORS, ids=[q[:30] for q, _ in ERRORS])
def test_bad_queries(query: str, kind: type[IndexTablesError]) -> None:
    with pytest.raises(kind) as caught:
        parse(query)
    error = caught.value
    if isinstance(error, QuerySyntaxError):
        assert error.position is not None
        assert 0 <= error.position <= len(query)
        assert query in str(error)
    else:
        assert "unknown field" in str(error)


def test_errors_say_where_and_what_to_do() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse("quick status:abc")
    assert caught.value.position == len("quick status:")
    assert "'status' is int" in str(caught.value)
    with pytest.raises(UnknownColumnError, match=r"Did you mean 'status'.*Fields: id, msg"):
        parse("statsu:200")
    with pytest.raises(UnknownColumnError, match="Quote a word that holds a colon"):
        parse("10:30")
    with pytest.raises(UnknownColumnError, match=r"user\.name"):
        parse("user.nmae:x")


def test_a_partition_column_is_not_a_field() -> None:
    schema = pa.schema([("msg", pa.string()), ("region", pa.string())])
    mapping = type(MAPPING).for_schema(schema, ["region"])
    with pytest.raises(UnknownColumnError, match="partition column"):
        parse_query("region:eu", default_fields=["msg"], mapping=mapping, schema=schema)


def test_the_session_zone_reads_days() -> None:
    def days(zone: str) -> ast.Query:
        return parse_query(
            "ts:2024-01-15", default_fields=["msg"], mapping=MAPPING, schema=SCHEMA, time_zone=zone
        )

    utc, berlin = days("UTC"), days("Europe/Berlin")
    assert isinstance(utc, ast.Range)
    assert isinstance(berlin, ast.Range)
    hour = 3_600_000_000
    assert (utc.lower, utc.upper) == (1705276800000000, 1705276800000000 + 24 * hour - 1)
    assert berlin.lower == 1705276800000000 - hour


def test_trees() -> None:
    assert parse("a b") == ast.Bool(must=(ast.Term("msg", "a"), ast.Term("msg", "b")))
    assert parse("a OR b") == ast.Bool(should=(ast.Term("msg", "a"), ast.Term("msg", "b")))
    assert parse("-a") == ast.Bool(must_not=(ast.Term("msg", "a"),))
    assert parse("a", "msg", "host") == ast.Bool(
        should=(ast.Term("msg", "a"), ast.Term("host", "a"))
    )
    assert parse("a-b") == ast.Phrase("msg", ("a", "b"))
    assert parse("a^2") == ast.Boost(ast.Term("msg", "a"), 2.0)
    assert parse("status: IN [1 2]") == ast.TermSet("status", (1, 2))


@given(st.text(alphabet='ab*?~^"()[]{}\\/:-+<>=. \tTOINANDR09é', max_size=24))
@example("\\")
@example('a"b"c')
@example("a^^2")
@example("msg:msg:a")
@example("[a TO b]")
@example("/a/b/")
def test_any_text_parses_or_is_refused_cleanly(text: str) -> None:
    try:
        query = parse(text, "msg", "host", "status")
    except IndexTablesError:
        return
    match_rows(query, TABLE, MAPPING)


@given(st.text(max_size=12))
def test_a_quoted_text_finds_the_row_that_holds_it(text: str) -> None:
    spelled = text.replace("\\", "\\\\").replace('"', '\\"')
    schema = pa.schema([("s", pa.string())])
    mapping = type(MAPPING).for_schema(schema)
    query = parse_query(f'"{spelled}"', default_fields=["s"], mapping=mapping, schema=schema)
    batch = pa.record_batch({"s": pa.array([text, text + "x", None])})
    assert match_rows(query, batch, mapping).tolist() == [True, False, False]


# -- binding --------------------------------------------------------------------------------------


def bound(source: object, limit: int = 10) -> object:
    return bind(source, SCHEMA, mapping=MAPPING, max_unqualified_fields=limit)


def rows(source: object) -> list[int]:
    return matching_rows(bound(source), TABLE, mapping=MAPPING).tolist()  # type: ignore[arg-type]


def test_text_filters_bind_to_text_matches() -> None:
    made = bound("msg TEXTSEARCH 'quick fox'")
    assert isinstance(made, TextMatch)
    assert made.verb == "textsearch"
    assert made.fields == ("msg",)
    assert made.source == "quick fox"
    assert made.query == parse("quick fox")
    assert bound(col("MSG").textsearch("quick fox")) == made


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("msg TEXTSEARCH 'quick' AND status = 200", [0, 3]),
        ("msg TEXTSEARCH 'quick' OR status = 404", [0, 2, 3, 8, 9, 11]),
        ("NOT msg TEXTSEARCH 'quick'", [1, 2, 4, 5, 6, 7, 10, 11]),
        ("NOT (msg TEXTSEARCH 'quick' OR ok)", [1, 4, 7, 10]),
        ("host FIELDMATCH 'web-*'", [0, 1, 9]),
        ("status FIELDMATCH '>=500'", [1, 8, 9]),
        ("msg INDEXQUERY '*ick'", [0, 3, 8, 9]),
        ("msg INDEXQUERY 'status:404'", [2, 11]),
        ("user.name TEXTSEARCH 'alice'", [0, 7, 8, 10]),
        ("textsearch(msg, 'it\\'s')", [11]),
        ("msg TEXTSEARCH ''", []),
        ("NOT msg TEXTSEARCH ''", list(range(12))),
        ("msg INDEXQUERY '*'", list(range(12))),
        ("lower(host) = 'web-1' AND msg TEXTSEARCH 'fox'", [0]),
    ],
)
def test_text_filters_in_trees(source: str, expected: list[int]) -> None:
    assert rows(source) == expected


def test_every_field_forms() -> None:
    assert rows(col("msg").textsearch("quick") & indexquery("status:200")) == [0, 3]
    with pytest.raises(PlanningError, match="TEXTSEARCH needs a tokenised text column; 'host'"):
        bound(textsearch("quick"))
    with pytest.raises(PlanningError, match="FIELDMATCH needs a column that is not cut"):
        bound("* FIELDMATCH 'x'")
    with pytest.raises(PlanningError, match="would search 14 fields, more than the limit of 10"):
        bound(indexquery("quick"))
    assert bound(indexquery("msg:quick status:200")) is not None
    found = bound(indexquery("404"), 0)
    assert matching_rows(found, TABLE, mapping=MAPPING).tolist() == [2, 11]  # type: ignore[arg-type]
    plain = pa.schema([("i", pa.int32())])
    with pytest.raises(PlanningError, match="the table has none"):
        bind("* TEXTSEARCH 'x'", plain, mapping=type(MAPPING).for_schema(plain))


def test_wrong_kinds_and_unknown_fields() -> None:
    with pytest.raises(PlanningError, match="'host' is exact text"):
        bound("host TEXTSEARCH 'x'")
    with pytest.raises(PlanningError, match="'status' is of type i64"):
        bound("status TEXTSEARCH '1'")
    with pytest.raises(PlanningError, match="'msg' is tokenised"):
        bound("msg FIELDMATCH 'x'")
    with pytest.raises(UnknownColumnError, match="Fields: id, msg, title"):
        bound("nope TEXTSEARCH 'x'")
    with pytest.raises(QuerySyntaxError):
        bound("msg TEXTSEARCH '(a'")
    with pytest.raises(PlanningError, match="document mapping"):
        bind("msg TEXTSEARCH 'x'", SCHEMA)
    with pytest.raises(PlanningError, match="AND, OR and NOT only"):
        bound("CASE WHEN msg TEXTSEARCH 'x' THEN true END")


def test_every_field_of_the_query_is_read() -> None:
    made = TextMatch(parse("quick status:>200 user.name:a"), ("msg",), "")
    assert referenced_columns(made) == ["msg", "status", "user"]


def test_constants_and_mappings() -> None:
    assert bound("msg TEXTSEARCH '*'") == TRUE
    assert bound("msg TEXTSEARCH ' '") == FALSE
    with pytest.raises(PlanningError, match="without the document mapping"):
        evaluate(bound("msg TEXTSEARCH 'x'"), TABLE)  # type: ignore[arg-type]


def test_digits_in_a_string_of_a_struct_are_words() -> None:
    assert parse("user.name:1.0") == ast.Phrase("user.name", ("1", "0"))
    assert parse("user.name:7") == ast.Term("user.name", "7")
