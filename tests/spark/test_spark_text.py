"""Text searches in SQL and DataFrames: operators, scores, errors at planning."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from spark_world import World

from indextables.functions import (
    date_histogram,
    fieldmatch,
    fieldmatchall,
    histogram,
    indexquery,
    indexqueryall,
    ranges,
    score,
    textsearch,
    textsearchall,
)
from indextables.spark.sql.rewrite import rewritten


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a TEXTSEARCH 'x'", "textsearch(a, 'x')"),
        ("t.a.b textsearch 'x y'", "textsearch(t.a.b, 'x y')"),
        ('`odd name` FieldMatch "x"', 'fieldmatch(`odd name`, "x")'),
        ("* indexquery 'x'", "indexquery(_indexall, 'x')"),
        ("a NOT TEXTSEARCH 'x' AND b = 1", "(NOT textsearch(a, 'x')) AND b = 1"),
        ("a TEXTSEARCH 'it''s \\' ok'", "textsearch(a, 'it''s \\' ok')"),
        ("textsearch TEXTSEARCH 'x'", "textsearch(textsearch, 'x')"),
        ("a TEXTSEARCH :q", "textsearch(a, :q)"),
        ("a = 'b TEXTSEARCH ''c'''", "a = 'b TEXTSEARCH ''c'''"),
        ("a = 1 -- a TEXTSEARCH 'x'", "a = 1 -- a TEXTSEARCH 'x'"),
        ("/* a TEXTSEARCH 'x' */ b", "/* a TEXTSEARCH 'x' */ b"),
        ("select textsearch from t", "select textsearch from t"),
        ("textsearch(a, 'x')", "textsearch(a, 'x')"),
        ("a /* c */ TEXTSEARCH /* d */ 'x'", "textsearch(a, 'x')"),
        ("(a TEXTSEARCH 'x' OR b FIELDMATCH 'y')", "(textsearch(a, 'x') OR fieldmatch(b, 'y'))"),
        ("NOT a TEXTSEARCH 'x'", "NOT textsearch(a, 'x')"),
        ("textsearchall('x') OR b = 1", "textsearch(_indexall, 'x') OR b = 1"),
        ("tantivy4spark_indexqueryall(:q)", "indexquery(_indexall, :q)"),
        ("tantivy4spark_fieldmatch('a', 'x')", "fieldmatch(`a`, 'x')"),
        ("select textsearchall from t", "select textsearchall from t"),
        ("textsearchall(", "textsearchall("),
    ],
)
def test_rewriting(text: str, wanted: str) -> None:
    assert rewritten(text) == wanted


def test_rewriting_of_buckets() -> None:
    text = rewritten("select INDEXTABLES_histogram(f(a, 'x,)'), 5) from t")
    assert text.startswith("select (CASE WHEN cast(( 5) AS DOUBLE) > 0 AND ")
    assert "cast((f(a, 'x,)')) AS DOUBLE)" in text
    assert text.endswith("END) from t")
    for other in ("indextables_histogram(a)", "indextables_range(a, 'x')", "indextables_histogram(",
                  "create function indextables_histogram(a INT, b INT) returns INT return a",
                  "select indextables_range from t", "'indextables_histogram(a, 1)'"):  # fmt: skip
        assert rewritten(other) == other


def ids(frame: Any) -> list[int]:
    return sorted(r.id for r in frame.select("id").collect())


def containing(world: World, *words: str) -> list[int]:
    rows = world.data.select(["id", "message"]).to_pylist()
    return [r["id"] for r in rows if r["message"] and all(w in r["message"] for w in words)]


def test_in_dataframes(world: World) -> None:
    frame = world.frame("l2")
    assert ids(frame.filter(textsearch("message", "timeout db"))) == containing(
        world, "timeout", "db"
    )
    assert ids(frame.filter(indexquery(frame.message, "disk"))) == containing(world, "disk")
    assert ids(frame.filter(fieldmatch("host", "web-03"))) == [
        r["id"] for r in world.data.select(["id", "host"]).to_pylist() if r["host"] == "web-03"
    ]


def test_every_field(world: World, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "every")
    frame = spark.sql("select * from values (1, 'red fox', 'x'), (2, 'dog', 'red') as t(id, a, b)")
    text = {"spark.indextables.indexing.typemap.text": "a,b"}
    frame.write.format("indextables").options(**text).save(path)
    query = f"select id from indextables.`{path}` where "
    assert ids(spark.sql(query + "* TEXTSEARCH 'red'")) == [1, 2]
    assert ids(spark.sql(query + "not * TEXTSEARCH 'fox'")) == [2]
    assert ids(spark.sql(query + "_indexall TEXTSEARCH 'dog'")) == [2]
    for call in ("textsearchall('red')", "indexqueryall('red')", "not textsearchall('cat')"):
        assert ids(spark.sql(query + call)) == [1, 2]
    assert ids(spark.sql(query + "tantivy4spark_textsearchall('fox')")) == [1]
    assert ids(spark.sql(query + "tantivy4spark_textsearch('a', 'fox') or id = 2")) == [1, 2]
    table = spark.read.format("indextables").load(path)
    assert ids(table.filter(textsearch("*", "fox"))) == [1]
    assert ids(table.filter("textsearchall('fox')")) == [1]
    assert ids(table.filter(textsearchall("fox") | indexqueryall("dog"))) == [1, 2]
    with pytest.raises(Exception, match="tokenised"):
        table.filter(fieldmatchall("red")).collect()
    with pytest.raises(Exception, match="tokenised"):
        spark.sql(f"select id from indextables.`{world.path}` where * TEXTSEARCH 'x'").collect()


def test_or_with_a_plain_filter(world: World) -> None:
    found = ids(world.spark.sql("select id from t_l2 where message TEXTSEARCH 'disk' or id < 5"))
    assert found == sorted({*containing(world, "disk"), *range(5)})


def test_not_and_or_trees(world: World) -> None:
    query = """select id from t_l2 where not (message TEXTSEARCH 'disk' or status = 500)
    and (part = 'a' or message TEXTSEARCH 'login')"""
    rows = world.data.select(["id", "message", "status", "part"]).to_pylist()
    wanted = [
        r["id"]
        for r in rows
        if r["status"] is not None
        and r["status"] != 500
        and "disk" not in (r["message"] or "")
        and (r["part"] == "a" or "login" in (r["message"] or ""))
    ]
    assert ids(world.spark.sql(query)) == wanted


def test_with_an_expression_on_the_same_level(world: World) -> None:
    query = "select id from t_l2 where message TEXTSEARCH 'disk' or upper(host) = 'WEB-01'"
    rows = world.data.select(["id", "message", "host"]).to_pylist()
    wanted = [r["id"] for r in rows if "disk" in (r["message"] or "") or r["host"] == "web-01"]
    assert ids(world.spark.sql(query)) == wanted


@pytest.mark.parametrize(
    "query",
    [
        "with x as (select * from t_l2 where message TEXTSEARCH 'disk') select id from x",
        "select id from (select id, message from t_l2) s where s.message TEXTSEARCH 'disk'",
        "select a.id from t_l2 a join t_l2 b on a.id = b.id where b.message TEXTSEARCH 'disk'",
        "select id from t_l2 where id in (select id from t_l2 where message TEXTSEARCH 'disk')",
    ],
)
def test_in_ctes_subqueries_and_joins(world: World, query: str) -> None:
    assert ids(world.spark.sql(query)) == containing(world, "disk")


def test_in_aggregates_and_views(world: World) -> None:
    spark = world.spark
    wanted = len(containing(world, "disk"))
    count = "select count(*) from t_l2 where message TEXTSEARCH 'disk'"
    assert spark.sql(count).collect()[0][0] == wanted
    spark.sql(
        "create or replace temp view disks as select * from t_l2 where message TEXTSEARCH 'disk'"
    )
    assert spark.sql("select count(*) from disks").collect()[0][0] == wanted


def test_parameters_and_quotes(world: World, spark: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "quotes")
    frame = spark.sql("""select * from values (1, "it's here"), (2, 'say "hi"') as t(id, m)""")
    frame.write.format("indextables").option("spark.indextables.indexing.typemap.m", "text").save(
        path
    )
    query = f"select id from indextables.`{path}` where m textsearch "
    assert ids(spark.sql(query + ":q", args={"q": "hi"})) == [2]
    assert ids(spark.sql(query + "'it\\'s'")) == [1]
    assert ids(spark.sql(query + "'\"say hi\"'")) == [2]


def test_score_orders_by_relevance(world: World) -> None:
    query = f"""select id, _score from indextables.`{world.path}`
    where message TEXTSEARCH 'timeout OR pool' order by _score desc, id limit 5"""
    best = world.spark.sql(query).collect()
    assert all("pool" in world.data["message"][r.id].as_py() for r in best)
    assert best[0]._score > 0
    frame = world.frame("l2").filter(textsearch("message", "disk")).select("id", score())
    assert len(frame.collect()) == len(containing(world, "disk"))


@pytest.mark.parametrize(
    ("condition", "error"),
    [
        ("host TEXTSEARCH 'x'", "host"),
        ("message FIELDMATCH 'x'", "message"),
        ("message TEXTSEARCH '(unclosed'", "unclosed|syntax|expected|position"),
        ("message INDEXQUERY 'nofield:x'", "nofield"),
        ("nofield TEXTSEARCH 'x'", "nofield"),
    ],
)
def test_mistakes_fail_at_planning(world: World, condition: str, error: str) -> None:
    with pytest.raises(Exception, match=error):
        world.spark.sql(f"select id from t_l2 where {condition}")._jdf.queryExecution().sparkPlan()
    assert world.spark.sql("select count(*) from t_l2").collect()[0][0] == 400


def test_a_search_that_reaches_no_scan_is_computed_on_the_values(world: World) -> None:
    spark = world.spark
    want = spark.sql("select count(*) from t_l2 where message TEXTSEARCH 'x OR error'").collect()
    for query in (
        "select count(*) from t_parquet where message TEXTSEARCH 'x OR error'",
        "select count(*) from (select message TEXTSEARCH 'x OR error' hit from t_l2) where hit",
        "select count(*) from (select * from t_l2 limit 999) where message TEXTSEARCH 'x OR error'",
    ):
        assert spark.sql(query).collect() == want
    assert world.frame("l1").filter(textsearch("message", "x OR error")).count() == want[0][0]


def test_buckets(world: World) -> None:
    spark = world.spark
    query = """select indextables_histogram(id, 100) b, count(*) from {t} group by b order by b"""
    assert [tuple(r) for r in spark.sql(query.format(t="t_l2")).collect()] == [
        (0.0, 100), (100.0, 100), (200.0, 100), (300.0, 100)
    ]  # fmt: skip
    query = """select indextables_date_histogram(at, '1h') b, count(*) from {t}
    where at is not null group by b"""
    expected = """select date_trunc('hour', at) b, count(*) from t_parquet
    where at is not null group by b"""
    assert sorted(map(tuple, spark.sql(query.format(t="t_l2")).collect())) == sorted(
        map(tuple, spark.sql(expected).collect())
    )
    query = "select indextables_range(id, 'low', NULL, 10, 'high', 390, NULL) b, count(*) from t_l2"
    found = dict(map(tuple, spark.sql(query + " group by b").collect()))
    assert found == {"low": 10, "high": 10, None: 380}


def test_bucket_functions_of_dataframes(world: World) -> None:
    frame = world.frame("l2").filter("id < 20")
    assert frame.select(histogram("id", 10).alias("b")).distinct().count() == 2
    assert frame.select(date_histogram("at", "1d").alias("b")).dropna().distinct().count() == 1
    found = frame.select(ranges("id", ("a", None, 5), ("b", 5, None)).alias("b")).distinct()
    assert {r.b for r in found.collect()} == {"a", "b"}


@pytest.mark.parametrize(
    "call", ["indextables_histogram(id, 0)", "indextables_date_histogram(at, '1y')"]
)
@pytest.mark.driver_errors("USER_RAISED_EXCEPTION")
def test_wrong_bucket_widths(world: World, call: str) -> None:
    with pytest.raises(Exception, match="the width of"):
        world.spark.sql(f"select {call} from t_l2").collect()
