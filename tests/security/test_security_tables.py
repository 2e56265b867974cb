"""A table that somebody prepared: nothing outside of it is read, written or deleted, and every
wrong byte is one of our errors."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CorruptFileError, IndexTablesError, UnsafePathError
from indextables.log.read.cache import SHARED
from indextables.splits.read.reader import forget_readers

PLAIN = {
    "spark.indextables.transaction.compression.enabled": "false",
    "spark.indextables.storage.fsync": "false",
    "spark.indextables.checkpoint.enabled": "false",
}
OUTSIDE = ["../outside.split", "/etc/passwd", "file:///etc/passwd", "a/../../x", "s3://b/k", "a\0b"]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for k in range(3):
        data = pa.table({"id": [k, k + 10], "m": ["big fox", "small dog"], "p": ["a", "b"]})
        indextables.write(data, str(path), partition_by=["p"], text=["m"], options=PLAIN)
    indextables.open(str(path), options=PLAIN).build_xref()
    return path


def log_file(table: Path, version: int) -> Path:
    return table / "_transaction_log" / f"{version:020d}.json"


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def put(file: Path, actions: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(action) + "\n" for action in actions))


def read_all(path: Path) -> list[int]:
    SHARED.invalidate()
    forget_readers()
    options = {"spark.indextables.xref.query.minSplitsForXRef": 1}
    found = indextables.open(str(path), options=options)
    found.count("m TEXTSEARCH 'fox'")
    return sorted(found.to_arrow(columns=["id"])["id"].to_pylist())


def changed(table: Path, kind: str, **fields: Any) -> None:
    """Change the first action of a kind, wherever it is."""
    for version in range(10):
        file = log_file(table, version)
        actions = lines(file)
        for action in actions:
            if kind in action:
                action[kind].update(fields)
                put(file, actions)
                return
    raise AssertionError(kind)


@pytest.mark.parametrize("path", OUTSIDE)
@pytest.mark.parametrize("kind", ["add", "addXRef"])
def test_paths_in_the_log_cannot_leave_the_table(table: Path, kind: str, path: str) -> None:
    changed(table, kind, path=path)
    with pytest.raises(UnsafePathError):
        read_all(table)


def test_a_removed_path_cannot_lead_a_purge_outside(table: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim.split"
    victim.write_bytes(b"precious")
    os.utime(victim, (0, 0))
    remove = {"path": "../victim.split", "deletionTimestamp": 1, "dataChange": True}
    newest = max(int(f.stem) for f in (table / "_transaction_log").glob("*.json"))
    put(log_file(table, newest + 1), [{"remove": remove}])
    SHARED.invalidate()
    with pytest.raises(UnsafePathError):
        indextables.open(str(table)).purge(older_than_hours=24)
    assert victim.read_bytes() == b"precious"


def test_a_split_that_is_a_link_to_the_outside_is_refused(table: Path, tmp_path: Path) -> None:
    split = next(table.rglob("part-*.split"))
    elsewhere = tmp_path / "elsewhere.split"
    shutil.move(split, elsewhere)
    split.symlink_to(elsewhere)
    with pytest.raises(UnsafePathError):
        read_all(table)


def test_a_log_that_is_a_link_to_the_outside_is_refused(table: Path, tmp_path: Path) -> None:
    log = table / "_transaction_log"
    shutil.move(log, tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    SHARED.invalidate()
    with pytest.raises(UnsafePathError):
        indextables.open(str(table))


@pytest.mark.parametrize("value", ["../../x", "..", "/", "a/../..", "=", "\0", "%2e%2e/x", "a b\n"])
def test_partition_values_stay_below_the_table(tmp_path: Path, value: str) -> None:
    path = tmp_path / "deep" / "t"
    indextables.write([{"id": 1, "p": value}], str(path), partition_by=["p"], options=PLAIN)
    assert indextables.open(str(path)).to_arrow()["p"].to_pylist() == [value]
    assert [f for f in tmp_path.rglob("*.split") if not f.is_relative_to(path)] == []


@pytest.mark.parametrize(
    "mapping", ["{", "[1]", '[{"name":"m"}]', '[{"name":1,"type":[]}]', "[" * 100_000, "null", "7"]
)
def test_a_malformed_mapping_is_a_corrupt_file(table: Path, mapping: str) -> None:
    for version in range(10):
        if log_file(table, version).exists():
            actions = lines(log_file(table, version))
            for action in actions:
                configuration = action.get("metaData", {}).get("configuration", {})
                for key in configuration:
                    if "docMapping" in key:
                        configuration[key] = mapping
                if "add" in action:
                    action["add"].pop("docMappingRef", None)
                    action["add"]["docMappingJson"] = mapping
            put(log_file(table, version), actions)
    with pytest.raises(IndexTablesError):
        read_all(table)


def test_random_damage_of_the_log_is_told_or_harmless(table: Path, seed: int) -> None:
    rng = random.Random(seed)
    files = sorted((table / "_transaction_log").glob("*.json"))
    told = 0
    for _ in range(60):
        file = rng.choice(files)
        good = file.read_bytes()
        bad = bytearray(good)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(bad))
            bad[at : at + rng.randrange(0, 3)] = rng.randbytes(rng.randrange(0, 3))
        file.write_bytes(bytes(bad))
        try:
            read_all(table)
        except IndexTablesError:
            told += 1
        file.write_bytes(good)
    assert told > 5
    assert read_all(table) == [0, 1, 2, 10, 11, 12]


def test_random_damage_of_splits_is_told_or_harmless(table: Path, seed: int) -> None:
    rng = random.Random(seed)
    whole = read_all(table)
    for file in sorted(table.rglob("*.split")):
        good = file.read_bytes()
        for _ in range(6):
            bad = bytearray(good)
            bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
            file.write_bytes(bytes(bad) if rng.random() < 0.8 else bytes(bad[: rng.randrange(9)]))
            with contextlib.suppress(CorruptFileError):
                assert read_all(table) == whole
        file.write_bytes(good)
    assert read_all(table) == whole
