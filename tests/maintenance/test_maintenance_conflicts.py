"""A DELETE conflicts with a neighbour's append only where the new file may hold matching rows."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CommitConflictError
from indextables.log.commit.transaction import ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.versions import version_path
from indextables.maintenance import delete as deleting
from indextables.maintenance.delete import delete_rows
from indextables.planner import Planner
from indextables.planner.concurrent import file_test
from indextables.storage.wrapped import WrappedStore

SCHEMA = pa.schema([("p", pa.string()), ("n", pa.int64()), ("s", pa.string()), ("d", pa.float64())])
QUIET = {
    "checkpoint.interval": 0,
    "xref.autoIndex.enabled": False,
    "transaction.retry.baseDelayMs": 0,
    "transaction.retry.maxAttempts": 10,
}
Row = dict[str, Any]
Test = Callable[[Row], bool]


def put(path: Path, rows: list[Row]) -> None:
    data = pa.Table.from_pylist(rows, SCHEMA)
    indextables.write(data, str(path), partition_by=["p"], options=QUIET)


def row(p: str | None, n: int | None, s: str | None = None, d: float | None = None) -> Row:
    return {"p": p, "n": n, "s": s, "d": d}


# -- never a missed conflict ----------------------------------------------------------------------

SYMBOLS = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
WORDS = ["", "a", "b", "ab", "b\u00e9", "z"]


def leaf(rng: random.Random) -> tuple[str, Test]:
    """A condition as SQL and as Python; NULL is not TRUE."""
    column = rng.choice("pnsd")
    kind = rng.choice(["compare", "null", "in", "like"] if column in "ps" else ["compare", "null"])
    if kind == "null":
        wanted = rng.random() < 0.5
        return (
            f"{column} IS {'' if wanted else 'NOT '}NULL",
            lambda r: (r[column] is None) is wanted,
        )
    values = {"n": list(range(-3, 30)), "d": [-1.5, 0.0, 2.5, 9.75]}.get(column, WORDS)
    if kind == "in":
        chosen = rng.sample(WORDS, 2)
        listed = ", ".join(f"'{v}'" for v in chosen)
        return f"{column} IN ({listed})", lambda r: r[column] in chosen
    if kind == "like":
        start = rng.choice(WORDS[1:])
        return (
            f"{column} LIKE '{start}%'",
            lambda r: r[column] is not None and r[column].startswith(start),
        )
    symbol, value = rng.choice(list(SYMBOLS)), rng.choice(values)
    shown = f"'{value}'" if column in "ps" else str(value)

    def test(r: Row) -> bool:
        held = r[column]
        if held is None:
            return False
        if isinstance(held, str):
            return bool(SYMBOLS[symbol](held.encode(), str(value).encode()))
        return bool(SYMBOLS[symbol](held, value))

    return f"{column} {symbol} {shown}", test


def condition(rng: random.Random, depth: int = 2) -> tuple[str, Test]:
    if depth == 0 or rng.random() < 0.3:
        return leaf(rng)
    parts = [condition(rng, depth - 1) for _ in range(2)]
    word, joined = rng.choice([(" AND ", all), (" OR ", any)])
    return f"({word.join(p[0] for p in parts)})", lambda r: joined(p[1](r) for p in parts)


def test_no_file_with_a_matching_row_is_ever_passed_over(
    tmp_path: Path, rng: random.Random
) -> None:
    path = tmp_path / "t"
    for start in range(0, 24, 3):
        p = rng.choice([*WORDS, None])
        some = [
            row(
                p,
                rng.choice([None, start, start + 1, start + 2]),
                rng.choice([*WORDS, None]),
                rng.choice([None, -1.5, 0.0, 2.5, 9.75]),
            )
            for _ in range(3)
        ]
        put(path, some)
    table = indextables.open(str(path))
    files = list(table.snapshot.files())
    rows = {f.path: _rows_of(table, f) for f in files}
    passed = kept = 0
    for _ in range(400):
        where, test = condition(rng)
        may = {f.path for f in file_test(Planner(table).bind(where))(table.snapshot, files)}
        for f in files:
            if any(test(r) for r in rows[f.path]):
                assert f.path in may, (where, f.path, f.partition_values)
                kept += 1
            passed += f.path not in may
    assert kept
    assert passed


def _rows_of(table: Any, file: Any) -> list[Row]:
    """The rows of one split, read without any pruning."""
    alone = indextables.open(table.path)
    alone.snapshot = alone.snapshot.with_only([file])
    found: list[Row] = alone.to_arrow().to_pylist()
    return found


# -- neighbours ---------------------------------------------------------------------------------


class Busy(WrappedStore):
    """A neighbour commits just before each of our first tries to create a version."""

    def __init__(self, inner: Any, neighbour: Callable[[int], object], times: int) -> None:
        super().__init__(inner)
        self.neighbour = neighbour
        self.left = times
        self.busy = False

    def put_if_absent(self, path: str, data: bytes) -> None:
        if self.left and not self.busy and path.startswith(version_path(0)[:-25]):
            self.left -= 1
            self.busy = True
            self.neighbour(self.left)
            self.busy = False
        super().put_if_absent(path, data)


def busy(path: Path, neighbour: Callable[[int], object], times: int) -> TransactionLog:
    log = indextables.open(str(path), options=QUIET).log
    return TransactionLog(log.path, Busy(log.store, neighbour, times), log.config)


@pytest.mark.parametrize(
    ("where", "neighbour"),
    [
        ("p = 'a' AND n = 1", row("b", 1)),
        ("n = 1", row("b", 100)),
        ("n < 2 AND s = 'x'", row("a", 50, "x")),
        ("n = 1", row("a", None)),
        ("p = 'a' AND n = 1", row(None, 1)),
        ("p = 'a' AND n = 1", row("", 1)),
    ],
)
def test_a_delete_is_not_starved_by_a_neighbour(
    tmp_path: Path, where: str, neighbour: Row, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    put(path, [row("a", 1, "x"), row("a", 2, "x"), row("b", 3, "x")])
    tries: list[int] = []
    real = deleting._delete
    monkeypatch.setattr(deleting, "_delete", lambda *a: tries.append(1) or real(*a))
    result = delete_rows(busy(path, lambda _: put(path, [neighbour]), 6), where)
    assert result.status == "success"
    assert len(tries) == 1
    table = indextables.open(str(path))
    assert table.count(where) == 0
    assert table.count() == 2 + 6
    assert table.version == 8


def test_rows_a_neighbour_adds_are_deleted_too(tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(path, [row("a", 1), row("a", 2)])
    result = delete_rows(busy(path, lambda _: put(path, [row("a", 1), row("b", 7)]), 1), "n = 1")
    assert result.status == "success"
    table = indextables.open(str(path))
    assert sorted(table.to_arrow()["n"].to_pylist()) == [2, 7]


def test_a_file_without_statistics_or_under_another_schema_is_a_conflict(tmp_path: Path) -> None:
    path = tmp_path / "t"
    put(path, [row("a", 1), row("a", 2)])
    table = indextables.open(str(path))
    reads = ReadSet.matching(file_test(Planner(table).bind("n = 1")))
    far = replace(table.snapshot.file(0), path="p=b/far.split", partition_values={"p": "b"})
    far = replace(far, min_values={"n": "500"}, max_values={"n": "600"})
    bare = replace(far, path="p=b/bare.split", min_values={}, max_values={}, stats=None)
    schema = table.snapshot.metadata.schema_string.replace('"long"', '"string"')
    other = replace(table.snapshot.metadata, schema_string=schema)
    for late, conflicts in (
        ([far], False),
        ([bare], True),
        ([replace(far, path="x"), other], True),
    ):
        base = table.log.snapshot()
        table.log.commit(Transaction(None, "WRITE", actions=late))
        new = replace(base.file(0), path=f"p=a/{base.version}.split")
        mine = Transaction(base, "NOTE", actions=[new], reads=reads)
        if conflicts:
            with pytest.raises(CommitConflictError, match="concurrent add"):
                table.log.commit(mine)
        else:
            table.log.commit(mine)
