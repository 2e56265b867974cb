"""Seed 001, the protocol with Avro state: one test for each heading that promises something.

Fields and bytes of actions and manifests are tested in ``tests/log/test_log_actions.py``,
``test_log_interop.py`` and ``test_state_manifest.py``; the settings in ``tests/settings``.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import VersionNotFoundError
from indextables.log.log import TransactionLog
from indextables.log.read.versions import LOG_DIR, list_log, list_states
from indextables.storage.retry import Backoff

QUIET = {
    "spark.indextables.xref.autoIndex.enabled": "false",
    "spark.indextables.checkpoint.interval": "1000",
}


def write(path: Path, *words: str, options: dict[str, str] | None = None, **given: Any) -> None:
    data = pa.table({"word": list(words)})
    indextables.write(data, str(path), options={**QUIET, **(options or {})}, **given)


def opened(path: Path, **options: str) -> indextables.Table:
    given = {f"spark.indextables.{k.replace('__', '.')}": v for k, v in options.items()}
    return indextables.open(str(path), options={**QUIET, **given})


def last_checkpoint(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / LOG_DIR / "_last_checkpoint").read_text())
    return found


def age(path: Path, pattern: str, hours: float) -> None:
    for file in (path / LOG_DIR).glob(pattern):
        past = file.stat().st_mtime - hours * 3600
        os.utime(file, (past, past))


# -- Checkpoints -----------------------------------------------------------------------------------


def test_last_checkpoint_file(tmp_path: Path) -> None:
    write(tmp_path, "a")
    opened(tmp_path).checkpoint()
    found = last_checkpoint(tmp_path)
    assert found["format"] == "avro-state"
    assert found["stateDir"] == "state-v00000000000000000001"
    assert (found["version"], found["numFiles"]) == (1, 1)
    assert (tmp_path / LOG_DIR / found["stateDir"]).is_dir()


def test_json_checkpoint_is_counted_without_its_hint(tmp_path: Path) -> None:
    write(tmp_path, "a")
    write(tmp_path, "b")
    opened(tmp_path, state__format="json").checkpoint()
    (tmp_path / LOG_DIR / "_last_checkpoint").unlink()
    found = opened(tmp_path).describe_state()
    assert (found.format, found.num_files) == ("json", 2)
    assert found.total_bytes > 0


# -- Avro state compaction -------------------------------------------------------------------------


def states(path: Path) -> list[int]:
    return list_states(TransactionLog.open(str(path)).store)


def test_force_compaction_where_a_state_is_there(tmp_path: Path) -> None:
    for word in "abc":
        write(tmp_path, word)
        opened(tmp_path).checkpoint()
    before = opened(tmp_path).describe_state()
    assert before.num_manifests == 3
    indextables.sql(None, f"COMPACT INDEXTABLES '{tmp_path}'")
    after = opened(tmp_path).describe_state()
    assert after.num_manifests == 1
    assert after.num_files == 3
    assert after.version == before.version + 1
    assert sorted(opened(tmp_path).to_arrow()["word"].to_pylist()) == ["a", "b", "c"]
    indextables.sql(None, f"COMPACT INDEXTABLES '{tmp_path}'")
    assert opened(tmp_path).version == after.version, "there was nothing left to compact"


@pytest.mark.parametrize("wanted", [True, False])
def test_compact_after_merge_splits(tmp_path: Path, wanted: bool) -> None:
    for word in "abcd":
        write(tmp_path, word)
        opened(tmp_path).checkpoint()
    table = opened(tmp_path, state__compaction__afterMerge=str(wanted).lower())
    table.merge(target_size=1 << 30)
    state = opened(tmp_path).describe_state()
    assert (state.num_manifests == 1 and state.num_tombstones == 0) is wanted


def test_tombstone_ratio_has_one_formula(tmp_path: Path) -> None:
    for word in "abcd":
        write(tmp_path, word)
    opened(tmp_path).checkpoint()
    patient = {"state__compaction__tombstoneThreshold": "0.25"}
    opened(tmp_path).delete("word = 'a'")
    opened(tmp_path, **patient).checkpoint()
    state = opened(tmp_path, **patient).describe_state()
    assert state.tombstone_ratio == 0.25
    assert not state.needs_compaction
    opened(tmp_path).delete("word = 'b'")
    opened(tmp_path, **patient).checkpoint()
    assert opened(tmp_path).describe_state().num_tombstones == 0, "half of the entries were dead"


# -- Retry configuration ---------------------------------------------------------------------------


def test_retry_delays_stay_within_max_delay_ms(seed: int) -> None:
    rng = random.Random(seed)
    for base in (0.001, 0.1, 3.0, 60.0):
        pauses = Backoff(base, 0.5).pauses(rng)
        assert all(0 <= next(pauses) <= 0.5 for _ in range(200))


# -- Retention and cleanup -------------------------------------------------------------------------


def test_checkpoint_retention_before_a_version_expires(tmp_path: Path) -> None:
    for word in "abc":
        write(tmp_path, word)
        opened(tmp_path, state__format="json").checkpoint()
    age(tmp_path, "*.checkpoint.json", 3)
    log = TransactionLog.open(str(tmp_path))
    assert len(list_log(log.store).checkpoints) == 3
    log.cleanup()
    listing = list_log(log.store)
    assert list(listing.checkpoints) == [3], "the newest stays"
    assert list(listing.versions) == [0, 1, 2, 3], "no version is old enough"
    for version in range(1, 4):
        assert len(indextables.open(str(tmp_path), version=version)) == version


# -- Time travel -----------------------------------------------------------------------------------


def test_version_not_found_names_the_versions_that_exist(tmp_path: Path) -> None:
    for word in "abcdef":
        write(tmp_path, word)
    for version in (2, 5):
        TransactionLog.open(str(tmp_path)).snapshot(version=version)
    opened(tmp_path).checkpoint()
    for version in (3, 4):
        (tmp_path / LOG_DIR / f"{version:020d}.json").unlink()
    fresh = Path(str(tmp_path) + "-copy")
    shutil.copytree(tmp_path, fresh)
    with pytest.raises(VersionNotFoundError) as caught:
        indextables.open(str(fresh), version=4)
    assert caught.value.hint == "Versions that can be read: 0 to 2, 6"


# -- Merge with an unreadable split ----------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"skippedFiles__trackingEnabled": "false"},
        {"skippedFiles__cooldownDuration": "0"},
        {},
    ],
    ids=["tracking off", "no cooldown", "default"],
)
def test_skip_action_is_written_once_and_the_others_are_merged(
    tmp_path: Path, options: dict[str, str]
) -> None:
    for word in "abcd":
        write(tmp_path, word)
    broken = opened(tmp_path).snapshot.paths.to_pylist()[1]
    size = (tmp_path / broken).stat().st_size
    (tmp_path / broken).write_bytes(b"\0" * size)
    from indextables.splits.read.reader import forget_readers

    forget_readers()
    result = opened(tmp_path, **options).merge(target_size=1 << 30)
    assert result.metrics.merged_files == 3
    now = opened(tmp_path)
    assert now.snapshot.num_files == 2
    log = TransactionLog.open(str(tmp_path))
    changes = log.changes(0, log.snapshot().version) or []
    kinds = [type(a).KEY for c in changes for a in c.actions]
    assert kinds.count("mergeskip") == (0 if "skippedFiles__trackingEnabled" in options else 1)


# -- Appendix C ------------------------------------------------------------------------------------


def test_appendix_c_upgrading_from_v3_to_v4(tmp_path: Path) -> None:
    write(tmp_path, "a", options={"spark.indextables.protocol.version": "3"})
    indextables.sql(None, f"CHECKPOINT INDEXTABLES '{tmp_path}'")
    assert last_checkpoint(tmp_path)["format"] == "avro-state"
    described = indextables.sql(None, f"DESCRIBE INDEXTABLES STATE '{tmp_path}'").to_pylist()
    assert described[0]["format"] == "avro-state"
    assert opened(tmp_path).snapshot.protocol.min_reader_version == 4


@pytest.mark.parametrize("options", [{"state__format": "json"}, {"protocol__autoUpgrade": "false"}])
def test_appendix_c_downgrading(tmp_path: Path, options: dict[str, str]) -> None:
    write(tmp_path, "a", options={"spark.indextables.protocol.version": "3"})
    opened(tmp_path, **options).checkpoint()
    assert last_checkpoint(tmp_path)["format"] == "json"
    assert opened(tmp_path).snapshot.protocol.min_reader_version == 3
