"""What Spark itself answers: a table of hard values, predicates, and the rows Spark returned.

``python tests/expr/spark_truth.py`` asks a local Spark again and rewrites the answers; the tests
only read them.
"""

from __future__ import annotations

import json
import math
import tempfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

ANSWERS = Path(__file__).parents[1] / "data" / "expr" / "spark_truth.json"
ZONES = ("UTC", "America/New_York")

SCHEMA = pa.schema(
    [
        ("id", pa.int32()),
        ("i", pa.int32()),
        ("l", pa.int64()),
        ("d", pa.float64()),
        ("r", pa.float32()),
        ("dec", pa.decimal128(10, 2)),
        ("s", pa.string()),
        ("num", pa.string()),
        ("b", pa.bool_()),
        ("dt", pa.date32()),
        ("ts", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("us")),
        ("bin", pa.binary()),
        ("st", pa.struct([("x", pa.int32()), ("y", pa.string())])),
        ("tags", pa.list_(pa.string())),
        ("nums", pa.list_(pa.int64())),
        ("reals", pa.list_(pa.float64())),
        ("m", pa.map_(pa.string(), pa.int32())),
        ("js", pa.string()),
    ]
)


JSON_TEXTS = [
    '{"a": {"b": [1, 2.50, "x"]}, "n": null, "a b": true, "z": -0, "big": 123456789012345678901}',
    "{'a': {'b': [10]}, \"it's\": 1} and more",
    '{"a": 1, "a": 2, "b": "caf\u00e9 \\u00e9 \\"q\\" \\n", "t": "tab\there"}',
    None,
    "not json",
    '[{"a": 1}, {"a": 1e3}, {"a": 1.0E-5}, 0.001, 1234567.5, 12345678.5, 1e400]',
    '  {"a": {"c": {"d": "\\u001f/\\b"}}, "b": [[], {}, [null]]}',
    '{"a": {"b": [1, 2}}',
    '"plain"',
    '{"a": null, "a": 5, "b": {"a": [1,2,3]}, "x": 1.10, "y": NaN}',
]


def _micros(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1)).total_seconds() * 1e6)


def table() -> pa.Table:
    """The rows; ``id`` is the row number."""
    moments = [
        datetime(2024, 1, 1, 5), datetime(2024, 3, 10, 7, 30, 0, 123456),
        datetime(1969, 12, 31, 23), datetime(2024, 11, 3, 5, 30),
        datetime(2024, 11, 3, 6, 30), None, datetime(1850, 6, 1),
        datetime(2024, 1, 1, 0, 0, 0, 1), datetime(2023, 12, 31, 23, 59, 59, 999999),
        datetime(2024, 7, 14, 13, 5, 9),
    ]  # fmt: skip
    columns: dict[str, list[Any]] = {
        "i": [0, 1, -1, None, 2**31 - 1, -(2**31), 7, -7, 10, 3],
        "l": [0, 2**53, 2**53 + 1, None, 2**63 - 1, -(2**63), 7, -8, 10, 3],
        "d": [0.0, -0.0, math.nan, None, math.inf, -math.inf, 1.5, -7.25, 1e300, 2.0**53],
        "r": [0.0, -0.0, math.nan, None, math.inf, -math.inf, 1.1, 0.1, 16777216.0, 2.5],
        "dec": [*(Decimal(t) for t in ("0.00", "0.10", "-1.01", "1.00", "99999999.99")), None,
                *(Decimal(t) for t in ("9.50", "10.25", "0.01", "1.50"))],
        "s": ["", "abc", "ABC", None, "a_c", "a%c", "straße", " x ", "\U0001f600z", "a\nc"],
        "num": ["0", " 7 ", "-1", None, "+5", "12", "007", "3", "9", "2147483648"],
        "b": [True, False, None, True, False, True, None, False, True, False],
        "dt": [date(2024, 1, 1), date(1969, 12, 31), None, date(2024, 2, 29), date(2023, 12, 31),
               date(1582, 10, 15), date(2024, 11, 3), date(2024, 3, 10), date(9999, 12, 31),
               date(2024, 7, 14)],
        "bin": [b"", b"abc", b"\xff", None, b"\x00", b"abd", b"a", b"ab", b"ABC", b"\x80"],
        "st": [{"x": 1, "y": "p"}, {"x": None, "y": "q"}, None, {"x": 3, "y": None},
               {"x": 1, "y": ""}, None, {"x": -1, "y": "p"}, {"x": 7, "y": "P"},
               {"x": 2, "y": "p%"}, {"x": 3, "y": "z"}],
        "tags": [["a", "b"], [], None, ["a", None], [None], ["b"], ["a"], ["c", "c"], ["A"], [""]],
        "nums": [[1, 2], [], None, [1, None], [None], [2**40], [3], [-1], [0], [1]],
        "reals": [[1.5], [math.nan], None, [0.0, None], [None], [-0.0], [1e300], [2.0], [], [7.0]],
        "m": [[("a", 1)], [], None, [("a", None), ("b", 2)], [("c", 3)], None, [("d", 4)], [],
              [("e", 5)], [("a", 1), ("b", 2), ("c", 3)]],
        "js": JSON_TEXTS,
    }  # fmt: skip
    stamps = [None if m is None else _micros(m) for m in moments]
    arrays: list[pa.Array] = [pa.array(range(10), pa.int32())]
    for field in list(SCHEMA)[1:]:
        if field.name in ("ts", "n"):
            arrays.append(pa.array(stamps, pa.int64()).cast(field.type))
        else:
            arrays.append(pa.array(columns[field.name], field.type))
    return pa.table(arrays, schema=SCHEMA)


PREDICATES = [
    line
    for line in (Path(__file__).parents[1] / "data" / "expr" / "predicates.sql")
    .read_text(encoding="utf-8")
    .split("\n")
    if line and not line.startswith("--")
]


def _ask(spark: Any, predicate: str) -> list[int] | str:
    try:
        rows = spark.sql(f"SELECT id FROM truth WHERE {predicate}").collect()
    except Exception as error:
        return f"ERROR {type(error).__name__}"
    return sorted(row[0] for row in rows)


def main() -> None:
    import pyarrow.parquet as pq
    from pyspark.sql import SparkSession

    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session.config("spark.sql.parquet.filterPushdown", "false")  # it loses NaN rows
    spark = session.config("spark.log.level", "OFF").getOrCreate()
    answers: dict[str, dict[str, list[int] | str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        pq.write_table(table(), f"{folder}/t.parquet", store_schema=False)
        for zone in ZONES:
            spark.conf.set("spark.sql.session.timeZone", zone)
            spark.read.parquet(f"{folder}/t.parquet").createOrReplaceTempView("truth")
            answers[zone] = {p: _ask(spark, p) for p in PREDICATES}
    lines = []
    for zone in ZONES:
        body = ",\n".join(f"{json.dumps(p)}: {json.dumps(a)}" for p, a in answers[zone].items())
        lines.append(f"{json.dumps(zone)}: {{\n{body}\n}}")
    ANSWERS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
