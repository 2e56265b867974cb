"""What can be computed here and what is left to Spark; zones; regular expressions; casts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from indextables.errors import ConfigError, EvaluationError, PlanningError, TypeMismatchError
from indextables.expr import filters as f
from indextables.expr import timetext
from indextables.expr.bind import bind
from indextables.expr.coercion import NotComputableError
from indextables.expr.column import col, fieldmatch, lit
from indextables.expr.evaluate import can_evaluate, evaluate
from indextables.expr.javaregex import to_regex

BATCH = pa.record_batch(
    {
        "i": pa.array([1, -2, None], pa.int32()),
        "l": pa.array([1, 2**62, None], pa.int64()),
        "d": pa.array([0.5, -1.0, None], pa.float64()),
        "r": pa.array([0.5, 0.1, None], pa.float32()),
        "dec": pa.array([1, 2, None], pa.decimal128(20, 10)),
        "wide": pa.array([1, 2, None], pa.decimal128(38, 0)),
        "s": pa.array(["12", "x", None]),
        "b": pa.array([True, False, None]),
        "dt": pa.array([0, 19723, None], pa.int32()).cast(pa.date32()),
        "ts": pa.array([0, -1, None], pa.timestamp("us", "UTC")),
        "n": pa.array([0, -1, None], pa.timestamp("us")),
        "bin": pa.array([b"12", b"\xff", None]),
        "arr": pa.array([[1], [], None], pa.list_(pa.int32())),
    }
)


def bound(source: Any) -> Any:
    return bind(source, BATCH.schema)


def truth(source: Any) -> list[bool | None]:
    values: list[bool | None] = evaluate(bound(source), BATCH).to_pylist()
    return values


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("CAST(s AS STRING) = '12'", [True, False, None]),
        ("CAST(s AS BINARY) = bin", [True, False, None]),
        ("CAST(b AS INT) + 1 = 2", [True, False, None]),
        ("try_cast(s AS DOUBLE) = 12", [True, None, None]),
        ("try_cast(s AS DATE) IS NULL", [True, True, True]),
        ("try_cast(s AS BOOLEAN) IS NULL", [True, True, True]),
        ("CAST(i AS DOUBLE) = d * 2", [True, True, None]),
        ("CAST(CAST(i AS STRING) AS INT) = i", [True, True, None]),
        ("CAST(dt AS TIMESTAMP) = ts", [True, False, None]),
        ("dec > i", [False, True, None]),
        ("i + 1 < 2.5D", [True, True, None]),
        ("-i = -1", [True, False, None]),
        ("- d = 1", [False, True, None]),
        ("abs(d) = 1", [False, True, None]),
        ("length(bin) = 2", [True, False, None]),
        ("concat(s, i, b, dt) = '121true1970-01-01'", [True, False, None]),
        ("concat(s, NULL) IS NULL", [True, True, True]),
        ("coalesce(NULL, i) = 1", [True, False, None]),
        ("i IN (1, l)", [True, False, None]),
        ("lower(s) IN ('x', NULL)", [None, True, None]),
        ("arr IS NULL OR length(s) = 2", [True, False, True]),
        ("i LIKE '1%'", [True, False, None]),
        ("upper(s) LIKE 'X'", [False, True, None]),
        ("startswith(lower(s), 'x')", [False, True, None]),
        ("contains(upper(s), 'X') OR endswith(upper(s), '2')", [True, True, None]),
        ("s ILIKE 'X_'", [False, False, None]),
        ("CASE WHEN NULL THEN 1 ELSE 2 END = 2", [True, True, True]),
        ("if(b, 1, 2) = 1", [True, False, False]),
        ("hour(dt) = 0", [True, True, None]),
        ("ts < now() AND dt < current_date() + INTERVAL 1 DAY", [True, True, None]),
        ("char_length(s) = 1 AND ucase(s) = lcase(upper(s))", [False, False, None]),
        ("i <=> l", [True, False, True]),
        ("(i = 1) = (l = 1)", [True, True, None]),
        ("(i > 0 OR l > 0) = (d > 0)", [True, False, None]),
        ("(b AND NOT b) IS NULL", [False, False, True]),
        ("s BETWEEN '1' AND '2'", [True, False, None]),
        ("mod(i, 2) = 1", None),
        ("i & 1 = 1", None),
    ],
)
def test_computed(source: str, expected: list[bool | None] | None) -> None:
    made = bound(source)
    assert can_evaluate(made) == (expected is not None) or source.startswith("mod")
    if expected is not None:
        got = evaluate(made, BATCH).to_pylist()
        assert [v is True for v in got] == [v is True for v in expected], made


@pytest.mark.parametrize(
    "source",
    [
        "soundex(s) = 'x'",
        "arr = array(1)",
        "arr[0] = 1",
        "CAST(d AS STRING) = '0.5'",
        "CAST(dec AS STRING) = '1'",
        "CAST(arr AS STRING) = '1'",
        "CAST(i AS BOOLEAN)",
        "CAST(s AS ARRAY<INT>) IS NULL",
        "wide = dec",
        "dec + 1 = 2",
        "r + 1 = 2",
        "i + s = 2",
        "i / dec = 1",
        "i div d = 1",
        "abs(s) = 1",
        "-s = 1",
        "date_trunc('century', ts) = ts",
        "date_trunc(s, ts) = ts",
        "s LIKE s",
        "s RLIKE s",
        "d LIKE '1%'",
        "substring(s, d) = 'x'",
        "concat(s, d) = 'x'",
        "coalesce(i, s) = 1",
        "trim(BOTH 'x' FROM s) = ''",
        "to_date(s, 'yyyy') = dt",
        "if(i, 1, 2) = 1",
        "length(i, i) = 1",
        "b = dt",
        "ts + (INTERVAL 1 MONTH + INTERVAL 1 DAY) > ts",
        "s RLIKE '(?<=a)b'",
        "s RLIKE '(a)\\\\1'",
        "s RLIKE 'a++'",
        "s RLIKE '\\\\p{L}'",
        "EXISTS(SELECT 1)",
    ],
)
def test_left_to_spark(source: str) -> None:
    assert not can_evaluate(bound(source))


@pytest.mark.parametrize(
    "source",
    [
        "l * 4 > 0",
        "l + l > 0 AND l * 2 > 0",
        "i / 0 = 1",
        "i div 0 = 1",
        "i % 0 = 1",
        "d / 0 = 1",
        "CAST(s AS INT) = 1",
        "CAST(l AS INT) = 1",
        "CAST(s AS DATE) = dt",
        "s = dt",
    ],
)
def test_ansi_errors_are_raised(source: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(bound(source), BATCH)


def test_constant_errors_are_raised_at_binding() -> None:
    for source in ("i = 1 / 0", "i = CAST('x' AS INT)", "dec = CAST(99999 AS DECIMAL(3,1))"):
        with pytest.raises(TypeMismatchError):
            bound(source)
    with pytest.raises(TypeMismatchError):
        bound("i = CAST(300 AS TINYINT)")


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("i = 2 - 1", "i = 1"),
        ("i = length('x')", "i = 1"),
        ("s = lower('X')", "s = 'x'"),
        ("s = concat('1', '2')", "s = '12'"),
        ("s = CAST(12 AS STRING)", "s = '12'"),
        ("bin = CAST('ab' AS BINARY)", "bin = b'ab'"),
        ("d = CAST('0.5' AS FLOAT)", "d = 0.5"),
        ("d = CAST(2 AS DOUBLE) / 4", "d = 0.5"),
        ("dec = CAST(0.25 AS DECIMAL(3,1))", "dec = 3000000000"),
        ("dec = CAST('-0.25' AS DECIMAL(3,1))", "dec = -3000000000"),
        ("dec = CAST(0.1D AS DECIMAL(3,1))", "dec = 1000000000"),
        ("i = CAST(1.9 AS INT)", "i = 1"),
        ("i = CAST(-1.9D AS INT)", "i = -1"),
        ("b = CAST('t' AS BOOLEAN)", "b = True"),
        ("dt = CAST(TIMESTAMP '2024-01-01 23:00:00' AS DATE)", "dt = 19723"),
        ("dt = CAST(TIMESTAMP_NTZ '2024-01-01 23:00:00' AS DATE)", "dt = 19723"),
        ("n = CAST(TIMESTAMP '1970-01-01 00:00:01' AS TIMESTAMP_NTZ)", "n = 1000000"),
        ("dt = DATE '2024-01-31' + INTERVAL 1 MONTH", "dt = 19782"),
        ("dt = DATE '2024-02-29' - INTERVAL 1 YEAR", "dt = 19416"),
        ("dt = DATE '2024-01-01' + INTERVAL 1 WEEK", "dt = 19730"),
        ("n = TIMESTAMP_NTZ '1970-01-01 00:00:00' + INTERVAL 2 MINUTES", "n = 120000000"),
        ("n = TIMESTAMP_NTZ '1970-01-01 00:00:00' + INTERVAL 1 DAY", "n = 86400000000"),
        ("ts = date_trunc('year', TIMESTAMP '1970-06-01 00:00:00')", "ts = 0"),
        ("CASE WHEN 1 > 2 THEN false ELSE true END", "TRUE"),
        ("NULL = 1", "NULL"),
        ("lower(NULL) = 'x'", "NULL"),
        ("2 IN (1, 2)", "TRUE"),
        ("'abc' RLIKE '^a.c$'", "TRUE"),
        ("isnan(double('NaN'))", "TRUE"),
        ("year(DATE '2024-05-05') = 2024 AND quarter(DATE '2024-05-05') = 2", "TRUE"),
        ("second(TIMESTAMP '2024-05-05 01:02:03') = 3", "TRUE"),
    ],
)
def test_constants_are_folded(source: str, expected: str) -> None:
    assert repr(bound(source)) == expected


# -- Python operators -----------------------------------------------------------------------------


def test_python_operators() -> None:
    assert truth(col("i") + 1 == 2) == [True, False, None]
    assert truth(col("i") - 1 == 0) == [True, False, None]
    assert truth(col("i") * 2 == -4) == [False, True, None]
    assert truth(col("i") / 2 == 0.5) == [True, False, None]
    assert truth(col("i") % 2 == 1) == [True, False, None]
    assert truth(-col("i") == 2) == [False, True, None]
    assert truth(col("s").cast(pa.binary()) == col("bin")) == [True, False, None]
    assert truth(col("s").call("LENGTH") == 2) == [True, False, None]
    assert truth(f.EqualTo("i", 1) & (col("b"))) == [True, False, None]
    assert truth((col("i") == 1) | f.EqualTo("i", -2)) == [True, True, None]
    assert truth(True & (col("i") == 1)) == [True, False, None]
    assert truth(False | (col("i") == 1)) == [True, False, None]
    assert truth(~f.EqualTo("i", 1) | f.IsNull("i")) == [False, True, True]
    assert f.parse_filters(fieldmatch("x")) == f.FieldMatch("*", "x")
    assert repr(lit(b"\x01")) == "X'01'"
    assert repr(f.Unsupported("odd()")) == "odd()"
    with pytest.raises(PlanningError, match="has no field"):
        (col("i") == 1)["x"]
    for wrong in (5, None):
        with pytest.raises(PlanningError):
            f.EqualTo(wrong, 1)
    with pytest.raises(PlanningError, match="not a condition"):
        f.And("a", "b")
    for name in ("", "a..b", "a b`", "`a"):
        with pytest.raises(PlanningError):
            f.Attribute(name)


def test_values_of_other_libraries() -> None:
    assert truth(col("i") == pa.scalar(1)) == [True, False, None]
    assert truth(col("bin") == bytearray(b"12")) == [True, False, None]
    with pytest.raises(TypeMismatchError):
        bound(col("i") == object())
    with pytest.raises(TypeMismatchError):
        bound(col("dec") == f.Lit(__import__("decimal").Decimal("NaN")))


# -- zones ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "minutes"),
    [
        ("UTC", 0),
        ("Z", 0),
        ("+02:00", 120),
        ("-05:30", -330),
        ("GMT+8", 480),
        ("UTC-1", -60),
        ("+0130", 90),
        ("EST", -300),
        ("Asia/Kolkata", 330),
        ("IST", 330),
    ],
)
def test_zone_names(name: str, minutes: int) -> None:
    moment = datetime(2024, 1, 1, tzinfo=UTC)
    assert timetext.zone(name).utcoffset(moment.replace(tzinfo=None)) == timedelta(minutes=minutes)


@pytest.mark.parametrize("name", ["Nowhere/City", "+25:00", "+01:99", "", "../etc/passwd"])
def test_unknown_zones(name: str) -> None:
    with pytest.raises(ConfigError):
        timetext.zone(name)
    with pytest.raises(ConfigError):
        bind("i = 1", BATCH.schema, time_zone=name)


def test_texts_that_are_no_times() -> None:
    for text in (
        "",
        "24",
        "2024-",
        "2024-01-01x",
        "2024-01-01 25:00:00",
        "2024-01-01 00:00:00 Mars",
    ):
        assert timetext.parse_timestamp(text, UTC) is None
    assert timetext.parse_timestamp("294248-01-01", UTC) is None
    assert timetext.parse_date("9999999-01-01") is None
    assert timetext.format_date(timetext.days_from_civil(-1, 2, 3)) == "-0001-02-03"
    assert timetext.format_date(timetext.days_from_civil(12345, 2, 3)) == "+12345-02-03"


# -- Java's regular expressions -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("a.c", "a\nc", False),
        ("a.c", "a\u2028c", False),
        ("(?s)a.c", "a\nc", True),
        ("c$", "c\n", True),
        ("c$", "c\r\n", True),
        ("c$", "c\n\n", False),
        ("^c", "bc", False),
        (r"\d", "٣", False),
        (r"\w+", "é", False),
        ("(?i)ABC", "abc", True),
        ("[^a-c]", "abc", False),
        (r"[\d\-]", "-", True),
        ("a{2,3}?", "aa", True),
        ("(?:ab)+", "abab", True),
        (r"\.", ".", True),
        (r"\/", "/", True),
        ("", "x", True),
    ],
)
def test_java_regex(pattern: str, text: str, found: bool) -> None:
    assert to_regex(pattern).found_in(pa.array([text, None])).to_pylist() == [found, None]


@pytest.mark.parametrize(
    "pattern",
    [
        "(?=a)",
        "a*+",
        r"\bx",
        r"\Qx",
        "[a&&b]",
        "[[a]]",
        "[]a]",
        "[a^b]",
        "(?i)é",
        "a)",
        "(",
        r"[\p{L}]",
    ],
)
def test_java_regex_left_to_spark(pattern: str) -> None:
    with pytest.raises(NotComputableError):
        to_regex(pattern)
