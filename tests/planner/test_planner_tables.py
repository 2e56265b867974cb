"""NoREC over real tables: written, cross-referenced, planned, read back by split."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
from planner import oracle
from planner.rows import truth
from planner.trapkit import arrow_table

import indextables
from indextables.expr import predicate as p
from indextables.expr.predicate import Undecided, leaves

OPTIONS = {"spark.indextables.xref.query.minSplitsForXRef": "0"}


def write_random(
    rng: random.Random, path: str
) -> tuple[pa.Schema, list[str], list[dict[str, Any]]]:
    """A table of a few appends; its rows in physical values."""
    names = list(dict.fromkeys(rng.choices(list(oracle.TYPES), oracle.WEIGHTS, k=4)))
    parts = rng.sample(["pi", "pday", "pdec", "pb", "pts"], rng.choice([0, 1]))
    kinds = [(n, oracle.TYPES[n]) for n in names]
    kinds += [(q, oracle.TYPES[oracle.PARTITIONS[q]]) for q in parts]
    schema = pa.schema([("id", pa.int64()), *((n, kind[0]) for n, kind in kinds)])
    rows: list[dict[str, Any]] = []
    for _ in range(rng.randint(2, 4)):
        pools = {n: oracle.random_pool(rng, kind[1]) for n, kind in kinds}
        batch = [
            {"id": len(rows) + k, **{n: rng.choice(pool) for n, pool in pools.items()}}
            for k in range(rng.randint(1, 8))
        ]
        indextables.write(arrow_table(batch, schema), path, partition_by=parts, options=OPTIONS)
        rows += batch
    return schema, parts, rows


def test_written_tables_give_every_row_back(seed: int, tmp_path: Path) -> None:
    checked = pruned = 0
    for number in range(8):
        rng = random.Random(f"{seed}:{number}")
        path = str(tmp_path / str(number))
        schema, parts, rows = write_random(rng, path)
        table = indextables.open(path, options=OPTIONS)
        fake = oracle.FakeSnapshot([], pa.schema(list(schema)[1:]), parts)
        for k in range(30):
            if k == 15:
                table.build_xref()
                table = indextables.open(path, options=OPTIONS)
            predicate = oracle.random_predicate(rng, fake)
            if any(isinstance(leaf, Undecided) for leaf in leaves(predicate)):
                continue
            checked += 1
            pruned += len(table.plan(predicate)) < table.plan(None).program.count
            assert found_ids(table, predicate) == matching_ids(rows, predicate), (number, predicate)
    assert checked > 100
    assert pruned > 30


def found_ids(table: Any, predicate: p.Predicate) -> list[int]:
    return sorted(table.to_arrow(where=predicate, columns=["id"]).column("id").to_pylist())


def matching_ids(rows: list[dict[str, Any]], predicate: p.Predicate) -> list[int]:
    return [r["id"] for r in rows if truth(predicate, r) is True]
