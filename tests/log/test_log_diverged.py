"""Versions that two programs claimed: a version file of ours, a state of theirs."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from log_helpers import append, config, names, new_table, remove, reopen, run, split

from indextables.config import Config
from indextables.errors import DivergedLogError
from indextables.log.actions import Action
from indextables.log.checkpoint.state import encode_state, read_state, write_state
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import list_states, state_dir, version_path
from indextables.maintenance import doctor, truncate_time_travel
from indextables.storage.base import open_store


def their_state(log: TransactionLog, base: Snapshot, actions: Sequence[Action]) -> None:
    """What the other program does: a state on top of ``base``, and no look at version files."""
    change = VersionActions(base.version + 1, base.timestamp_ms + 1, list(actions))
    snapshot = base.with_versions([change])
    folder = state_dir(snapshot.version)
    assert not list(log.store.list(folder)), "their slot is taken"
    write_state(log.store, snapshot, config=log.config)
    ours = read_state(log.store, snapshot.version)
    theirs = replace(ours, extras=())
    path = f"{folder}/_manifest.avro"
    log.store.put(path, encode_state(theirs, None, Config(), False))
    assert not read_state(log.store, snapshot.version).is_ours


def table() -> tuple[TransactionLog, Snapshot]:
    """A table with one split, and the snapshot both programs start from."""
    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    return log, log.snapshot()


def test_rows_of_both_programs_are_read() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    assert names(reopen(log)) == ["a", "ours", "theirs"]
    assert reopen(log).snapshot().disputed == {"ours.split"}
    assert names(reopen(log), 2) == ["a", "ours", "theirs"]
    assert names(reopen(log), 1) == ["a"]


def test_a_process_that_holds_the_version_before_sees_both() -> None:
    log, base = table()
    other = TransactionLog(log.path, log.store, log.config)
    other.cache = cache.LogCache()
    assert names(other) == ["a"]
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    assert names(other) == ["a", "ours", "theirs"]


def test_several_versions_that_they_did_not_see() -> None:
    log, base = table()
    append(log, "ours1")
    their_state(log, base, [split("theirs1")])
    append(log, "ours2")
    mine = base.with_versions([VersionActions(2, 1, [split("theirs1")])])
    their_state(log, mine, [split("theirs2")])
    expected = ["a", "ours1", "ours2", "theirs1", "theirs2"]
    assert names(reopen(log)) == expected


def test_a_later_state_of_theirs_without_a_version_file() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs1")])
    mine = base.with_versions([VersionActions(2, 1, [split("theirs1")])])
    their_state(log, mine, [split("theirs2")])
    expected = ["a", "ours", "theirs1", "theirs2"]
    assert names(reopen(log)) == expected
    truncate_time_travel(reopen(log))
    assert not log.store.exists(version_path(2))
    assert names(reopen(log)) == expected


def test_writing_goes_on_from_the_union() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    log = reopen(log)
    append(log, "next")
    expected = ["a", "next", "ours", "theirs"]
    assert names(reopen(log)) == expected
    log.checkpoint(compact=True)
    log.store.delete([version_path(2), version_path(3)])
    assert names(reopen(log)) == expected
    assert not reopen(log).snapshot().disputed


def test_a_checkpoint_of_a_disputed_version_makes_a_new_one() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    log = reopen(log)
    assert log.checkpoint().version == 3
    assert read_state(log.store, 3).is_ours
    log.store.delete([version_path(2), version_path(3)])
    assert names(reopen(log)) == ["a", "ours", "theirs"]


def test_truncation_keeps_the_rows_of_both() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    truncate_time_travel(reopen(log))
    assert names(reopen(log)) == ["a", "ours", "theirs"]


def test_clean_up_keeps_the_rows_of_both() -> None:
    log, base = table()
    append(log, "ours1")
    their_state(log, base, [split("theirs1")])
    append(log, "ours2")
    mine = base.with_versions([VersionActions(2, 1, [split("theirs1")])])
    their_state(log, mine, [split("theirs2")])
    log = reopen(log)
    append(log, "next")
    expected = ["a", "next", "ours1", "ours2", "theirs1", "theirs2"]
    assert names(log) == expected
    second = names(reopen(log), 2)
    log.cleanup(retention_ms=-1)
    assert not log.store.exists(version_path(1))
    assert names(reopen(log), 2) == second, "their state alone would tell half of version 2"
    assert names(reopen(log)) == expected
    version = log.snapshot().version
    log.cleanup(retention_ms=-1)
    assert log.snapshot().version == version


def test_an_old_state_of_theirs_without_its_manifests_says_nothing() -> None:
    log, base = table()
    append(log, "b")
    their_state(log, base, [split("b")])
    mine = base.with_versions([VersionActions(2, 1, [split("b")])])
    their_state(log, mine, [split("c")])
    state = read_state(log.store, 2)
    kept = {m.path for m in read_state(log.store, 3).manifests}
    lost = [f"_transaction_log/{m.path}" for m in state.manifests if m.path not in kept]
    log.store.delete([*lost, f"{state_dir(2)}/_manifest.avro"])
    log.store.put(f"{state_dir(2)}/_manifest.avro", b"Obj\x01 damaged")
    assert names(reopen(log)) == ["a", "b", "c"]


def test_our_delete_and_their_append() -> None:
    log, base = table()
    remove(log, "a")
    their_state(log, base, [split("theirs")])
    assert names(reopen(log)) == ["theirs"]


def test_both_changed_the_same_file_and_nothing_is_guessed() -> None:
    log, base = table()
    gone = base.file(0).removal(1)
    run(log, "MERGE", [gone, split("ours")])
    their_state(log, base, [gone, split("theirs")])
    log = reopen(log)
    with pytest.raises(DivergedLogError, match=r"both changed a\.split") as caught:
        log.snapshot()
    assert version_path(2) in str(caught.value)
    with pytest.raises(DivergedLogError):
        append(log, "x")
    assert not log.store.exists(version_path(3))
    (finding,) = doctor(log)
    assert finding.severity == "error"
    assert "two programs made version 2" in finding.detail


def test_a_schema_that_one_of_them_changed() -> None:
    log, base = table()
    changed = replace(base.metadata, schema_string='{"type":"struct","fields":[]}')
    run(log, "ALTER", [changed, split("ours")])
    their_state(log, base, [split("theirs")])
    with pytest.raises(DivergedLogError, match="changed the schema"):
        reopen(log).snapshot()


def test_a_state_that_knows_its_version_is_left_alone() -> None:
    """Other releases write version files and states of them."""
    log, base = table()
    append(log, "b")
    their_state(log, base, [split("b")])
    snapshot = reopen(log).snapshot()
    assert sorted(snapshot.paths.to_pylist()) == ["a.split", "b.split"]
    assert not snapshot.disputed


def test_the_doctor_names_the_versions() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    found = [f for f in doctor(reopen(log), checksums=False) if f.check == "mixed writers"]
    (finding,) = found
    assert finding.severity == "error"
    assert "version 2" in finding.detail
    assert "CHECKPOINT" in finding.remedy


def test_the_doctor_sees_a_dispute_below_the_newest_version() -> None:
    log, base = table()
    append(log, "ours")
    their_state(log, base, [split("theirs")])
    reopen(log).checkpoint()
    found = [f for f in doctor(reopen(log), checksums=False) if f.check == "mixed writers"]
    assert [f.severity for f in found] == ["warning"]


def test_loads_of_our_own_states_cost_no_more() -> None:
    from store_doubles import RecordingStore

    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    log.checkpoint()
    store = RecordingStore(log.store)
    assert names(reopen(log, store=store)) == ["a"]
    assert version_path(1) not in [c.path for c in store.calls if c.op == "read"]


# -- a table that the JVM wrote -----------------------------------------------------------------


@pytest.fixture
def jvm(interop_dir: Path, tmp_path: Path) -> Path:
    source = interop_dir.parent / "interop-0.5.3" / "appends"
    if not source.is_dir():
        pytest.skip("the tables of release 0.5.3 are not on this machine")
    return Path(shutil.copytree(source, tmp_path / "appends"))


@pytest.mark.interop
def test_a_version_of_ours_beside_a_state_of_jvm_0_5_3(jvm: Path) -> None:
    log_dir = jvm / "_transaction_log"
    hidden = log_dir / "state-v00000000000000000003"
    kept = jvm.parent / "state"
    shutil.move(hidden, kept)
    (log_dir / "_last_checkpoint").unlink()
    cache.SHARED.invalidate()
    log = TransactionLog.open(str(jvm), config=config())
    assert log.snapshot().version == 2
    both = dict.fromkeys(log.snapshot().paths.to_pylist(), 1)
    run(log, "WRITE", [split("ours")])
    shutil.move(kept, hidden)
    cache.SHARED.invalidate()
    snapshot = TransactionLog.open(str(jvm), config=config()).snapshot()
    paths: list[Any] = snapshot.paths.to_pylist()
    assert snapshot.version == 3
    assert "ours.split" in paths
    assert len(paths) == len(both) + 2
    assert snapshot.disputed == {"ours.split"}


@pytest.mark.interop
def test_a_checkpoint_leaves_no_stale_checksums(jvm: Path) -> None:
    log_dir = jvm / "_transaction_log"
    assert (log_dir / "._last_checkpoint.crc").exists()
    cache.SHARED.invalidate()
    log = TransactionLog.open(str(jvm), config=config(checkpoint__enabled=False))
    run(log, "WRITE", [split("ours")])
    log.checkpoint()
    assert not (log_dir / "._last_checkpoint.crc").exists()
    truncate_time_travel(TransactionLog.open(str(jvm), config=config()))
    for crc in log_dir.rglob(".*.crc"):
        assert (crc.parent / crc.name[1:-4]).exists(), crc
    assert list_states(open_store(str(jvm))) == [4]
