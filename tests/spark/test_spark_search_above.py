"""Random searches above joins, limits, windows and caches equal an oracle in plain Spark SQL.

The oracle reads the same rows as Parquet and splits them into words with Spark's own functions.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from indextables.errors import IndexTablesError
from indextables.spark.tasks.searching import found, planned
from indextables.table import open_table, write_table

WORDS = ("red", "green", "blue", "dog", "cat")
SHAPES = (
    "SELECT l.id, r.id FROM {l} l LEFT JOIN {r} r ON l.id = r.id WHERE {r.msg}",
    "SELECT l.id, r.id FROM {l} l LEFT JOIN {r} r ON l.id = r.id WHERE NOT ({r.msg})",
    "SELECT l.id, r.id FROM {l} l LEFT JOIN {r} r ON l.id = r.id AND {l.msg}",
    "SELECT l.id, r.id FROM {l} l FULL JOIN {r} r ON l.id = r.id WHERE {l.msg} OR {r.msg}",
    "SELECT l.id, r.id FROM {l} l JOIN {r} r ON l.id = r.id + 1 WHERE {l.msg} OR r.id > 5",
    "SELECT l.id FROM {l} l WHERE {l.msg} OR l.id IN (SELECT id FROM {r} r WHERE {r.msg})",
    "SELECT l.id FROM {l} l WHERE EXISTS (SELECT 1 FROM {r} r WHERE r.id = l.id AND {r.msg})",
    "SELECT l.id FROM (SELECT * FROM {l} ORDER BY id LIMIT 9) l WHERE {l.msg}",
    "SELECT l.id FROM (SELECT *, row_number() OVER (PARTITION BY k ORDER BY id) n FROM {l}) l "
    "WHERE {l.msg} AND n < 3",
    "SELECT l.k, count(*) FILTER (WHERE {l.msg}), sum(CASE WHEN {l.msg} THEN 1 ELSE 0 END) "
    "FROM {l} l GROUP BY l.k",
    "SELECT l.id, {l.msg} FROM {l} l",
    "SELECT l.id, r.id FROM {l} l LEFT ANTI JOIN {r} r ON l.id = r.id AND {r.msg}".replace(
        "l.id, r.id", "l.id"
    ),
    "SELECT l.id FROM {l}_cached l WHERE {l.msg} AND l.id > 2",
)


def rows(first: int) -> list[tuple[int, str, str | None]]:
    made = []
    for i in range(first, first + 24):
        words = " ".join(WORDS[(i * j + j) % 5] for j in range(1 + i % 3))
        made.append((i, "ab"[i % 2], None if i % 7 == 3 else words.title()))
    return made


@pytest.fixture(scope="module")
def tables(spark: Any) -> Any:
    for name, first in (("sl", 0), ("sr", 10)):
        frame = spark.createDataFrame(rows(first), "id bigint, k string, msg string")
        frame.write.format("parquet").mode("overwrite").saveAsTable(f"{name}_plain")
        spark.sql(f"DROP TABLE IF EXISTS {name}_ours")
        spark.sql(
            f"CREATE TABLE {name}_ours USING indextables TBLPROPERTIES "
            f"('spark.indextables.indexing.typemap.text' = 'msg') AS SELECT * FROM {name}_plain"
        )
        for kind in ("plain", "ours"):
            spark.table(f"{name}_{kind}").cache().createOrReplaceTempView(f"{name}_{kind}_cached")
            spark.table(f"{name}_{kind}").unpersist()
    yield spark
    spark.catalog.clearCache()
    for name in ("sl", "sr"):
        for kind in ("plain", "ours"):
            spark.sql(f"DROP TABLE {name}_{kind}")


def oracle(column: str, words: tuple[str, ...], every: bool) -> str:
    found = [f"array_contains(split(lower({column}), ' '), '{word}')" for word in words]
    return f"coalesce({(' AND ' if every else ' OR ').join(found)}, false)"


Tree = tuple[Any, ...]
LEAVES = st.one_of(
    st.tuples(
        st.just("search"),
        st.lists(st.sampled_from(WORDS), min_size=1, max_size=2, unique=True).map(tuple),
        st.booleans(),
    ),
    st.tuples(st.just("id >"), st.integers(0, 30)),
    st.tuples(st.just("null")),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(("AND", "OR")), inner, inner)
    ),
    max_leaves=4,
)


def spelled(tree: Tree, side: str, ours: bool) -> str:
    """A condition on one side, by searches or by the oracle's functions."""
    match tree:
        case ("search", words, every):
            query = (" AND " if every else " OR ").join(words)
            column = f"{side}.msg"
            return f"{column} TEXTSEARCH '{query}'" if ours else oracle(column, words, every)
        case ("id >", number):
            return f"{side}.id > {number}"
        case ("null",):
            return f"{side}.msg IS NULL"
        case ("not", inner):
            return f"NOT ({spelled(inner, side, ours)})"
        case (word, left, right):
            return f"(({spelled(left, side, ours)}) {word} ({spelled(right, side, ours)}))"
    raise AssertionError(tree)


def filled(shape: str, kind: str, conditions: dict[str, Tree]) -> str:
    text = shape.replace("{l}", f"sl_{kind}").replace("{r}", f"sr_{kind}")
    for side, tree in conditions.items():
        text = text.replace(f"{{{side}.msg}}", f"({spelled(tree, side, kind == 'ours')})")
    return text


@settings(
    max_examples=20 if os.environ.get("INDEXTABLES_SLOW") == "1" else 2,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(left=TREES, right=TREES)
@example(left=("search", ("dog",), True), right=("search", ("red", "cat"), False))
def test_searches_above_scans(tables: Any, left: Tree, right: Tree) -> None:
    for shape in SHAPES:
        conditions = {"l": left, "r": right}
        ours = tables.sql(filled(shape, "ours", conditions))
        plain = tables.sql(filled(shape, "plain", conditions))
        assert [tuple(r) for r in sorted(ours.collect(), key=repr)] == [
            tuple(r) for r in sorted(plain.collect(), key=repr)
        ], filled(shape, "ours", conditions)


VALUES = [
    "Running dogs",
    "the red DOG",
    None,
    "",
    "dog",
    "red-dog 10.0.0.1",
    "ein Hündchen",
    "dogs",
]
QUERIES = ("dog", "run*", '"red dog"', "dog AND NOT red", "dgo~1", "*", "10.0.0.1", "Hündchen")


@pytest.mark.parametrize("tokenizer", ["default", "raw", "whitespace", "en_stem"])
def test_values_and_index_agree(tmp_path: Path, tokenizer: str) -> None:
    """A search on values gives the rows that the index gives, or both refuse it."""
    rows = pa.table({"id": range(len(VALUES)), "m": pa.array(VALUES, pa.string())})
    kind = {} if tokenizer == "raw" else {"text": ["m"], "tokenizers": {"m": tokenizer}}
    write_table(rows, str(tmp_path), **kind)
    table = open_table(str(tmp_path))
    note = json.dumps(table.snapshot.table_mapping.get("m").to_dict())
    for verb in ("textsearch", "fieldmatch", "indexquery"):
        for query in QUERIES:
            try:
                where = f"m {verb} '{query}'"
                wanted: Any = sorted(table.to_arrow(where=where)["id"].to_pylist())
            except IndexTablesError:
                wanted = "refused"
            asked = {"verb": verb, "query": query, "type": "string", "name": "m", "note": note}
            try:
                hits = found(pa.array(VALUES, pa.string()), query, planned(asked)).to_pylist()
                mine: Any = [i for i, hit in enumerate(hits) if hit]
            except IndexTablesError:
                mine = "refused"
            assert mine == wanted, (verb, query)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"verb": "textsearch", "query": "a", "type": "long", "name": "x"}, "only text"),
        ({"verb": "textsearchall", "query": "a", "type": "string"}, "every field"),
        ({"verb": "textsearch", "query": "a", "type": "string", "name": "_indexall"}, "every"),
        ({"verb": "textsearch", "type": "string", "name": "x"}, "known while Spark plans"),
        ({"verb": "textsearch", "query": "(a", "type": "string", "name": "x"}, "no '\\)'"),
        ({"verb": "indexquery", "query": "other:a", "type": "string", "name": "x"}, "other"),
    ],
)
def test_what_cannot_be_answered_is_refused_while_planning(
    asked: dict[str, Any], reason: str
) -> None:
    with pytest.raises(IndexTablesError, match=reason):
        planned(asked)
