"""Seed 003, the table protocol: its "future" items that are built, and what nobody else tests.

Version 0, conflicts, checkpoints and cleanup are tested in ``tests/log``; schema evolution and
column mapping in ``tests/table/test_table_columns.py``; deletion vectors and the change feed with
the verbs that write rows.
"""

from __future__ import annotations

import datetime
import gzip
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.errors import ConfigError, CorruptFileError, UnknownColumnError
from indextables.log.actions.codec import decode_lines
from indextables.log.log import TransactionLog
from indextables.log.read.versions import LOG_DIR, version_path

QUIET = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.transaction.compression.enabled": "false",
}


def write(path: Path, numbers: list[int], **options: str) -> None:
    given = {f"spark.indextables.{k.replace('__', '.')}": v for k, v in options.items()}
    indextables.write(pa.table({"n": numbers}), str(path), options={**QUIET, **given})


# -- Incremental checksums -------------------------------------------------------------------------


def commit_info(path: Path, version: int) -> dict[str, Any]:
    lines = (path / version_path(version)).read_text().splitlines()
    found: dict[str, Any] = next(json.loads(x) for x in lines if "commitInfo" in x)["commitInfo"]
    return found


def test_incremental_checksums(tmp_path: Path) -> None:
    path = tmp_path / "t"
    for i in range(4):
        write(path, [i])
    sums = [commit_info(path, v)["stateChecksum"] for v in range(1, 5)]
    assert len(set(sums)) == 4
    indextables.open(str(path)).checkpoint()
    indextables.open(str(path), options=QUIET).delete("n = 3")
    after = commit_info(path, indextables.open(str(path)).version)["stateChecksum"]
    assert after == sums[2], "the same files have the same sum"
    lost = path / version_path(3)
    lines = [x for x in lost.read_text().splitlines() if '"add"' not in x]
    moved = tmp_path / "moved"
    (path).rename(moved)
    for state in (moved / LOG_DIR).glob("state-v*"):
        for file in state.iterdir():
            file.unlink()
        state.rmdir()
    (moved / version_path(3)).write_text("\n".join(lines) + "\n")
    with pytest.raises(CorruptFileError, match="does not add up"):
        indextables.open(str(moved))
    off = {"spark.indextables.transaction.checksum.enabled": "false"}
    assert indextables.open(str(moved), options=off).count() == 2
    write(tmp_path / "u", [1], transaction__checksum__enabled="false")
    assert "stateChecksum" not in commit_info(tmp_path / "u", 1)


def test_checksums_follow_random_changes(tmp_path: Path, seed: int) -> None:
    """Whatever was done, a log read anew adds up; every version of it."""
    rng = random.Random(seed)
    path = tmp_path / "t"
    write(path, [0])
    for i in range(12):
        table = indextables.open(str(path), options=QUIET)
        step = rng.choice(["write", "write", "delete", "merge", "checkpoint", "overwrite"])
        if step == "write":
            write(path, [i, i + 1])
        elif step == "delete":
            table.delete(f"n = {rng.randint(0, i)}")
        elif step == "merge":
            table.merge(target_size=1 << 30)
        elif step == "checkpoint":
            table.checkpoint()
        else:
            indextables.write(pa.table({"n": [i]}), str(path), mode="overwrite", options=QUIET)
    moved = tmp_path / "moved"
    path.rename(moved)
    log = TransactionLog.open(str(moved))
    for version in range(1, log.snapshot().version + 1):
        log.snapshot(version=version)


# -- Time travel queries ---------------------------------------------------------------------------


@pytest.fixture
def versions(tmp_path: Path) -> Path:
    path = tmp_path / "t"
    for i in range(3):
        write(path, [i])
    return path


def moment_of(path: Path, version: int) -> str:
    millis = commit_info(path, version)["timestamp"]
    moment = datetime.datetime.fromtimestamp(millis / 1000, datetime.UTC)
    return moment.strftime("%Y%m%d%H%M%S") + f"{millis % 1000:03d}"


def test_time_travel_in_a_path_in_python(versions: Path) -> None:
    assert len(indextables.open(f"{versions}@v2")) == 2
    assert len(indextables.open(f"{versions}@{moment_of(versions, 1)}")) == 1
    tomorrow = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=1)
    assert len(indextables.open(f"{versions}@{tomorrow:%Y%m%d}")) == 3
    assert indextables.open(f"{versions}@v2").path == str(versions)


def test_time_travel_in_a_path_on_the_command_line(versions: Path) -> None:
    for suffix, rows in (("", 3), ("@v1", 1), (f"@{moment_of(versions, 2)}", 2)):
        done = CliRunner().invoke(cli, ["count", f"{versions}{suffix}"])
        assert done.exit_code == 0, done.output
        assert str(rows) in done.output.split()


def test_a_table_whose_name_looks_like_a_version_is_itself(tmp_path: Path) -> None:
    path = tmp_path / "t@v1"
    with pytest.raises(ConfigError, match="old version"):
        write(path, [1, 2])
    path.parent.mkdir(exist_ok=True)
    plain = tmp_path / "plain"
    write(plain, [1, 2])
    plain.rename(path)
    assert len(indextables.open(str(path))) == 2


def test_a_path_that_names_a_version_is_not_written(versions: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be written"):
        write(Path(f"{versions}@v1"), [9])
    with pytest.raises(ConfigError, match="no moment"):
        indextables.open(f"{versions}@20261399")
    with pytest.raises(ConfigError, match="another version"):
        indextables.open(f"{versions}@v1", version=2)
    assert len(indextables.open(str(versions))) == 3


# -- Liquid clustering -----------------------------------------------------------------------------


def shuffled(rng: random.Random, count: int = 400) -> pa.Table:
    numbers = list(range(count))
    rng.shuffle(numbers)
    return pa.table({"n": numbers, "text": [f"row {i}" for i in numbers]})


def test_liquid_clustering(tmp_path: Path, seed: int) -> None:
    """Splits opened for one value: of rows as they come, of rows in order, and after a merge."""
    opened = {}
    for by in (None, "n"):
        rng = random.Random(seed)
        path = str(tmp_path / str(by))
        options = {**QUIET, "spark.indextables.write.rowsPerSplit": "100"}
        if by:
            options["spark.indextables.write.clusterBy"] = by
        for _ in range(3):
            indextables.write(shuffled(rng), path, options=options)
            options.pop("spark.indextables.write.clusterBy", None)
        before = len(indextables.open(path).plan("n = 150"))
        once = {**QUIET, "spark.indextables.merge.maxPasses": "1"}
        indextables.open(path, options=once).merge(max_source_splits=3)
        after = indextables.open(path)
        opened[by] = before, len(after.plan("n = 150")), after.snapshot.num_files
        assert sorted(after.to_arrow()["n"].to_pylist()) == sorted([*range(400)] * 3)
    assert opened[None] == (12, 4, 4)
    assert opened["n"] == (3, 1, 4)


def test_clustering_by_several_columns_and_partitions(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    rows = [(rng.choice("ab"), rng.choice("xyz"), rng.randint(0, 99)) for _ in range(600)]
    data = pa.table(
        {"p": [r[0] for r in rows], "k": [r[1] for r in rows], "n": [r[2] for r in rows]}
    )
    path = str(tmp_path / "t")
    options = {**QUIET, "spark.indextables.write.rowsPerSplit": "50"}
    options["spark.indextables.write.clusterBy"] = "K, n"
    indextables.write(data, path, partition_by=["p"], options=options)
    table = indextables.open(path)
    expected = sum(r == ("a", "y", r[2]) and r[2] < 10 for r in rows)
    assert table.count("p = 'a' AND k = 'y' AND n < 10") == expected
    assert len(table.plan("p = 'a' AND k = 'y' AND n < 10")) <= 3 < table.snapshot.num_files
    table.rename_column("n", "number")
    assert (
        indextables.open(path).snapshot.metadata.configuration["spark.indextables.write.clusterBy"]
        == "k,number"
    )
    table.drop_column("k")
    table.merge(target_size=1 << 30)
    assert indextables.open(path).count("number >= 0") == 600


def test_clustering_by_what_has_no_order_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnknownColumnError):
        write(tmp_path / "t", [1], write__clusterBy="nothing")
    data = pa.table({"s": [{"x": 1}]})
    options = {"spark.indextables.write.clusterBy": "s"}
    with pytest.raises(indextables.errors.SchemaMismatchError, match="clustered"):
        indextables.write(data, str(tmp_path / "u"), options=options)


# -- JSON lines ------------------------------------------------------------------------------------


def test_version_files_are_json_lines_also_compressed(tmp_path: Path) -> None:
    indextables.write(pa.table({"n": [1]}), str(tmp_path / "t"))
    data = (tmp_path / "t" / version_path(0)).read_bytes()
    kinds = [next(iter(line)) for line in decode_lines(data, path="0")]
    assert sorted(kinds) == ["metaData", "protocol"]
    plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    assert plain
