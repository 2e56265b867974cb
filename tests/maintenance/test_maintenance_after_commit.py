"""Nothing that runs after a commit makes the commit look failed; settings never fail it either."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.config import SETTINGS, Config, Setting
from indextables.errors import ConfigError, IndexTablesError
from indextables.log import log
from indextables.log.log import TransactionLog
from indextables.log.read import hint
from indextables.maintenance import after_write, merge
from indextables.xref import auto

EAGER = {
    "checkpoint.interval": 1,
    "xref.autoIndex.minSplitsToTrigger": 1,
    "xref.autoIndex.minUncoveredSplitsToTrigger": 1,
    "xref.autoIndex.minIntervalMs": 0,
    "mergeOnWrite.enabled": True,
    "mergeOnWrite.async.enabled": False,
    "mergeOnWrite.batchCpuFraction": 0,
    "purgeOnWrite.enabled": True,
    "purgeOnWrite.triggerAfterWrites": 1,
}
ROWS = pa.table({"id": [1, 2], "text": ["a", "b"]})
STEPS = {
    "cache": (TransactionLog, "committed"),
    "checkpoint": (log, "write_checkpoint"),
    "checkpoint: hint": (hint, "write_hint"),
    "checkpoint: clean-up": (log, "plan_cleanup"),
    "cross-references": (auto, "build"),
    "merge": (after_write, "plan_merges"),
    "purge": (after_write, "purge"),
}


@pytest.mark.parametrize("kind", [ValueError, MemoryError, RuntimeError, KeyboardInterrupt])
@pytest.mark.parametrize("step", STEPS)
def test_a_write_returns_its_commit_whatever_follows_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
    kind: type[BaseException],
) -> None:
    path = str(tmp_path / "t")
    indextables.write(ROWS, path, options=EAGER)
    owner, name = STEPS[step]
    asked: list[str] = []

    def fail(*args: Any, **kwargs: Any) -> Any:
        asked.append(step)
        raise kind("on purpose")

    monkeypatch.setattr(owner, name, fail)
    with caplog.at_level(logging.WARNING, "indextables"):
        result = indextables.write(ROWS, path, options=EAGER)
    assert asked, "the step was not reached"
    reached = step.partition(":")[0]
    assert isinstance(result.failures[reached], kind)
    assert f"the commit stands, but {reached} did not succeed" in caplog.text
    monkeypatch.undo()
    table = indextables.open(path)
    assert table.count() == 4
    assert table.at(result.version).count() == 4


def test_an_interrupt_ends_what_follows_and_is_in_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "t")
    indextables.write(ROWS, path, options=EAGER)
    later: list[str] = []

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(auto, "build", stop)
    monkeypatch.setattr(after_write, "plan_merges", lambda *a: later.append("merge"))
    monkeypatch.setattr(after_write, "purge", lambda *a, **k: later.append("purge"))
    result = indextables.write(ROWS, path, options=EAGER)
    assert list(result.failures) == ["cross-references"]
    assert later == []


def test_leaving_the_process_goes_through_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave(*args: Any, **kwargs: Any) -> Any:
        raise SystemExit(3)

    monkeypatch.setattr(auto, "build", leave)
    with pytest.raises(SystemExit) as leaving:
        indextables.write(ROWS, str(tmp_path / "t"), options=EAGER)
    assert "the commit had landed" in str(leaving.value.__notes__)
    assert indextables.open(str(tmp_path / "t")).count() == 2


@pytest.mark.parametrize("kind", [ValueError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("step", ["rebuild_stale", "checkpoint"])
def test_a_merge_returns_its_result_whatever_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, kind: type[BaseException]
) -> None:
    path = str(tmp_path / "t")
    quiet = {"checkpoint.interval": 0}
    for _ in range(2):
        indextables.write(ROWS, path, options=quiet)

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise kind

    owner = merge if step == "rebuild_stale" else TransactionLog
    monkeypatch.setattr(owner, step, fail)
    result = indextables.open(path, options=quiet).merge()
    assert result.metrics.merge_groups == 1


# -- settings -----------------------------------------------------------------------------------

PARTS = 6
NUMBERS = [s for s in SETTINGS if s.is_number and not s.is_family]
ABSURD = [0, -1, 2**63, 2**70, 1e400, -1e400, float("nan"), "", " ", "NaN", "inf", "-inf", "1e999"]
ABSURD += ["9" * 400, "9" * 5000, True, "0x10", "1_0", b"1", [1], {}, object(), 0.5, "\ud800"]


@pytest.mark.parametrize("setting", [s for s in SETTINGS if not s.is_family], ids=lambda s: s.key)
def test_absurd_values_are_refused_or_in_range(setting: Setting) -> None:
    for value in ABSURD:
        try:
            held = Config({setting.key: value})[setting.key]
        except ConfigError:
            continue
        assert not setting.is_number or setting.low <= held <= setting.high


def test_what_no_setting_allows() -> None:
    for key, value in [
        ("state.compressionLevel", 99),
        ("state.compressionLevel", 0),
        ("xref.autoIndex.maxSourceSplits", 0),
        ("read.version", True),
        ("read.version", 1.0),
        ("read.version", "-1"),
        ("read.version", 2**63),
    ]:
        with pytest.raises(ConfigError, match=key):
            Config({key: value})


@pytest.mark.parametrize("end", ["low", "high"])
@pytest.mark.parametrize("part", range(PARTS))
def test_the_ends_of_every_range_work(tmp_path: Path, part: int, end: str) -> None:
    """Write, merge, delete, read: a setting at its end costs speed, or is refused in our words."""
    chosen = {s.key: s.parse(getattr(s, end)) for s in NUMBERS[part::PARTS]}
    chosen.pop("read.version", None)
    options = {**EAGER, "purge.retentionCheckEnabled": False, **chosen}
    path = str(tmp_path / "t")
    for _ in range(2):
        result = indextables.write(ROWS, path, options=options)
        odd = [e for e in result.failures.values() if not isinstance(e, IndexTablesError)]
        assert odd == []
    table = indextables.open(path, options=options)
    assert table.count("text = 'a' AND id IN (1, 3)") == 2
    assert table.to_arrow("id = 1").num_rows == 2
    table.delete("id = 2")
    table.refresh().merge()
    assert table.refresh().count() == 2
