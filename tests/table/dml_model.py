"""A table and a plain dictionary that should always hold the same rows.

A ``World`` does random things to both and asks both random questions. Keys are unique, so a row is
known by its ``id``; the model of every version is kept, for time travel and for the change feed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import indextables
from indextables.table.table import Table

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("part", pa.string()),
        ("word", pa.string()),
        ("body", pa.string()),
        ("n", pa.int64()),
    ]
)
WORDS = ["ash", "birch", "cedar", "fir", None]
BODY = ["red", "green", "blue", "dark", "pale"]
OPTIONS = {
    "checkpoint.interval": 4,
    "purge.retentionCheckEnabled": False,
    "transaction.retry.baseDelayMs": 0,
    "write.mergeSchema": False,
}
Row = dict[str, Any]
Rows = dict[int, Row]


class World:
    """One table, its model at each version, and what may happen to both."""

    def __init__(
        self,
        path: str,
        rng: random.Random,
        storage: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.path, self.rng = path, rng
        self.storage = dict(storage or {})
        self.options = {
            **OPTIONS,
            "deletionVector.maxShare": rng.choice([0, 0.3, 0.5, 1.0]),
            "deletionVector.maxInlineBytes": rng.choice([0, 40, 1024]),
            **options,
        }
        self.partitioned = rng.random() < 0.4
        self.rows: Rows = {}
        self.next_id = 0
        self.past: dict[int, Rows] = {}
        self.done: list[str] = []
        self.step("append")

    # -- what happens -----------------------------------------------------------------------------

    def table(self, version: int | None = None) -> Table:
        extra = {} if "://" not in self.path else {"storage_options": self.storage}
        return indextables.open(self.path, version=version, options=self.options, **extra)

    def fresh_rows(self, count: int) -> list[Row]:
        found = []
        for _ in range(count):
            found.append(self.row(self.next_id))
            self.next_id += 1
        return found

    def row(self, key: int) -> Row:
        rng = self.rng
        return {
            "id": key,
            "part": rng.choice("ab"),
            "word": rng.choice(WORDS),
            "body": " ".join(rng.choices(BODY, k=3)),
            "n": rng.choice([None, *range(12)]),
        }

    def write(self, rows: list[Row], mode: str = "append") -> None:
        by = ["part"] if self.partitioned else []
        extra = {} if "://" not in self.path else {"storage_options": self.storage}
        indextables.write(
            pa.Table.from_pylist(rows, SCHEMA),
            self.path,
            mode=mode,
            partition_by=by,
            text=["body"],
            options={**self.options, "write.rowsPerSplit": self.rng.choice([7, 30, 1000])},
            **extra,
        )

    def append(self) -> None:
        rows = self.fresh_rows(self.rng.randint(1, 40))
        self.write(rows)
        self.rows = {**self.rows, **{r["id"]: r for r in rows}}

    def overwrite(self) -> None:
        rows = self.fresh_rows(self.rng.randint(1, 40))
        self.write(rows, "overwrite")
        self.rows = {r["id"]: r for r in rows}

    def condition(self) -> tuple[str, Callable[[Row], bool]]:
        rng = self.rng
        some = rng.sample(range(self.next_id + 1), min(self.next_id, rng.randint(1, 6)))
        n, word, color = rng.randrange(12), rng.choice(["ash", "fir"]), rng.choice(BODY)
        ids = ", ".join(map(str, some))
        return rng.choice(
            [
                (f"id IN ({ids})", lambda r: r["id"] in some),
                (f"id = {some[0]}", lambda r: r["id"] == some[0]),
                (f"n = {n}", lambda r: r["n"] == n),
                (f"n < {n}", lambda r: r["n"] is not None and r["n"] < n),
                ("n IS NULL", lambda r: r["n"] is None),
                (f"word = '{word}'", lambda r: r["word"] == word),
                (
                    f"word = '{word}' AND n > {n}",
                    lambda r: r["word"] == word and r["n"] is not None and r["n"] > n,
                ),
                (f"body indexquery '{color}'", lambda r: color in r["body"].split()),
                ("part = 'a'", lambda r: r["part"] == "a"),
                ("TRUE", lambda r: True),
                ("id < 0", lambda r: False),
            ]
        )

    def delete(self) -> None:
        where, test = self.condition()
        if where == "TRUE" and self.rng.random() < 0.7:
            return
        gone = [k for k, r in self.rows.items() if test(r)]
        result = self.table().delete(where)
        assert result.rows_deleted == len(gone), (where, result)
        self.rows = {k: r for k, r in self.rows.items() if k not in set(gone)}

    def update(self) -> None:
        where, test = self.condition()
        values, change = self.rng.choice(
            [
                (
                    {"n": "n + 1"},
                    lambda r: {**r, "n": None if r["n"] is None else r["n"] + 1},
                ),
                ({"word": "'oak'", "n": 3}, lambda r: {**r, "word": "oak", "n": 3}),
                ({"body": "concat(body, ' red')"}, lambda r: {**r, "body": r["body"] + " red"}),
                (
                    {"part": "CASE WHEN part = 'a' THEN 'b' ELSE 'a' END"},
                    lambda r: {**r, "part": "b" if r["part"] == "a" else "a"},
                ),
            ]
        )
        result = self.table().update(where, values)
        hit = [k for k, r in self.rows.items() if test(r)]
        assert result.rows_updated == len(hit), (where, result)
        self.rows = {k: change(r) if k in set(hit) else r for k, r in self.rows.items()}

    def upsert(self) -> None:
        rng = self.rng
        known = rng.sample(sorted(self.rows), min(len(self.rows), rng.randint(0, 8)))
        data = [self.row(k) for k in known] + self.fresh_rows(rng.randint(0, 4))
        rng.shuffle(data)
        source = {r["id"]: r for r in data}
        way = rng.randrange(4)
        given: dict[str, Any] = {}
        after = dict(self.rows)
        for key, new in source.items():
            old = self.rows.get(key)
            if way == 0:
                after[key] = new
            elif way == 1:
                given = {"update": {"n": "coalesce(n, 0) + coalesce(source.n, 0)"}}
                total = ((old or {}).get("n") or 0) + (new["n"] or 0)
                after[key] = new if old is None else {**old, "n": total}
            elif way == 2:
                given = {"delete": "source.n > 5", "insert": False}
                if old is not None and new["n"] is not None and new["n"] > 5:
                    del after[key]
                elif old is not None:
                    after[key] = new
            else:
                given = {"update": False, "insert": "n IS NOT NULL"}
                if old is None and new["n"] is not None:
                    after[key] = new
        done = self.table().upsert(pa.Table.from_pylist(data, SCHEMA), on=["id"], **given)
        if done.status == "success":
            self._kinds(done.version, self.rows, after)
        self.rows = after

    def _kinds(self, version: int, before: Rows, after: Rows) -> None:
        """The feed of a version says of each row what happened to it."""
        found: dict[str, set[int]] = {}
        for batch in self.table().changes(version, version):
            for row in batch.to_pylist():
                found.setdefault(row["_change_type"], set()).add(row["id"])
        assert found.get("insert", set()) == after.keys() - before.keys(), self.done
        assert found.get("delete", set()) == before.keys() - after.keys(), self.done
        changed = found.get("update_postimage", set())
        assert changed == found.get("update_preimage", set()), self.done
        really = {k for k in after.keys() & before.keys() if after[k] != before[k]}
        assert really <= changed <= after.keys() & before.keys(), self.done

    def restore(self) -> None:
        version = self.rng.choice(sorted(self.past))
        self.table().restore(version)
        self.rows = self.past[version]

    def merge(self) -> None:
        self.table().merge()

    def reorg(self) -> None:
        self.table().reorg()
        assert self.table().snapshot.num_deleted.sum() == 0

    def index(self) -> None:
        column = self.rng.choice(["n", "word", "id"])
        table = self.table()
        if column in {i.column for i in table.indexes()}:
            table.index_splits()
        else:
            table.create_index(column)

    def xref(self) -> None:
        self.table().build_xref()

    def checkpoint(self) -> None:
        self.table().checkpoint()

    def purge(self) -> None:
        self.table().purge(older_than_hours=0)

    def truncate(self) -> None:
        if self.rng.random() < 0.2:
            self.table().truncate()
            self.rows = {}

    STEPS = (
        *(["append"] * 3), *(["delete"] * 5), *(["update"] * 5), *(["upsert"] * 5), "overwrite",
        "restore", "restore", "merge", "reorg", "index", "xref", "checkpoint", "purge", "truncate",
    )  # fmt: skip

    def step(self, name: str | None = None) -> None:
        name = name or self.rng.choice(self.STEPS)
        self.done.append(name)
        getattr(self, name)()
        self.past[self.table().version] = self.rows

    # -- what is asked ----------------------------------------------------------------------------

    def check(self) -> None:
        table = self.table()
        self._rows(table, self.rows)
        self._questions(table)
        version = self.rng.choice(sorted(self.past))
        self._rows(self.table(version), self.past[version])
        self._feed(version)

    def _rows(self, table: Table, expected: Rows) -> None:
        found = {row["id"]: row for row in table.to_arrow().to_pylist()}
        assert found == expected, self.done
        assert len(table) == len(expected), self.done

    def _questions(self, table: Table) -> None:
        where, test = self.condition()
        hits = {k for k, r in self.rows.items() if test(r)}
        assert set(table.to_arrow(where, columns=["id"]).column(0).to_pylist()) == hits, where
        assert table.count(where) == len(hits), (where, self.done)
        numbers = [r["n"] for k, r in self.rows.items() if k in hits and r["n"] is not None]
        asked = {"low": ("min", "n"), "high": ("max", "n"), "held": ("count", "n")}
        (ends,) = table.aggregate(asked, where=where).to_pylist()
        assert ends == {
            "low": min(numbers, default=None),
            "high": max(numbers, default=None),
            "held": len(numbers),
        }, (where, self.done)
        groups = table.aggregate({"rows": "count"}, ["word"], where).to_pylist()
        expected: dict[Any, int] = {}
        for key in hits:
            word = self.rows[key]["word"]
            expected[word] = expected.get(word, 0) + 1
        assert {g["word"]: g["rows"] for g in groups} == expected, (where, self.done)
        color = self.rng.choice(BODY)
        found = table.search(color, columns=["id"], limit=1000).column("id").to_pylist()
        assert sorted(found) == sorted(
            k for k, r in self.rows.items() if color in r["body"].split()
        ), self.done
        first = table.top("id", 5, descending=True, columns=["id"]).column(0).to_pylist()
        assert first == sorted(self.rows, reverse=True)[:5], self.done

    def _feed(self, version: int) -> None:
        """The changes from a version on turn its rows into those of now."""
        newest = max(self.past)
        if version == newest:
            return
        rows = {tuple(r.items()): 1 for r in self.past[version].values()}
        for batch in self.table().changes(version + 1, newest):
            for change in batch.to_pylist():
                kind = change["_change_type"]
                key = tuple((n, change[n]) for n in SCHEMA.names)
                sign = 1 if kind in ("insert", "update_postimage") else -1
                rows[key] = rows.get(key, 0) + sign
        left = {key: count for key, count in rows.items() if count}
        assert left == {tuple(r.items()): 1 for r in self.rows.values()}, self.done


def local_world(folder: Path, rng: random.Random, **options: Any) -> World:
    return World(str(folder / "table"), rng, **options)
