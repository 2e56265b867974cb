"""Four spellings, one bound tree; readable text; clear errors."""

from __future__ import annotations

import base64
import json
import math
import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from spelling import attr, bound, node, value

from indextables.errors import PlanningError
from indextables.expr import filters as f
from indextables.expr.column import col, lit
from indextables.expr.filters import parse_filters
from indextables.expr.predicate import Undecided

NEW_YEAR = datetime(2024, 1, 1, 5, tzinfo=UTC)
MICROS = 1_704_085_200_000_000

# SQL, Python, PySpark (as a function of its module, None where it cannot say it), nested JSON
SPELLINGS: list[tuple[str, Any, Any, Any]] = [
    (
        "a = 5",
        col("a") == 5,
        lambda p: p.EqualTo(("a",), 5),
        node("EqualTo", attr("a"), value("integer", 5)),
    ),
    (
        "a <> 5",
        col("a") != 5,
        lambda p: p.Not(p.EqualTo(("a",), 5)),
        node("Not", node("EqualTo", attr("A"), value("integer", "5"))),
    ),
    (
        "a >= 1 AND b < 'x'",
        (col("a") >= 1) & (col("b") < "x"),
        lambda p: [
            p.IsNotNull(("a",)),
            p.IsNotNull(("b",)),
            p.GreaterThanOrEqual(("a",), 1),
            p.LessThan(("b",), "x"),
        ],
        [
            node("IsNotNull", attr("a")),
            node("GreaterThanOrEqual", attr("a"), value("integer", 1)),
            node("LessThan", attr("b"), value("string", "x")),
        ],
    ),
    (
        "a = 1 OR a = 2 OR a IN (3)",
        (col("a") == 1) | (col("a") == 2) | col("a").isin(3),
        lambda p: p.In(("a",), [3, 1, 2]),
        node("In", attr("a"), *(value("integer", v) for v in (1, 2, 3))),
    ),
    (
        "a IN (1, NULL, 2)",
        col("a").isin([1, None, 2]),
        lambda p: p.In(("a",), (1, None, 2)),
        {"op": "InSet", "type": "integer", "children": [attr("a")], "values": [2, None, 1]},
    ),
    (
        "a NOT IN (1, NULL)",
        ~col("a").isin([1, None]),
        lambda p: p.Not(p.In(("a",), (1, None))),
        node("Not", node("In", attr("a"), value("integer", 1), value("void", None))),
    ),
    (
        "b <=> NULL",
        col("b").eq_null_safe(None),
        lambda p: p.EqualNullSafe(("b",), None),
        node("EqualNullSafe", attr("b"), value("string", None)),
    ),
    (
        "NOT (a <=> 5)",
        ~col("a").eq_null_safe(5),
        lambda p: p.Not(p.EqualNullSafe(("a",), 5)),
        node("Not", node("EqualNullSafe", attr("a"), value("integer", 5))),
    ),
    (
        "b IS NULL",
        col("b").is_null(),
        lambda p: p.IsNull(("b",)),
        node("IsNull", attr("b")),
    ),
    (
        "b LIKE 'ab%'",
        col("b").startswith("ab"),
        lambda p: p.StringStartsWith(("b",), "ab"),
        node("StartsWith", attr("b"), value("string", "ab")),
    ),
    (
        "b LIKE '%ab'",
        col("b").endswith("ab"),
        lambda p: p.StringEndsWith(("b",), "ab"),
        node("EndsWith", attr("b"), value("string", "ab")),
    ),
    (
        "b LIKE '%ab%'",
        col("b").contains("ab"),
        lambda p: p.StringContains(("b",), "ab"),
        node("Contains", attr("b"), value("string", "ab")),
    ),
    (
        "b LIKE 'a!_%z' ESCAPE '!'",
        col("b").like("a\\_%z"),
        None,
        node("Like", attr("b"), value("string", "a!_%z"), escape="!"),
    ),
    (
        "ts >= TIMESTAMP '2024-01-01 00:00:00'",
        col("ts") >= datetime(2024, 1, 1),
        lambda p: p.GreaterThanOrEqual(("ts",), NEW_YEAR),
        node("GreaterThanOrEqual", attr("ts"), value("timestamp", MICROS)),
    ),
    (
        "n = TIMESTAMP_NTZ '2024-01-01 05:00:00'",
        col("n") == "2024-01-01 05:00:00",
        lambda p: p.EqualTo(("n",), datetime(2024, 1, 1, 5)),
        node("EqualTo", attr("n"), value("timestamp_ntz", MICROS)),
    ),
    (
        "dt < DATE '1969-12-31'",
        col("dt") < date(1969, 12, 31),
        lambda p: p.LessThan(("dt",), date(1969, 12, 31)),
        node("LessThan", attr("dt"), value("date", -1)),
    ),
    (
        "dec = 1.5",
        col("dec") == Decimal("1.50"),
        lambda p: p.EqualTo(("dec",), Decimal("1.50")),
        node("EqualTo", attr("dec"), value("decimal(2,1)", "1.5")),
    ),
    (
        "f = CAST('NaN' AS DOUBLE)",
        col("f") == math.nan,
        lambda p: p.EqualTo(("f",), math.nan),
        node("EqualTo", attr("f"), value("double", "NaN")),
    ),
    (
        "r = 1.1F",
        col("r") == f.Lit(1.1, pa.float32()),
        lambda p: p.EqualTo(("r",), 1.100000023841858),
        node("EqualTo", attr("r"), value("float", 1.1)),
    ),
    (
        "bin = X'01FF'",
        col("bin") == b"\x01\xff",
        lambda p: p.EqualTo(("bin",), b"\x01\xff"),
        node("EqualTo", attr("bin"), value("binary", base64.b64encode(b"\x01\xff").decode())),
    ),
    (
        "NOT bo",
        ~col("bo"),
        lambda p: p.Not(p.EqualTo(("bo",), True)),
        node("Not", attr("bo")),
    ),
    (
        "s.y.z = 'q'",
        col("s")["y"]["z"] == "q",
        lambda p: p.EqualTo(("s", "y", "z"), "q"),
        node("EqualTo", attr("s", "y", "z"), value("string", "q")),
    ),
    (
        "NOT (a = 1 AND b = 'x')",
        ~((col("a") == 1) & (col("b") == "x")),
        None,
        node(
            "Not",
            node(
                "And",
                node("EqualTo", attr("a"), value("integer", 1)),
                node("EqualTo", attr("b"), value("string", "x")),
            ),
        ),
    ),
    (
        "5 < a",
        lit(5) < col("a"),
        lambda p: p.GreaterThan(("a",), 5),
        node("LessThan", value("integer", 5), attr("a")),
    ),
    (
        "a BETWEEN 1 AND 9",
        col("a").between(1, 9),
        lambda p: [p.GreaterThanOrEqual(("a",), 1), p.LessThanOrEqual(("a",), 9)],
        [
            node("GreaterThanOrEqual", attr("a"), value("long", 1)),
            node("LessThanOrEqual", attr("a"), value("long", 9)),
        ],
    ),
    (
        "lower(b) = 'x'",
        col("b").call("lower") == "x",
        None,
        node("EqualTo", node("Lower", attr("b")), value("string", "x")),
    ),
    (
        "b = 1",
        col("b") == 1,
        None,
        node("EqualTo", node("Cast", attr("b"), type="long"), value("long", 1)),
    ),
    (
        "a = l",
        col("a") == col("l"),
        None,
        node("EqualTo", node("Cast", attr("a"), type="long"), attr("l")),
    ),
    (
        "CASE WHEN a > 1 THEN b ELSE 'z' END = 'z'",
        f.EqualTo(f.Function("case", (f.GreaterThan("a", 1), f.Attribute("b"), f.Lit("z"))), "z"),
        None,
        node(
            "EqualTo",
            node(
                "CaseWhen",
                node("GreaterThan", attr("a"), value("integer", 1)),
                attr("b"),
                value("string", "z"),
            ),
            value("string", "z"),
        ),
    ),
]


@pytest.mark.parametrize("spelling", SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_the_same_predicate_gives_the_same_tree(spelling: tuple[str, Any, Any, Any]) -> None:
    sql, python, _, nested = spelling
    expected = bound(sql)
    assert bound(python) == expected
    assert bound(nested) == expected
    assert bound(json.dumps(nested)) == expected


@pytest.mark.parametrize("spelling", SPELLINGS, ids=[s[0] for s in SPELLINGS])
def test_pyspark_filters_give_the_same_tree(spelling: tuple[str, Any, Any, Any]) -> None:
    datasource = pytest.importorskip("pyspark.sql.datasource")
    sql, _, build, _ = spelling
    if build is None:
        pytest.skip("PySpark has no filter class for it")
    assert bound(build(datasource)) == bound(sql)


def catalyst_vectors() -> dict[str, Any]:
    path = Path(__file__).parents[1] / "data" / "expr" / "catalyst.json"
    vectors: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return vectors


LOST_IN_TO_JSON = ("like 'ab%'", "like 'a_b'", "like 'abc'", "X'1F'")
ANALYSED_DIFFERENTLY = {
    "l > 1.5": "l > 1",
    "l = 9007199254740993D": "(l >= 9007199254740992 AND l <= 9007199254740993)",
}


@pytest.mark.parametrize(("sql", "nodes"), catalyst_vectors().items())
def test_catalyst_to_json_gives_the_same_tree(sql: str, nodes: list[Any]) -> None:
    """The JSON was written by Spark's ``Expression.toJSON`` for these predicates."""
    made = bound(nodes)
    if any(lost in sql for lost in LOST_IN_TO_JSON):
        assert isinstance(made, Undecided)
        assert made.expression is None
    elif sql in ANALYSED_DIFFERENTLY:
        assert repr(made) == ANALYSED_DIFFERENTLY[sql]
    else:
        assert made == bound(sql)


def test_a_repeated_wall_time_in_to_json_is_not_guessed() -> None:
    def compared(text: str) -> Any:
        package = "org.apache.spark.sql.catalyst.expressions."
        return bound(
            [
                {"class": package + "EqualTo", "num-children": 2, "left": 0, "right": 1},
                {"class": package + "AttributeReference", "num-children": 0, "name": "ts"},
                {
                    "class": package + "Literal",
                    "num-children": 0,
                    "value": text,
                    "dataType": "timestamp",
                },
            ]
        )

    assert isinstance(compared("2024-11-03 01:30:00"), Undecided)
    assert compared("2024-11-03 02:30:00") == bound("ts = '2024-11-03 02:30:00'")


# -- shape ----------------------------------------------------------------------------------------


def test_filters_read_like_sql() -> None:
    made = (col("a") == 5) & ~col("b").isin("x", "it's") | col("s.y").is_null()
    assert repr(made) == "((a = 5 AND NOT (b IN ('x', 'it\\'s'))) OR s.y IS NULL)"
    assert repr(f.EqualTo("a", 1) & f.Not(f.IsNull("b"))) == "(a = 1 AND NOT (b IS NULL))"
    assert repr(f.Attribute(("odd name", "x"))) == "`odd name`.x"


def test_filters_are_values() -> None:
    assert f.EqualTo("a", 1) == f.EqualTo(f.Attribute("a"), f.Lit(1))
    assert f.EqualTo("a", 1) != f.LessThan("a", 1)
    assert len({f.EqualTo("a", 1), f.EqualTo("a", 1), f.In("a", [1])}) == 2
    with pytest.raises(AttributeError):
        f.EqualTo("a", 1).left = f.Attribute("b")  # type: ignore[misc]


def test_lists_are_conjunctions() -> None:
    assert parse_filters(["a = 1", col("b") == "x"]) == f.And(
        f.EqualTo("a", 1), f.EqualTo("b", "x")
    )
    assert parse_filters([]) == f.AlwaysTrue()


def test_a_column_condition_has_no_truth_value() -> None:
    with pytest.raises(PlanningError, match="instead of and"):
        bool(col("a") == 1)


def test_pyspark_and_sqlglot_are_imported_only_when_needed() -> None:
    code = (
        "import sys, pyarrow as pa\n"
        "from indextables.expr.bind import bind\n"
        "from indextables.expr.column import col\n"
        "bind(col('a') == 1, pa.schema([('a', pa.int32())]))\n"
        "assert not {'pyspark', 'sqlglot', 'pandas'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
