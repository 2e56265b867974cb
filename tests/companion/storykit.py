"""Companions against the truth of the stories in ``tests/sources/stories.py``.

After each change of the source the companion is opened at whatever lag it has, and asked: all
rows, counts, and random predicates over the columns that the table has then. The truth is what the
story says the table holds, filtered by DuckDB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import indextables

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sources"))
from stories import HandDelta, HandIceberg, LibraryDelta, LibraryIceberg, in_order

__all__ = ["HandDelta", "HandIceberg", "LibraryDelta", "LibraryIceberg", "lived"]

Rows = list[dict[str, Any]]


def literal(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return repr(value)


def atom(rng: Random, field: pa.Field, rows: Rows) -> str | None:
    """A random test of one column, with values that it holds or nearly holds."""
    name, t = f"`{field.name}`", pa.types
    held = [row[field.name] for row in rows if row.get(field.name) is not None]
    if rng.random() < 0.15:
        return f"{name} IS {rng.choice(['', 'NOT '])}NULL"
    if not held:
        return None
    value = rng.choice(held)
    if t.is_integer(field.type):
        value += rng.choice([0, 0, 0, 1, -1])
        several = ", ".join(str(v) for v in rng.choices(held, k=3))
        return rng.choice(
            [f"{name} {op} {value}" for op in ("=", "<>", "<", "<=", ">", ">=")]
            + [f"{name} IN ({several})", f"{name} BETWEEN {value} AND {value + 7}"]
        )
    if t.is_string(field.type):
        several = ", ".join(literal(v) for v in rng.choices(held, k=2))
        tests = [f"{name} {op} {literal(value)}" for op in ("=", "=", "<>", "<", ">=")]
        tests += [f"{name} IN ({several})"]
        if value and "%" not in value and "_" not in value and "\\" not in value:
            tests.append(f"{name} LIKE {literal(value[:3] + '%')}")
        return rng.choice(tests)
    if t.is_floating(field.type):
        return f"{name} {rng.choice(['<', '>='])} {value!r}"
    return None


def predicate(rng: Random, schema: pa.Schema, rows: Rows) -> str:
    parts = [a for f in rng.choices(list(schema), k=3) if (a := atom(rng, f, rows)) is not None]
    if not parts:
        return f"`{schema.names[0]}` IS NULL"
    text = parts[0]
    for part in parts[1 : rng.randrange(1, 4)]:
        text = f"({text}) {rng.choice(['AND', 'OR'])} {rng.choice(['', '', 'NOT '])}({part})"
    return text


def truth(rows: Rows, schema: pa.Schema, where: str) -> Rows:
    plain = pa.schema([f.with_metadata(None) for f in schema])
    whole = pa.Table.from_pylist([{n: r.get(n) for n in schema.names} for r in rows], plain)
    numbered = whole.append_column("__n", pa.array(range(whole.num_rows), pa.int64()))
    with duckdb.connect() as connection:
        connection.register("whole", numbered)
        text = where.replace("`", '"')
        found = connection.sql(f"SELECT __n FROM whole WHERE {text}").fetchall()
    return [rows[n] for (n,) in found]


def compare(table: Any, rows: Rows, rng: Random, predicates: int, told: str) -> int:
    """Ask for everything, then for some rows; how many pairs were compared."""
    schema = table.schema
    found = table.to_arrow().to_pylist()
    assert in_order(found) == in_order([{n: r.get(n) for n in schema.names} for r in rows]), told
    assert table.count() == len(rows), told
    for _ in range(predicates):
        where = predicate(rng, schema, rows)
        wanted = truth(rows, schema, where)
        found = table.to_arrow(where=where).to_pylist()
        assert in_order(found) == in_order([{n: r.get(n) for n in schema.names} for r in wanted]), (
            f"{told}: {where}"
        )
        assert table.count(where) == len(wanted), f"{told}: count {where}"
    return predicates + 1


def lived(story: Any, at: str, rng: Random, steps: int, predicates: int) -> Iterator[int]:
    """A story and its companion, which is synced now and then."""
    options = getattr(story, "options", {})
    indextables.index(story.location, at, source_options=options)
    done: list[str] = []
    for _ in range(steps):
        done.append(story.step())
        if rng.random() < 0.4:
            indextables.index(story.location, at, source_options=options)
            done.append("SYNC")
        given = {f"companion.source.{key}": value for key, value in options.items()}
        table = indextables.open(at, options=given)
        yield compare(table, story.rows(), rng, predicates, " > ".join(done))
