"""Corners of the log that the other tests do not reach."""

from __future__ import annotations

import datetime
from dataclasses import replace
from typing import Any

import pytest
from log_helpers import append, config, names, new_table, reopen, run, split
from store_doubles import WrappedStore

from indextables.errors import (
    AmbiguousWriteError,
    CommitConflictError,
    CommitFailedError,
    CorruptFileError,
    ObjectExistsError,
    ObjectNotFoundError,
    StorageError,
    TableNotFoundError,
    TransientStorageError,
    VersionNotFoundError,
)
from indextables.log.actions import AddFile, DropIndex, Metadata, codec
from indextables.log.actions.codec import encode_lines
from indextables.log.commit.transaction import CommitResult, ReadSet, Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.versions import (
    LOG_DIR,
    checkpoint_path,
    list_log,
    part_name,
    state_dir,
    version_path,
)

# -- commits ------------------------------------------------------------------------------------


def test_reads_cannot_be_checked_when_versions_are_gone() -> None:
    log = new_table(checkpoint__enabled=False)
    base = log.snapshot()
    for i in range(4):
        append(log, f"s{i}")
    log.checkpoint()
    log.store.delete([version_path(v) for v in (1, 2, 3, 4)])
    again = reopen(log)
    append(again, "blind append needs no history")
    with pytest.raises(CommitConflictError, match="cleaned away"):
        again.commit(Transaction(base, "X", actions=[split("x")], reads=ReadSet.table()))
    late = Transaction(base, "W", actions=[split("late")])
    again.commit(late)
    with pytest.raises(CommitConflictError, match="cleaned away"):
        run(again, "ALTER", [again.snapshot().metadata], base=base, reads=ReadSet(metadata=True))


def test_a_slot_taken_by_a_writer_without_commit_ids() -> None:
    log = new_table()

    class Foreign(WrappedStore):
        done = False

        def put_if_absent(self, path: str, data: bytes) -> None:
            if not self.done:
                self.done = True
                self.inner.put(path, encode_lines([{"add": {"path": "theirs.split", "size": 1}}]))
            super().put_if_absent(path, data)

    result = append(TransactionLog(log.path, Foreign(log.store), log.config), "ours")
    assert (result.version, result.attempts) == (2, 2)
    assert names(reopen(log)) == ["ours", "theirs"]


def test_parameters_must_be_json() -> None:
    log = new_table()
    bad = Transaction(None, "W", parameters={"x": float("nan")}, actions=[split("a")])
    with pytest.raises(CommitFailedError, match="JSON"):
        log.commit(bad)
    odd = Transaction(None, "W", parameters={"x": datetime.date(2024, 1, 1)}, actions=[split("a")])
    log.commit(odd)
    assert log.history(1)[0].parameters == {"x": "2024-01-01"}


def test_files_without_row_counts_give_no_row_metric() -> None:
    log = new_table()
    run(log, "W", [replace(split("a"), num_records=None)])
    assert "numAddedRows" not in log.history(1)[0].metrics
    assert log.snapshot().num_rows is None


def test_a_result_without_a_log_has_no_snapshot() -> None:
    with pytest.raises(LookupError):
        _ = CommitResult(1, "x", 1).snapshot


def test_dropping_an_index_that_is_there_and_metadata_that_stays() -> None:
    log = new_table()
    with pytest.raises(CommitConflictError, match="index gone"):
        run(log, "X", [DropIndex("1", "id")])
    base = log.snapshot()
    run(log, "ALTER", [replace(base.metadata, configuration={"k": "v"})])
    run(log, "NOTHING", [log.snapshot().metadata])
    kinds = [type(a) for a in (log.changes(1, 2) or [])[0].actions]
    assert Metadata not in kinds


# -- checkpoints --------------------------------------------------------------------------------


def test_a_broken_state_beside_a_json_checkpoint_of_the_same_version() -> None:
    log = new_table(state__format="json", checkpoint__enabled=False)
    append(log, "a")
    log.checkpoint()
    log.store.put(f"{state_dir(1)}/_manifest.avro", b"nonsense")
    log.store.delete([version_path(1)])
    assert names(reopen(log)) == ["a"]


class ExistsAfterAll(WrappedStore):
    """Applies a conditional create and then says that something was there."""

    def put_if_absent(self, path: str, data: bytes) -> None:
        self.inner.put_if_absent(path, data)
        if "checkpoint" in path:
            raise ObjectExistsError("there", path=path)


def test_our_own_checkpoint_is_recognised_after_a_lost_reply() -> None:
    log = new_table(version=3, state__format="json", checkpoint__actionsPerPart=2)
    append(log, "a", "b", "c")
    done = TransactionLog(log.path, ExistsAfterAll(log.store), log.config).checkpoint()
    assert done.created
    log.store.delete([version_path(1)])
    assert names(reopen(log)) == ["a", "b", "c"]


def test_losing_the_race_for_a_checkpoint_takes_the_parts_along() -> None:
    log = new_table(version=3, state__format="json", checkpoint__actionsPerPart=2)
    append(log, "a", "b", "c")

    class Late(WrappedStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if "checkpoint" in path:
                log.checkpoint()
            super().put_if_absent(path, data)

    done = TransactionLog(log.path, Late(log.store), log.config).checkpoint()
    assert not done.created
    assert len({part.checkpoint_id for part in list_log(log.store).parts}) == 1


def test_metadata_is_looked_for_past_versions_that_vanish_or_are_damaged() -> None:
    log = new_table(checkpoint__interval=1)
    append(log, "a")
    append(log, "b")
    manifest = log.store.read(f"{state_dir(2)}/_manifest.avro")
    from indextables.log.checkpoint.state import decode_state, encode_state

    state = decode_state(manifest, state_dir(2).rpartition("/")[2])
    bare = encode_state(replace(state, metadata=None), None, log.config, False)
    log.store.put(f"{state_dir(2)}/_manifest.avro", bare)
    log.store.put(f"{state_dir(1)}/_manifest.avro", b"nonsense")

    class Vanishing(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            found = super().read_many(paths, parallelism)
            gone = ObjectNotFoundError("gone")
            return [
                gone if path == version_path(1) else b for path, b in zip(paths, found, strict=True)
            ]

    reader = reopen(log, store=Vanishing(log.store))
    assert names(reader) == ["a", "b"]
    assert reader.snapshot().metadata.id == log.table_id

    class Failing(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            found = super().read_many(paths, parallelism)
            bad = TransientStorageError("down")
            return [
                bad if path.endswith(".json") else b for path, b in zip(paths, found, strict=True)
            ]

    with pytest.raises(TransientStorageError):
        reopen(log, store=Failing(log.store)).snapshot()


def test_a_damaged_version_0_does_not_matter_beside_a_whole_state() -> None:
    log = new_table()
    append(log, "a")
    log.checkpoint()
    from indextables.log.checkpoint.state import decode_state, encode_state

    path = f"{state_dir(1)}/_manifest.avro"
    state = decode_state(log.store.read(path), state_dir(1).rpartition("/")[2])
    log.store.put(path, encode_state(state, None, log.config, False))
    log.store.put(version_path(0), b"nonsense")
    assert names(reopen(log)) == ["a"]
    unchecked = TransactionLog(log.path, log.store, config(protocol__checkEnabled=False))
    assert names(unchecked) == ["a"]


def test_parts_of_a_checkpoint_that_cannot_be_read_stay() -> None:
    log = new_table(version=3, state__format="json", checkpoint__actionsPerPart=2)
    append(log, "a", "b", "c")
    log.checkpoint()
    append(log, "d")
    log.checkpoint()
    log.store.put(checkpoint_path(1), b"nonsense")
    eager = TransactionLog(log.path, log.store, config(checkpointRetention__duration=-1))
    listed = {p.info.path for p in list_log(log.store).parts if p.version == 1}
    report = eager.cleanup(retention_ms=-1, dry_run=True)
    assert report.checkpoints == [1]
    assert set(report.parts) == listed
    orphan = f"{LOG_DIR}/{part_name(7, 'x', 1)}"
    log.store.put(orphan, b"x")
    assert orphan in eager.cleanup(retention_ms=-1, dry_run=True).parts
    log.store.put(checkpoint_path(2), b"nonsense")
    assert eager.cleanup(retention_ms=-1, dry_run=True).parts == []


# -- codec --------------------------------------------------------------------------------------


def test_a_text_that_grows_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codec, "TEXT_FLOOR", 1000)
    monkeypatch.setattr(codec, "TEXT_RATIO", 1)
    data = encode_lines([{"x": "y" * 5000}])
    with pytest.raises(CorruptFileError, match="larger than 1000 bytes"):
        list(codec.decode_lines(data, path="p"))


def test_numbers_with_fractions_are_read() -> None:
    assert codec.parse_json('{"x": 1.5, "y": -2e3}') == {"x": 1.5, "y": -2000.0}


def test_long_values_are_shown_cut() -> None:
    with pytest.raises(CorruptFileError, match=r"\.\.\.") as caught:
        AddFile.from_dict({"path": "a", "size": "9" * 200})
    assert len(str(caught.value)) < 150


@pytest.mark.parametrize("field", ["minValues", "tags"])
def test_maps_must_be_maps(field: str) -> None:
    with pytest.raises(CorruptFileError, match=field):
        AddFile.from_dict({"path": "a", "size": 1, field: ["x"]})


def test_metadata_configuration_must_be_text() -> None:
    body = {"id": "x", "schemaString": "{}", "configuration": {"k": {}}}
    with pytest.raises(CorruptFileError, match=r"configuration\.k"):
        Metadata.from_dict(body)


# -- reading ------------------------------------------------------------------------------------


def test_a_log_that_never_holds_still() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a")

    class Restless(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            return [ObjectNotFoundError("gone", path=path) for path in paths]

    with pytest.raises(StorageError, match="faster than it can be read"):
        reopen(log, store=Restless(log.store)).snapshot()
    reopen(log, store=log.store).snapshot()
    restless = TransactionLog(log.path, Restless(log.store), config(checkpoint__enabled=False))
    with pytest.raises(StorageError, match="cleaned away"):
        restless.history()


def test_failures_while_reading_versions_are_passed_on() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a")

    class Down(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            return [TransientStorageError("down", path=path) for path in paths]

    with pytest.raises(TransientStorageError):
        reopen(log, store=Down(log.store)).snapshot()


def test_versions_that_vanish_during_a_refresh_mean_a_full_load() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    other = TransactionLog(log.path, log.store, config(transaction__cache__enabled=False))
    reader = TransactionLog(log.path, log.store, log.config)
    assert names(reader) == ["a"]
    append(other, "b")
    other.checkpoint()

    class Racing(WrappedStore):
        def read_many(self, paths: Any, parallelism: int = 8) -> Any:
            if version_path(2) in paths:
                self.inner.delete([version_path(2)])
            return super().read_many(paths, parallelism)

    racing = TransactionLog(log.path, Racing(log.store), log.config)
    assert names(racing) == ["a", "b"]


def test_a_version_file_alone_tells_the_time_of_a_checkpoint() -> None:
    log = new_table(state__format="json", checkpoint__enabled=False)
    append(log, "a")
    log.checkpoint()
    stamp = log.snapshot().timestamp_ms
    log.store.delete([version_path(1)])
    again = reopen(log)
    assert again.snapshot().timestamp_ms == stamp
    found = again.snapshot(timestamp=datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC))
    assert found.version == 1


def test_the_first_version_alone() -> None:
    log = new_table()
    assert log.snapshot(version=0).version == 0
    with pytest.raises(VersionNotFoundError):
        log.snapshot(version=1)
    assert repr(log).startswith("TransactionLog('memory://")


def test_an_ambiguous_checkpoint_is_reported() -> None:
    log = new_table(state__format="json", checkpoint__interval=1)

    class Silent(WrappedStore):
        def put_if_absent(self, path: str, data: bytes) -> None:
            if "checkpoint" in path:
                raise AmbiguousWriteError("no reply", path=path)
            super().put_if_absent(path, data)

    result = append(TransactionLog(log.path, Silent(log.store), log.config), "a")
    assert isinstance(result.checkpoint_error, AmbiguousWriteError)
    assert names(reopen(log)) == ["a"]


def test_history_passes_over_a_state_that_went_meanwhile() -> None:
    log = new_table(checkpoint__interval=1)
    append(log, "a")
    log.store.delete([version_path(1)])
    again = reopen(log)
    assert again.history()[0].timestamp == again.snapshot().timestamp_ms
    log.store.put(f"{state_dir(0)}/leftover", b"x")
    log.store.delete([version_path(0)])
    assert [(e.version, e.timestamp > 0) for e in reopen(log).history()] == [(1, True), (0, False)]


def test_a_hint_into_nothing_starts_over() -> None:
    """The hint names a version from which on there is no readable checkpoint."""
    log = new_table(checkpoint__enabled=False)
    for i in range(3):
        append(log, f"s{i}")
    log.checkpoint()
    append(log, "late")
    log.store.put(f"{state_dir(3)}/_manifest.avro", b"nonsense")
    again = reopen(log)
    assert names(again) == ["late", "s0", "s1", "s2"]


def test_a_folder_without_versions_is_no_table() -> None:
    log = new_table()
    log.store.delete([version_path(0)])
    log.store.put(f"{LOG_DIR}/_last_checkpoint", b'{"version":3}')
    with pytest.raises(TableNotFoundError):
        TransactionLog.open(log.path, store=log.store)
    with pytest.raises(TableNotFoundError):
        TransactionLog(log.path, log.store, log.config).snapshot()
