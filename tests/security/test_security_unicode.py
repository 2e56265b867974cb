"""Bytes that are no UTF-8 and halves of surrogate pairs are refused in our words everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables import col
from indextables.config import PREFIX
from indextables.errors import (
    CommitFailedError,
    ConfigError,
    CorruptFileError,
    IndexTablesError,
    PlanningError,
    QuerySyntaxError,
    SchemaMismatchError,
    UnknownColumnError,
    UnsafePathError,
)
from indextables.log.actions.codec import decode_lines
from indextables.log.read import cache

HALF = "\ud800"
ROWS = pa.table({"id": [1, 2], "s": ["a", "b"], "p": ["x", "y"]})


@pytest.fixture
def table(tmp_path: Path) -> Any:
    path = str(tmp_path / "t")
    indextables.write(ROWS, path, partition_by=["p"])
    return indextables.open(path)


def refused(kind: type[IndexTablesError], work: Callable[[], object]) -> None:
    """An error of ours that can be printed."""
    with pytest.raises(kind) as caught:
        work()
    str(caught.value).encode()


@pytest.mark.parametrize("column", ["s", "p"])
@pytest.mark.parametrize(
    "condition",
    [
        lambda c: c == HALF,
        lambda c: c < HALF,
        lambda c: c != "a" + HALF,
        lambda c: c.isin([HALF]),
        lambda c: c.isin(["a", "b" + HALF]),
        lambda c: c.like(HALF + "%"),
        lambda c: c.startswith(HALF),
        lambda c: c.endswith(HALF),
        lambda c: c.contains(HALF),
    ],
)
def test_predicates(table: Any, column: str, condition: Callable[[Any], Any]) -> None:
    where = condition(col(column))
    for ask in (table.to_arrow, table.count, table.plan, table.explain, table.delete):
        refused(PlanningError, lambda ask=ask: ask(where))
    refused(PlanningError, lambda: table.drop_partitions(where))
    assert table.refresh().count() == 2


def test_texts_that_are_parsed(table: Any) -> None:
    for text in (f"s = '{HALF}'", f"{HALF} = 1", f"s LIKE '{HALF}'"):
        refused(PlanningError, lambda text=text: table.count(text))
    refused(PlanningError, lambda: table.search(HALF))
    refused(PlanningError, lambda: table.search(b"\xff"))
    refused(PlanningError, lambda: table.count(b"\xff"))
    for command in (
        f"DESCRIBE INDEXTABLES STATE '{table.path}{HALF}'",
        f"DELETE FROM '{table.path}' WHERE s = '{HALF}'",
        f"RESTORE '{table.path}' TO TIMESTAMP AS OF '{HALF}'",
        f"RESTORE '{table.path}' TO VERSION AS OF {2**63}",
        HALF,
        f"CREATE INDEX i ON '{table.path}' ({HALF})",
        f"ALTER TABLE '{table.path}' SET TBLPROPERTIES ('a'='{HALF}')",
    ):
        refused(IndexTablesError, lambda command=command: indextables.sql(None, command))
    assert table.refresh().version == 1


def test_names(table: Any) -> None:
    for work in (
        lambda: table.count(col(HALF) == 1),
        lambda: table.to_arrow(columns=[HALF]),
        lambda: table.top(HALF),
        lambda: table.search("a", fields=[HALF]),
        lambda: table.aggregate({"c": ("sum", HALF)}),
        lambda: table.create_index(HALF),
        lambda: indextables.write(ROWS, table.path + "2", partition_by=[HALF]),
        lambda: indextables.write(ROWS, table.path + "2", text=[HALF]),
    ):
        refused(UnknownColumnError, work)
    refused(QuerySyntaxError, lambda: table.aggregate({"c": "count"}, [HALF]))
    refused(PlanningError, lambda: table.aggregate({HALF: "count"}))
    refused(ConfigError, lambda: indextables.write(ROWS, table.path, mode=HALF))
    refused(ConfigError, lambda: indextables.open(table.path, options={"read.where": HALF}))
    refused(ConfigError, lambda: indextables.open(table.path, options={f"{PREFIX}{HALF}": 1}))


def test_paths(tmp_path: Path, table: Any) -> None:
    for path in (
        f"{tmp_path}/{HALF}",
        f"{tmp_path}/\udcff",
        f"{tmp_path}/a\0b",
        b"/tmp/\xff",
        5,
    ):
        refused(ConfigError, lambda path=path: indextables.open(path))
        refused(ConfigError, lambda path=path: indextables.write(ROWS, path))


def broken_text(raw: bytes = b"a\xffb") -> pa.Array:
    offsets = np.array([0, len(raw)], np.int32).tobytes()
    return pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(offsets), pa.py_buffer(raw)])


@pytest.mark.parametrize(
    "make",
    [
        lambda: {"s": broken_text()},
        lambda: {"p": broken_text()},
        lambda: {"x": pa.StructArray.from_arrays([broken_text()], ["t"])},
        lambda: {"x": pa.ListArray.from_arrays(pa.array([0, 1], pa.int32()), broken_text())},
        lambda: {"s": pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), broken_text())},
    ],
    ids=["text", "partition", "struct", "list", "dictionary"],
)
def test_bytes_that_are_no_text_are_not_written(
    table: Any, make: Callable[[], dict[str, Any]]
) -> None:
    data = pa.table({"id": [1], "s": ["a"], "p": ["x"], **make()})
    refused(SchemaMismatchError, lambda: indextables.write(data, table.path, merge_schema=True))
    assert table.refresh().version == 1


@pytest.mark.parametrize("row", [{"s": HALF}, {HALF: 1}, {"s": {HALF: 1}}, {"s": ["a", HALF]}])
def test_rows_with_halves_are_not_written(table: Any, row: dict[str, Any]) -> None:
    refused(SchemaMismatchError, lambda: indextables.write([row], table.path))
    refused(SchemaMismatchError, lambda: indextables.write([{"a": 1}, {"a": "x"}], table.path))
    assert table.refresh().version == 1


def test_metadata_with_halves_is_not_written(tmp_path: Path) -> None:
    from indextables.log.log import TransactionLog

    path = str(tmp_path / "t")
    schema = pa.schema([("a", pa.int64())])
    refused(CommitFailedError, lambda: TransactionLog.create(path, schema, name=HALF))
    assert not TransactionLog.exists(path)


# -- the log ------------------------------------------------------------------------------------


def edited(table: Any, version: int, change: Callable[[str], str]) -> Any:
    """The table with the JSON text of one version changed."""
    path = Path(table.path) / "_transaction_log" / f"{version:020d}.json"
    lines = decode_lines(path.read_bytes(), path=path.name)
    path.write_text(change("\n".join(json.dumps(line) for line in lines)))
    cache.SHARED.invalidate()
    return indextables.open(table.path)


@pytest.mark.parametrize(
    ("version", "old", "kind"),
    [
        (1, '"p": "x', CorruptFileError),
        (1, '"commitId": "', CorruptFileError),
        (1, '"path": "', UnsafePathError),
    ],
)
def test_halves_in_the_log(
    table: Any, version: int, old: str, kind: type[IndexTablesError]
) -> None:
    def read() -> None:
        found = edited(table, version, lambda text: _put(text, old, old + "\\ud800"))
        found.to_arrow()

    refused(kind, read)


def _put(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def test_a_statistic_cut_through_a_pair_is_no_bound(table: Any) -> None:
    def cut(text: str) -> str:
        text = _put(text, '"maxValues": {', '"maxValues": {"t\\udc00": "z", ')
        return _put(text, '"s": "b"', '"s": "\\ud83d"')

    found = edited(table, 1, cut)
    assert found.count("s = 'b'") == 1
    assert found.count("s = 'zzz'") == 0
    found.log.checkpoint()
    indextables.write(ROWS, table.path)
    cache.SHARED.invalidate()
    assert indextables.open(table.path).count("s >= 'b'") == 2


def test_bytes_in_the_log(table: Any) -> None:
    folder = Path(table.path) / "_transaction_log"
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.json")).write_bytes(b"x")
    (folder / "_last_checkpoint").write_bytes(b"\xff")
    cache.SHARED.invalidate()
    assert indextables.open(table.path).count() == 2
    (folder / f"{1:020d}.json").write_bytes(b'{"commitInfo":{"operation":"\xff"}}\n')
    cache.SHARED.invalidate()
    refused(CorruptFileError, lambda: indextables.open(table.path))


# -- the command line -----------------------------------------------------------------------------


_MAIN = b"from indextables.cli.main import main; main()"


@pytest.mark.parametrize(
    "arguments",
    [
        [b"history", b"/tmp/\xff"],
        [b"count", b"PATH", b"s = '\xff'"],
        [b"search", b"PATH", b"\xff"],
        [b"describe", b"PATH", b"--timestamp", b"\xff"],
        [b"describe", b"PATH", b"--timestamp", b"nan"],
        [b"describe", b"PATH", b"--version", b"\xff"],
        [b"describe", b"PATH", b"--version", b"1.0"],
        [b"describe", b"PATH", b"--version", b"-1"],
        [b"describe", b"PATH", b"--version", b"9223372036854775808"],
    ],
)
def test_arguments_of_the_command_line(table: Any, arguments: list[bytes]) -> None:
    given = [table.path.encode() if a == b"PATH" else a for a in arguments]
    command = [sys.executable.encode(), b"-c", _MAIN, *given]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode in (1, 2), done.stdout
    assert b"Traceback" not in done.stderr
    assert b"rror" in done.stderr or b"ITX-" in done.stderr, done.stderr
