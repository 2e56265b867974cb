"""Columns that are added, renamed, dropped and widened: the schema changes, no split does.

A table lives a random life beside a model of plain dictionaries. After each step all rows, filters
of every kind on every column, aggregates, searches and older versions are compared with the model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables import maintenance
from indextables.errors import (
    CommitConflictError,
    MaintenanceError,
    ProtocolError,
    SchemaMismatchError,
    UnknownColumnError,
)
from indextables.log.actions import protocol
from indextables.log.log import TransactionLog
from indextables.table.order import WriteOrder

OPTIONS = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
    "spark.indextables.checkpoint.interval": "5",
}
TYPES: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "int": (pa.int32(), lambda r: r.randint(-5, 5)),
    "bigint": (pa.int64(), lambda r: r.randint(-5, 5)),
    "float": (pa.float32(), lambda r: r.randint(-20, 20) / 10),
    "double": (pa.float64(), lambda r: r.randint(-20, 20) / 10),
    "string": (pa.string(), lambda r: r.choice("abcde") * r.randint(1, 2)),
    "boolean": (pa.bool_(), lambda r: r.random() < 0.5),
    "struct<x:int,y:string>": (
        pa.struct([("x", pa.int32()), ("y", pa.string())]),
        lambda r: {"x": r.randint(0, 3), "y": r.choice("uvw")},
    ),
}
WIDER = {"int": "bigint", "float": "double"}
NAMES = ["a", "b", "c", "d", "e"]
Row = dict[str, Any]


class Life:
    """One table, and what it should hold."""

    def __init__(self, path: str, rng: random.Random) -> None:
        self.path, self.rng = path, rng
        self.types = {"id": "bigint", "a": "string", "b": "int", "words": "string"}
        self.structs: dict[str, dict[str, str]] = {}
        """For each struct column its fields as they are called now, by what they hold."""
        self.partition = "part"
        self.rows: list[Row] = []
        self.kept: dict[int, tuple[list[Row], list[str]]] = {}
        self.steps: list[str] = []
        self.append()

    @property
    def table(self) -> indextables.Table:
        return indextables.open(self.path, options=OPTIONS)

    # -- steps -----------------------------------------------------------------------------------

    def value(self, name: str) -> Any:
        if self.rng.random() < 0.2:
            return None
        if name == "words":
            return " ".join(self.rng.choices(["red", "green", "blue"], k=3))
        found = TYPES[self.types[name]][1](self.rng)
        if isinstance(found, dict):
            return {new: found[old] for old, new in self.structs[name].items()}
        return found

    def append(self) -> None:
        new: list[Row] = []
        for _ in range(self.rng.randint(1, 6)):
            row: Row = {n: self.value(n) for n in self.types}
            row[self.partition] = self.rng.choice("pq")
            new.append(row)
        fields = [pa.field(n, self.dtype(n)) for n in self.types]
        schema = pa.schema([*fields, pa.field(self.partition, pa.string())])
        data = pa.Table.from_pylist(new, schema)
        indextables.write(
            data, self.path, partition_by=[self.partition], options=OPTIONS, **self.indexing()
        )
        self.rows += [{n: _as_stored(v, self.types.get(n)) for n, v in row.items()} for row in new]

    def indexing(self) -> dict[str, Any]:
        return {"text": ["words"]} if self.types.get("words") == "string" else {}

    def dtype(self, name: str) -> pa.DataType:
        dtype = TYPES[self.types[name]][0]
        if name in self.structs:
            return pa.struct(
                [(new, dtype.field(old).type) for old, new in self.structs[name].items()]
            )
        return dtype

    def rename(self) -> None:
        old = self.rng.choice([n for n in self.types if n != "words"] + [self.partition])
        free = [n for n in [*NAMES, "id", "p2", "part"] if n not in [*self.types, self.partition]]
        new = self.rng.choice(free)
        self.table.rename_column(old, new)
        for row in self.rows:
            row[new] = row.pop(old)
        if old == self.partition:
            self.partition = new
            return
        self.types = {new if n == old else n: t for n, t in self.types.items()}
        if old in self.structs:
            self.structs[new] = self.structs.pop(old)

    def rename_field(self) -> None:
        for name, fields in self.structs.items():
            old = self.rng.choice(list(fields))
            before, new = fields[old], f"{old}{len(self.steps)}"
            self.table.rename_column(f"{name}.{before}", new)
            fields[old] = new
            for row in self.rows:
                if row[name] is not None:
                    row[name][new] = row[name].pop(before)

    def drop(self) -> None:
        if len(self.types) < 3:
            return
        name = self.rng.choice(list(self.types))
        self.table.drop_column(name)
        self.types.pop(name)
        self.structs.pop(name, None)
        for row in self.rows:
            row.pop(name)

    def add(self) -> None:
        free = [n for n in NAMES if n not in [*self.types, self.partition]]
        if not free:
            return
        name, kind = self.rng.choice(free), self.rng.choice(list(TYPES))
        where: dict[str, Any] = self.rng.choice([{}, {"first": True}, {"after": self.partition}])
        self.table.add_column(name, kind, **where)
        self.types[name] = kind
        if kind.startswith("struct"):
            self.structs[name] = {"x": "x", "y": "y"}
        for row in self.rows:
            row[name] = None

    def widen(self) -> None:
        for name, kind in list(self.types.items()):
            if kind in WIDER and self.rng.random() < 0.5:
                self.table.alter_column_type(name, WIDER[kind])
                self.types[name] = WIDER[kind]

    def merge(self) -> None:
        self.table.merge(target_size=1 << 30)

    def delete(self) -> None:
        name = self.rng.choice([n for n in self.types if n not in self.structs])
        value = self.value(name)
        where = f"{name} IS NULL" if value is None else f"{name} = {_sql(value)}"
        self.table.delete(where)
        self.rows = [r for r in self.rows if r[name] != _as_stored(value, self.types[name])]

    def xref(self) -> None:
        self.table.build_xref()

    def index(self) -> None:
        table = self.table
        known = {i.column for i in table.indexes()}
        free = [n for n in self.types if n not in known and n not in (*self.structs, "words")]
        if free:
            table.create_index(self.rng.choice(free))

    def checkpoint(self) -> None:
        self.table.checkpoint()

    def step(self) -> None:
        steps = [self.append, self.rename, self.rename_field, self.drop, self.add, self.widen]
        steps += [self.merge, self.delete, self.xref, self.index, self.checkpoint, self.append]
        chosen = self.rng.choice(steps)
        self.steps.append(chosen.__name__)
        chosen()
        self.kept[self.table.version] = ([dict(r) for r in self.rows], list(self.types))

    # -- comparing -------------------------------------------------------------------------------

    def check(self) -> None:
        table = self.table
        assert sorted(table.schema.names) == sorted([*self.types, self.partition])
        _same(table.to_arrow().to_pylist(), self.rows)
        for where, test in self.filters():
            expected = [r for r in self.rows if test(r)]
            _same(table.to_arrow(where).to_pylist(), expected, where)
            assert table.count(where) == len(expected), where
        self.check_aggregates(table)
        if self.types.get("words") == "string" and self.rows:
            found = table.search("words:green", limit=1000)
            _same(found.drop_columns(["_score"]).to_pylist(), self.matching("green"))
        version = self.rng.choice(list(self.kept))
        rows, names = self.kept[version]
        old = table.at(version=version).to_arrow()
        assert set(names) <= set(old.column_names)
        assert old.num_rows == len(rows)

    def matching(self, word: str) -> list[Row]:
        return [r for r in self.rows if r["words"] is not None and word in r["words"].split()]

    def filters(self) -> Iterator[tuple[str, Callable[[Row], bool]]]:
        for name in [*self.types, self.partition]:
            yield f"{name} IS NULL", lambda r, n=name: r[n] is None  # type: ignore[misc]
            if name in self.structs:
                inner = self.structs[name]["x"]
                yield (
                    f"{name}.{inner} = 2",
                    lambda r, n=name, i=inner: r[n] is not None and r[n][i] == 2,  # type: ignore[misc]
                )
                continue
            given = [r[name] for r in self.rows if r[name] is not None][:2]
            for value in given:
                test = lambda r, n=name, v=value: r[n] == v  # noqa: E731
                yield f"{name} = {_sql(value)}", test
                if not isinstance(value, bool):
                    yield (
                        f"{name} > {_sql(value)}",
                        lambda r, n=name, v=value: r[n] is not None and r[n] > v,  # type: ignore[misc]
                    )
                yield (
                    f"{name} IN ({_sql(value)}) AND {self.partition} = 'p'",
                    (
                        lambda r, n=name, v=value: r[n] == v and r[self.partition] == "p"  # type: ignore[misc]
                    ),
                )
        if self.types.get("words") == "string":
            yield "words INDEXQUERY 'green'", lambda r: r in self.matching("green")

    def check_aggregates(self, table: indextables.Table) -> None:
        for name in self.types:
            if name in self.structs:
                continue
            found = table.aggregate({"n": ("count", name)}, group_by=[self.partition]).to_pylist()
            counted = {r[self.partition]: r["n"] for r in found}
            for part in {r[self.partition] for r in self.rows}:
                here = [r for r in self.rows if r[self.partition] == part and r[name] is not None]
                assert counted[part] == len(here)
            highest = table.aggregate({"m": ("max", name)}).column("m")[0].as_py()
            held = [r[name] for r in self.rows if r[name] is not None]
            assert highest == (max(held) if held else None)
            first = table.top(name, 3, columns=[name]).column(name).to_pylist()
            ordered = sorted(
                (r[name] for r in self.rows),
                key=lambda v: (v is not None, v or 0 if v is None or not isinstance(v, str) else v),
            )
            assert first == ordered[:3]


def _as_stored(value: Any, kind: str | None) -> Any:
    return pa.scalar(value, pa.float32()).as_py() if kind == "float" else value


def _sql(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return (
        f"'{value}'"
        if isinstance(value, str)
        else f"{value!r}D"
        if isinstance(value, float)
        else str(value)
    )


def _spelled(value: Any) -> str:
    """One text for equal values: the fields of a struct have no order."""
    return repr(sorted(value.items()) if isinstance(value, dict) else value)


def _same(found: list[Row], expected: list[Row], why: str = "") -> None:
    key = lambda row: sorted((k, _spelled(v)) for k, v in row.items())  # noqa: E731
    assert sorted(map(key, found)) == sorted(map(key, expected)), why


@pytest.mark.parametrize("life", range(2))
def test_a_table_whose_columns_change_reads_as_its_model(
    tmp_path: Path, seed: int, life: int
) -> None:
    rng = random.Random(seed * 100 + life)
    one = Life(str(tmp_path / "t"), rng)
    for _ in range(12):
        one.step()
        try:
            one.check()
        except BaseException:
            print(one.steps)
            raise


# -- by construction -------------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> str:
    where = str(tmp_path / "t")
    data = {"id": [1, 2, 3], "name": ["x", "y", "z"], "day": ["mon", "mon", "tue"]}
    indextables.write(pa.table(data), where, partition_by=["day"], options=OPTIONS)
    return where


def named_features(path: str) -> frozenset[str]:
    return TransactionLog.open(path).snapshot().protocol.reader_features or frozenset()


def test_no_split_is_written(path: str) -> None:
    before = indextables.open(path).snapshot.paths.to_pylist()
    for change in (
        lambda t: t.rename_column("name", "title"),
        lambda t: t.add_column("fresh", "array<string>"),
        lambda t: t.drop_column("id"),
        lambda t: t.rename_column("day", "weekday"),
    ):
        change(indextables.open(path))
        assert indextables.open(path).snapshot.paths.to_pylist() == before
    found = indextables.open(path).to_arrow("weekday = 'tue'").to_pylist()
    assert found == [{"title": "z", "weekday": "tue", "fresh": None}]


def test_the_protocol_rises_with_the_first_rename_or_drop(path: str) -> None:
    table = indextables.open(path)
    table.add_column("fresh", "int")
    assert "columnMapping" not in named_features(path)
    table.rename_column("name", "title")
    assert "columnMapping" in named_features(path)


def test_a_release_that_does_not_know_it_refuses(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    indextables.open(path).drop_column("name")
    TransactionLog.open(path).invalidate_cache()
    known = protocol.READER_FEATURES - {"columnMapping"}
    monkeypatch.setattr(protocol, "READER_FEATURES", known)
    with pytest.raises(ProtocolError, match="columnMapping"):
        indextables.open(path)


def test_upgrades_that_are_off_refuse_a_rename(path: str) -> None:
    table = indextables.open(path, options={"spark.indextables.protocol.autoUpgrade": "false"})
    with pytest.raises(ProtocolError, match="columnMapping"):
        table.rename_column("name", "title")


def test_a_name_that_comes_back_is_another_column(path: str) -> None:
    table = indextables.open(path)
    table.create_index("name")
    table.build_xref()
    table.drop_column("name")
    assert indextables.open(path).indexes() == []
    table.add_column("name", "string")
    again = indextables.open(path)
    assert again.count("name = 'x'") == 0
    assert again.count("name IS NULL") == 3
    assert "name" not in again.snapshot.stored_schema.names
    again.create_index("name")
    indextables.write(pa.table({"id": [4], "name": ["x"], "day": ["tue"]}), path)
    again.merge(target_size=1 << 30)
    last = indextables.open(path)
    assert last.to_arrow("name = 'x'", columns=["id"]).to_pylist() == [{"id": 4}]
    assert [i.column for i in last.indexes()] == ["name"]


def test_names_may_change_places(path: str) -> None:
    table = indextables.open(path)
    for old, new in [("id", "spare"), ("name", "id"), ("spare", "name")]:
        table.rename_column(old, new)
    found = indextables.open(path).to_arrow("id = 'y' AND name = 2").to_pylist()
    assert found == [{"name": 2, "id": "y", "day": "mon"}]


@pytest.mark.parametrize("kind", ["int", "float"])
def test_indexes_of_a_widened_column_answer(tmp_path: Path, kind: str) -> None:
    where = str(tmp_path / "t")
    given = (
        [0.1, 2.5, None, -3.25, float("nan")] if kind == "float" else [1, 2, None, -7, 2**31 - 1]
    )
    dtype = TYPES[kind][0]
    for value in given:
        data = pa.table({"v": pa.array([value], dtype), "w": ["any"]})
        indextables.write(data, where, options=OPTIONS)
    table = indextables.open(where, options=OPTIONS)
    table.create_index("v")
    table.build_xref()
    table.alter_column_type("v", WIDER[kind])
    wide = indextables.open(where, options=OPTIONS)
    for value in pa.array(given, dtype).cast(TYPES[WIDER[kind]][0]).to_pylist():
        if value is not None and value == value:
            assert wide.count(f"v = {_sql(value)}") == 1, value
            assert wide.count(f"v IN ({_sql(value)}, {_sql(value + 100)})") == 1, value
    assert wide.aggregate({"n": ("count", "v")}).column("n")[0].as_py() == 4
    assert wide.count("v IS NULL") == 1
    wide.merge(target_size=1 << 30)
    assert indextables.open(where).count("v IS NOT NULL") == 4


def test_a_write_that_began_before_a_change_is_refused(path: str) -> None:
    data = pa.table({"id": [9], "name": ["late"], "day": ["wed"]})
    for change in (
        lambda t: t.rename_column("name", "title"),
        lambda t: t.drop_column("title") or t.add_column("title", "string"),
    ):
        names = indextables.open(path).schema.names
        order = WriteOrder(path, data.rename_columns(names).schema).decide()
        adds = order.write(data.rename_columns(names).to_batches())
        change(indextables.open(path))
        with pytest.raises(CommitConflictError, match=r"renamed or dropped|another column"):
            order.commit(adds)
    assert len(indextables.open(path)) == 3


def test_stored_names_stay_with_their_table(path: str, tmp_path: Path) -> None:
    table = indextables.open(path)
    table.rename_column("name", "title")
    rows = indextables.open(path).to_arrow()
    other = str(tmp_path / "other")
    indextables.write(rows, other)
    copied = indextables.open(other)
    assert copied.snapshot.stored_schema.names == ["id", "title", "day"]
    assert copied.count("title = 'y'") == 1
    assert "columnMapping" not in named_features(other)


def test_restore_brings_the_old_names_back(path: str) -> None:
    table = indextables.open(path)
    version = table.version
    table.rename_column("name", "title")
    table.drop_column("id")
    assert indextables.open(path).at(version=version).schema.names == ["id", "name", "day"]
    table.restore(version)
    assert indextables.open(path).to_arrow("name = 'x'").num_rows == 1


def test_grown_schemas_do_not_meet_retired_names(path: str) -> None:
    indextables.open(path).drop_column("name")
    data = pa.table({"id": [4], "name": [44], "day": ["tue"]})
    indextables.write(data, path, merge_schema=True)
    table = indextables.open(path)
    assert sorted(table.to_arrow()["name"].to_pylist(), key=str) == [44, None, None, None]
    assert table.count("name = 44") == 1


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (lambda t: t.rename_column("nmae", "x"), UnknownColumnError, "name"),
        (lambda t: t.rename_column("name", "ID"), MaintenanceError, "already"),
        (lambda t: t.rename_column("name", " "), MaintenanceError, "needs a name"),
        (lambda t: t.drop_column("day"), MaintenanceError, "partition column"),
        (lambda t: t.drop_column("nothing"), UnknownColumnError, "nothing"),
        (lambda t: (t.drop_column("id"), t.drop_column("name")), MaintenanceError, "last column"),
        (lambda t: t.add_column("Name", "int"), MaintenanceError, "already"),
        (lambda t: t.add_column("n", "integre"), SchemaMismatchError, "integre"),
        (lambda t: t.add_column("n", "array<"), SchemaMismatchError, "array"),
        (lambda t: t.add_column("n", "int", after="zzz"), UnknownColumnError, "zzz"),
        (lambda t: t.add_column("id.x", "int"), MaintenanceError, "no struct"),
        (lambda t: t.alter_column_type("id", "int"), MaintenanceError, "cannot become"),
        (lambda t: t.alter_column_type("name", "double"), MaintenanceError, "cannot become"),
    ],
)
def test_what_cannot_be_done_is_refused(path: str, call: Any, error: Any, told: str) -> None:
    with pytest.raises(error, match=told):
        call(indextables.open(path))
    assert indextables.open(path).to_arrow().num_rows == 3


def test_an_empty_table_changes_its_columns(tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    indextables.write(
        pa.table({"a": pa.array([], pa.int32()), "b": pa.array([], pa.string())}), where
    )
    table = indextables.open(where)
    assert table.rename_column("a", "n").status == "success"
    assert table.rename_column("n", "n").status == "no_action"
    table.add_column("c", "struct<x:int,y:array<string>>", first=True, comment="more")
    table.rename_column("c.y", "z")
    table.add_column("c.w", "double", after="x")
    table.drop_column("c.x")
    table.alter_column_type("n", "bigint")
    empty = indextables.open(where)
    assert empty.schema.names == ["c", "n", "b"]
    assert [f.name for f in empty.schema.field("c").type] == ["w", "z"]
    assert empty.to_arrow("n = 1 AND c.w > 2").num_rows == 0
    assert maintenance.alter_column(empty.log, "n", comment="").status == "no_action"
