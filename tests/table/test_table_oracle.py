"""Random boolean trees over a whole table: exactly the rows another engine finds.

DuckDB judges: like Spark it has three-valued logic, NaN equal to itself and above everything, equal
zeros, and strings ordered by bytes. The table has nulls in every column, several splits and a
partition column, so folding, pruning, index, codes, zones and residuals all take part. All of it is
asked once more of a table of which a tenth of the rows is deleted.
"""

from __future__ import annotations

import random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import indextables

ROWS = 9_000
TREES = 150
WORDS = ["", "a", "A", "ab", "b%", "ü", "z_z", "zz", " a", "b c"]
REALS = [0.0, -0.0, 1.5, -2.25, float("nan"), float("inf"), float("-inf"), 1e300]
LITERALS: dict[str, list[str]] = {
    "part": ["'p0'", "'p1'", "'p9'"],
    "s": [f"'{w}'" for w in WORDS],
    "few": ["-1", "0", "3", "7"],
    "id": ["0", "17", "4000", "8999", "100000", "-5"],
    "x": ["0.0", "1.5", "-2.25", "CAST('NaN' AS DOUBLE)", "CAST('inf' AS DOUBLE)", "1e300"],
    "flag": ["true", "false"],
    "d": ["DATE '1969-12-31'", "DATE '1970-01-02'", "DATE '2024-02-29'"],
    "dec": ["CAST(1.10 AS DECIMAL(10,2))", "CAST(-0.05 AS DECIMAL(10,2))"],
}
PATTERNS = ["'a%'", "'%b%'", "'_'", "'%'", "'z_z'", "''", "'% %'"]


def make_table(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)

    def column(values: Any, dtype: pa.DataType) -> pa.Array:
        return pa.array(values, mask=rng.random(ROWS) < 0.08).cast(dtype)

    days = np.array([-1, 0, 1, 19_782])
    cents = pa.array(rng.choice([110, -5, 0, 99999], ROWS)).cast(pa.decimal128(19, 0))
    return pa.table(
        {
            "row": np.arange(ROWS),
            "part": column(rng.choice(["p0", "p1"], ROWS), pa.string()),
            "s": column(rng.choice(WORDS, ROWS), pa.string()),
            "few": column(rng.integers(-1, 8, ROWS), pa.int16()),
            "id": column(rng.permutation(ROWS), pa.int64()),
            "x": column(rng.choice(REALS, ROWS), pa.float64()),
            "flag": column(rng.random(ROWS) < 0.5, pa.bool_()),
            "d": column(days[rng.integers(0, 4, ROWS)].astype(np.int32), pa.int32()).cast(
                pa.date32()
            ),
            "dec": pa.array([None if v is None else v.scaleb(-2) for v in cents.to_pylist()]).cast(
                pa.decimal128(10, 2)
            ),
        }
    )


def leaf(rng: random.Random) -> str:
    column = rng.choice(list(LITERALS))
    values = LITERALS[column]
    kind = rng.randrange(8)
    if kind == 0:
        return f"{column} IS {rng.choice(['', 'NOT '])}NULL"
    if kind == 1:
        chosen = ", ".join(rng.sample(values, min(len(values), rng.randrange(1, 4))))
        return f"{column} {rng.choice(['', 'NOT '])}IN ({chosen})"
    if kind == 2:
        return f"{column} BETWEEN {rng.choice(values)} AND {rng.choice(values)}"
    if kind == 3 and column in ("s", "part"):
        return f"{column} {rng.choice(['', 'NOT '])}LIKE {rng.choice(PATTERNS)}"
    operator = rng.choice(["=", "<>", "<", "<=", ">", ">="])
    return f"{column} {operator} {rng.choice(values)}"


def tree(rng: random.Random, depth: int = 3) -> str:
    if depth == 0 or rng.random() < 0.25:
        return leaf(rng)
    if rng.random() < 0.2:
        return f"NOT ({tree(rng, depth - 1)})"
    joint = rng.choice([" AND ", " OR "])
    return joint.join(f"({tree(rng, depth - 1)})" for _ in range(rng.randrange(2, 4)))


@pytest.fixture(scope="module", params=["whole", "with deletion vectors"])
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[indextables.Table, Any]:
    data = make_table(5)
    path = str(tmp_path_factory.mktemp("oracle") / "t")
    indextables.write(data, path, partition_by=["part"], rows_per_split=4_500)
    if request.param != "whole":
        gone = random.Random(6).sample(range(ROWS), ROWS // 10)
        indextables.open(path).delete(f"row IN ({', '.join(map(str, gone))})")
        assert indextables.open(path).snapshot.num_deleted.sum() == len(gone)
        data = data.filter(pa.array(~np.isin(np.asarray(data["row"]), gone)))
    oracle = duckdb.connect()
    oracle.register("rows", data)
    return indextables.open(path), oracle


def test_random_trees_find_what_duckdb_finds(
    both: tuple[indextables.Table, Any], rng: random.Random
) -> None:
    table, oracle = both
    for _ in range(TREES):
        where = tree(rng)
        found = table.to_arrow(where=where, columns=["row"])["row"].to_pylist()
        want = oracle.sql(f'SELECT "row" FROM rows WHERE {where}').fetchall()
        assert sorted(found) == sorted(w[0] for w in want), where
        assert table.count(where) == len(want), where
