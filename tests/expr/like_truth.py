"""What Spark's LIKE answers: every short pattern laid against every short text, two escapes.

``python tests/expr/like_truth.py`` asks a local Spark again and rewrites the answers; the tests
only read them.
"""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

ANSWERS = Path(__file__).parents[1] / "data" / "expr" / "like_truth.json"
ESCAPES = ("\\", "!")
LETTERS = "a%_\\!"
LONGER = [
    "a%a_",
    "_%_%",
    "%a%a",
    "a__%",
    "%%%a",
    "a\\%%",
    "a!%%",
    "!_a%",
    "\\_a%",
    "a\\\\%a",
    "é_%",
]
TEXTS = [
    *("".join(t) for size in range(4) for t in product(LETTERS, repeat=size)),
    "aaaa", "a%a_", "_a__", "a\n", "\na", "é", "éa", "aé", "\U0001f600",
    "a\U0001f600", "\x00", "%a%a",
]  # fmt: skip
PATTERNS = [*("".join(p) for size in range(4) for p in product(LETTERS, repeat=size)), *LONGER]


def answers() -> dict[str, dict[str, list[bool] | None]]:
    """For each escape and pattern which texts match; ``None`` where Spark refuses the pattern."""
    told: dict[str, dict[str, str | None]] = json.loads(ANSWERS.read_text("utf-8"))
    return {
        escape: {
            pattern: None
            if bits is None
            else [bool(int(bits, 16) >> i & 1) for i in range(len(TEXTS))]
            for pattern, bits in found.items()
        }
        for escape, found in told.items()
    }


def ask_spark() -> None:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "OFF").getOrCreate()
    frame = spark.createDataFrame(list(enumerate(TEXTS)), "n INT, t STRING").coalesce(1).cache()
    told = {e: _asked(frame, e, PATTERNS) for e in ESCAPES}
    ANSWERS.write_text(json.dumps(told, indent=0) + "\n", "utf-8")
    spark.stop()


def _asked(frame: Any, escape: str, patterns: list[str]) -> dict[str, str | None]:
    """Asked together; where Spark refuses, in halves, down to the pattern it refuses."""
    from pyspark.sql.functions import col, like, lit

    tests = [like(col("t"), lit(p), lit(escape)).alias(f"p{i}") for i, p in enumerate(patterns)]
    try:
        rows = frame.select("n", *tests).collect()
    except Exception:
        if len(patterns) == 1:
            return {patterns[0]: None}
        half = len(patterns) // 2
        first, second = patterns[:half], patterns[half:]
        return {**_asked(frame, escape, first), **_asked(frame, escape, second)}
    return {p: f"{sum(1 << r['n'] for r in rows if r[f'p{i}']):x}" for i, p in enumerate(patterns)}


if __name__ == "__main__":
    ask_spark()
