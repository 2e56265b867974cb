"""What Java finds: regular expressions laid against texts by Spark's RLIKE.

``python tests/expr/regex_truth.py`` asks a local Spark again and rewrites the answers; the tests
only read them.
"""

from __future__ import annotations

import json
from pathlib import Path

ANSWERS = Path(__file__).parents[1] / "data" / "expr" / "regex_truth.json"

TEXTS = [
    "", "a", "A", "ab", "abc", "abcabc", "aa", "aab", "b", "c", "z", "0", "a0_", " ", "\t", "\x0b",
    "\n", "\r", "\r\n", "\n\r", "\x85", "\u2028", "a\n", "a\r", "a\r\n", "a\n\n", "a\x85",
    "a\u2029",
    "a\u2028\n", "\na", "a\nb", "a\rb", "a\u2028b", "a.b", "a-b", "a]b", "a^b", "a\\b", "é",
    "É", "ß",
    "k", "K", "\u212a", "s", "S", "\u017f", "\U0001f600", "a\U0001f600b", "\u0663", "\x00", "\x1f",
    "aaaaaaaaaaaaaaaaaaaa!",
]  # fmt: skip

PATTERNS = [
    "", "a", "a.b", "(?s)a.b", "^a", "a$", "^a$", "^$", "$", "^", "b|a$", "(a$|b)", "((a|b)$)",
    "(?:^a$|c)", ".", "^.$", "(?s)^.$", "^..$", ".$", "(?s).$", r"\s$", r"^\s$", r"^\s+$", r"a\s$",
    r"a\r$", r"a\n$", r"\S", r"^\S$", r"\d", r"\D", r"\w", r"\W", r"^\W$", r"[\s]", r"[^\s]",
    r"^[^\S]$", r"[\w.]", r"[^\w]", r"^[\D]$", "[abc]", "[^abc]", "^[^a]$", "[a-c]{3}", "[a-]",
    "[-a]",
    r"[\]]", r"[\^]", r"[\\]", r"[a\-z]", "[.]", r"\.", r"\\", r"\^", r"\-", "(?i)k", "(?i)s",
    "(?i)^[a-c]$", "(?i)[^a]", "(?i)^[^K]$", "(?i)ABC", "(?i)[Z-a]", "(?is)A.B", "é", "[é]",
    "[à-ï]",
    "[^é]", "a+", "a*", "^a*$", "a?", "^a?$", "a{2}", "^a{2,}$", "^a{1,2}$", "a{2,3}?", "a+?b",
    "(ab)+",
    "(?:abc)+", "^(?:abc){2}$", "a|", "^(|a)+$", "(a*)*b", "^(a+)+$", "^(a|aa)+$", "^(a|a)*$",
    "(a*)*$", "^([a-zA-Z]+)*$", "\t", r"\t", r"\n", r"\r", "\x00", "\U0001f600", "[\U0001f600]",
    "^.\U0001f600.$", r"\/", r"\ ", "a b", "x|y|z$", "^^a", "(^a|b$)", "a{0}", "^a{0}$",
]  # fmt: skip


def answers() -> dict[str, list[int]]:
    """For each pattern the numbers of the texts it is found in."""
    found: dict[str, list[int]] = json.loads(ANSWERS.read_text())
    return found


def ask_spark() -> None:
    from pyspark.sql import SparkSession
    from pyspark.sql.functions import col

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    frame = spark.createDataFrame(list(enumerate(TEXTS)), "n INT, t STRING")
    rows = frame.select("n", *(col("t").rlike(p).alias(f"p{i}") for i, p in enumerate(PATTERNS)))
    collected = rows.orderBy("n").collect()
    told = {
        pattern: [row["n"] for row in collected if row[f"p{i}"]]
        for i, pattern in enumerate(PATTERNS)
    }
    lines = ",\n".join(f"{json.dumps(p)}: {json.dumps(rows)}" for p, rows in told.items())
    ANSWERS.write_text("{\n" + lines + "\n}\n")
    spark.stop()


if __name__ == "__main__":
    ask_spark()
