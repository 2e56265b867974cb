"""Tables that two layers and a Parquet copy share, and how their rows are compared."""

from __future__ import annotations

import datetime as dt
import decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TEXTS = ("timeout in db pool", "connected to db", "user login failed", "disk full", "retry timeout")
LAYERS = ("l1", "l2")
WAYS = ("l1", "l2", "driver")
"""The layers, layer 2 once with every scan in tasks and once with every scan in the driver."""
ALL_IN_TASKS = {"spark.indextables.read.driver.maxSplits": 0}
ALL_IN_DRIVER = {
    "spark.indextables.read.driver.maxSplits": 1000,
    "spark.indextables.read.driver.maxRows": 100_000,
}


def rows(n: int = 400) -> pa.Table:
    """Every supported type, with NULLs and the values that go wrong first."""
    odd = [float("nan"), float("inf"), -0.0, 0.0, -1.5]
    day, moment = dt.date(2024, 1, 1), dt.datetime(2024, 1, 1, 12, 0, 0, 123456)

    def some(i: int, value: Any, every: int = 7) -> Any:
        return None if i % every == 3 else value

    columns = {
        "id": pa.array(range(n), pa.int64()),
        "status": pa.array([some(i, (200, 404, 500)[i % 3]) for i in range(n)], pa.int32()),
        "small": pa.array([i % 100 - 50 for i in range(n)], pa.int16()),
        "ratio": pa.array(
            [some(i, odd[i % 5] if i % 10 < 5 else i / 8) for i in range(n)], pa.float64()
        ),
        "price": pa.array(
            [some(i, decimal.Decimal(i * 25 - 300) / 100) for i in range(n)], pa.decimal128(10, 2)
        ),
        "host": pa.array([some(i, f"web-{i % 11:02d}", 9) for i in range(n)]),
        "message": pa.array([some(i, f"{TEXTS[i % 5]} {i}", 13) for i in range(n)]),
        "ok": pa.array([some(i, i % 2 == 0) for i in range(n)]),
        "day": pa.array([some(i, day + dt.timedelta(i % 60)) for i in range(n)], pa.date32()),
        "at": pa.array(
            [some(i, moment + dt.timedelta(minutes=i)) for i in range(n)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array([moment + dt.timedelta(hours=i) for i in range(n)], pa.timestamp("us")),
        "raw": pa.array([some(i, bytes([i % 256, 7])) for i in range(n)], pa.binary()),
        "who": pa.array(
            [some(i, {"name": f"u{i % 4}", "age": some(i, i % 90, 5)}) for i in range(n)],
            pa.struct([("name", pa.string()), ("age", pa.int32())]),
        ),
        "tags": pa.array(
            [some(i, [f"t{i % 3}", None, f"t{i % 5}"]) for i in range(n)], pa.list_(pa.string())
        ),
        "attrs": pa.array(
            [some(i, [("k", i), (f"k{i % 2}", None)]) for i in range(n)],
            pa.map_(pa.string(), pa.int64()),
        ),
        "part": pa.array([("a", "b", None, "c d")[i // (n // 4 or 1) % 4] for i in range(n)]),
    }
    return pa.table(columns)


class World:
    """The same rows as a table and as Parquet, as views of a session."""

    def __init__(self, spark: Any, folder: Path) -> None:
        from indextables.table import write_table

        self.spark = spark
        self.data = rows()
        self.path = str(folder / "table")
        self.parquet = str(folder / "copy.parquet")
        write_table(
            self.data, self.path, partition_by=["part"], text=["message"], rows_per_split=25
        )
        pq.write_table(self.data, self.parquet)
        spark.read.parquet(self.parquet).cache().createOrReplaceTempView("t_parquet")
        for way, splits, more in (
            ("l1", 8, {}),
            ("l2", 4, ALL_IN_TASKS),
            ("driver", 4, ALL_IN_DRIVER),
        ):
            options = {"spark.indextables.read.splitsPerTask": splits, **more}
            self.frame(way, **options).createOrReplaceTempView(f"t_{way}")

    def frame(self, layer: str, **options: Any) -> Any:
        name = "indextables_python" if layer == "l1" else "indextables"
        reader = self.spark.read.format(name)
        for key, value in options.items():
            reader = reader.option(key, value)
        return reader.load(self.path)


def plain(value: Any) -> Any:
    """A value that compares and sorts: NaN and rounding of sums made equal."""
    if isinstance(value, float):
        return "NaN" if value != value else f"{value:.9g}" if value else "0"
    if isinstance(value, dict):
        return sorted((str(k), plain(v)) for k, v in value.items())
    if isinstance(value, list | tuple):
        return tuple(plain(v) for v in value)
    return bytes(value) if isinstance(value, bytearray) else value


def bag(frame: Any) -> list[str]:
    """The rows of a DataFrame as a sorted list of texts."""
    return sorted(repr(plain(tuple(row))) for row in frame.collect())
