"""Tables of kinds this release cannot read are refused by name, not read as NULLs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from log_helpers import append, new_table, reopen, run, split

from indextables.errors import ProtocolError
from indextables.log.actions import AddFile
from indextables.log.actions.codec import encode_actions
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.log import TransactionLog
from indextables.log.read import kinds
from indextables.log.read.versions import version_path


def with_metadata(log: TransactionLog, **changes: Any) -> TransactionLog:
    snapshot = log.snapshot()
    metadata = replace(snapshot.metadata, **changes)
    log.store.put(version_path(0), encode_actions([snapshot.protocol, metadata]))
    return reopen(log)


COMPANION = {"configuration": {"indextables.companion.enabled": "true"}}


@pytest.mark.parametrize("checked", [True, False])
def test_a_companion_table_is_refused_by_name(checked: bool) -> None:
    log = with_metadata(new_table(protocol__checkEnabled=checked), **COMPANION)
    with pytest.raises(ProtocolError, match="companion of another table") as caught:
        log.snapshot()
    assert caught.value.path == log.path
    with pytest.raises(ProtocolError, match="companion"):
        append(log, "a")


def test_a_companion_table_at_an_older_version_and_from_a_checkpoint() -> None:
    log = new_table(checkpoint__enabled=False)
    append(log, "a")
    log.checkpoint()
    body = replace(log.snapshot().metadata, **COMPANION)
    log.store.put(version_path(2), encode_actions([body]))
    assert reopen(log).snapshot(version=1).version == 1
    with pytest.raises(ProtocolError, match="companion"):
        reopen(log).snapshot(version=2)
    with pytest.raises(ProtocolError, match="companion"):
        reopen(log).snapshot()


def test_a_table_that_is_no_companion_says_so() -> None:
    log = with_metadata(new_table(), configuration={"indextables.companion.enabled": "false"})
    assert kinds.kind_of(log.snapshot()) == kinds.ORDINARY


@pytest.mark.parametrize(
    "fields",
    [{"companion_source_files": ("part-0.parquet",)}, {"companion_fast_field_mode": "HYBRID"}],
)
def test_companion_splits_in_any_table_are_refused(fields: dict[str, Any]) -> None:
    log = new_table(checkpoint__enabled=False)
    run(log, "WRITE", [split("a")])
    log.checkpoint()
    data = encode_actions([replace(split("b"), **fields)])
    log.store.put(version_path(2), data)
    with pytest.raises(ProtocolError, match="companion"):
        reopen(log).snapshot()


def test_companion_splits_are_seen_in_packed_segments() -> None:
    plain, companion = AddFile("a", {}, 1), AddFile("b", {}, 1, companion_source_files=("x",))
    assert not any(map(kinds._has_companion_splits, pack_adds([plain])))
    assert any(map(kinds._has_companion_splits, pack_adds([plain, companion])))


@pytest.mark.parametrize("provider", ["parquet", "delta"])
def test_a_format_nobody_knows_is_refused(provider: str) -> None:
    log = with_metadata(new_table(), format_provider=provider)
    with pytest.raises(ProtocolError, match=f"format '{provider}'"):
        log.snapshot()


def test_a_kind_is_allowed_in_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    log = with_metadata(new_table(), **COMPANION)
    monkeypatch.setattr(kinds, "READABLE", kinds.READABLE | {kinds.COMPANION})
    assert log.snapshot().version == 0
