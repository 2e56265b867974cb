"""Edges of the log: its last version, clocks that lie, moments that are no dates."""

from __future__ import annotations

import datetime
import json
import logging
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import pytest
from log_helpers import append, names, new_table, reopen

from indextables.errors import CommitFailedError, ConfigError, VersionNotFoundError
from indextables.log.checkpoint.choose import write_checkpoint
from indextables.log.log import TransactionLog
from indextables.log.read.moments import LATEST_MS, TOLERANCE_MS, moment_text, to_millis
from indextables.log.read.snapshot import Snapshot
from indextables.log.read.versions import LARGEST, LOG_DIR, list_log, part_name, version_path
from indextables.table.table import Table

NOW = 4_000_000_000.0  # after the real clock, which dates the creation
TEN_YEARS = 10 * 365 * 86_400


def at_version(log: TransactionLog, version: int) -> TransactionLog:
    """The same table, as if it had come that far: a checkpoint at ``version``."""
    base = log.snapshot()
    far = Snapshot(version, base.timestamp_ms, base.ledger, base.segments, base.live)
    write_checkpoint(log.store, far, log.config)
    return reopen(log)


# -- the last version ---------------------------------------------------------------------------


def test_the_last_version_is_committed_and_none_after_it() -> None:
    log = at_version(new_table(), LARGEST - 1)
    assert append(log, "last").version == LARGEST
    assert names(reopen(log)) == ["last"]
    before = [info.path for info in log.store.list("", recursive=True)]
    for again in (log, reopen(log)):
        with pytest.raises(CommitFailedError, match="last one a log can hold"):
            append(again, "lost")
    assert [info.path for info in log.store.list("", recursive=True)] == before
    assert names(reopen(log)) == ["last"]


def test_parts_of_versions_beyond_the_last_are_skipped() -> None:
    log = new_table()
    for version in (LARGEST, LARGEST + 1):
        log.store.put(f"{LOG_DIR}/{part_name(version, 'x', 1)}", b"")
    assert [part.version for part in list_log(log.store).parts] == [LARGEST]


def test_versions_beyond_the_last_are_not_found() -> None:
    for version in (LARGEST, LARGEST + 1, 10**30, -(10**30)):
        with pytest.raises(VersionNotFoundError, match=r"can be read: 0$"):
            new_table().snapshot(version=version)


@pytest.mark.parametrize(
    "version", ["1", True, np.True_, 1.0, math.nan, b"1", [1], datetime.date(2026, 1, 1), "\ud800"]
)
def test_what_is_no_version_is_refused(version: Any) -> None:
    log = new_table()
    append(log, "a")
    with pytest.raises(ConfigError, match="is not a version"):
        log.snapshot(version=version)
    table = Table(log, log.snapshot())
    with pytest.raises(ConfigError, match="is not a version"):
        table.at(version)
    with pytest.raises(ConfigError, match="is not a version"):
        table.diff(version)


def test_whole_numbers_of_any_make_are_versions() -> None:
    log = new_table()
    append(log, "a")
    assert log.snapshot(version=np.int64(1)).version == 1  # type: ignore[arg-type]


# -- clocks -------------------------------------------------------------------------------------


@contextmanager
def said(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The warnings about moments that the block logs."""
    caplog.clear()
    found: list[str] = []
    with caplog.at_level(logging.WARNING, logger="indextables.log.read.moments"):
        yield found
    found += [r.getMessage() for r in caplog.records if r.name == "indextables.log.read.moments"]


def clocked(log: TransactionLog, seconds: float) -> TransactionLog:
    again = reopen(log)
    again.clock = lambda: seconds
    return again


def test_a_clock_ahead_is_told_by_the_next_writer_and_by_readers(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = new_table()
    append(clocked(log, NOW), "before")
    with said(caplog) as warnings:
        append(clocked(log, NOW + TEN_YEARS), "ahead")
    assert warnings == []
    right = clocked(log, NOW + 1)
    with said(caplog) as warnings:
        append(right, "after")
        append(right, "again")
    assert len(warnings) == 2
    assert moment_text(int((NOW + TEN_YEARS) * 1000)) in warnings[0]
    assert "after this machine's clock" in warnings[0]
    times = [entry.timestamp for entry in right.history()][:-1]
    ahead = int((NOW + TEN_YEARS) * 1000)
    assert times == [ahead + 2, ahead + 1, ahead, int(NOW * 1000)]
    with said(caplog) as warnings:
        assert right.snapshot(timestamp=int((NOW + 1) * 1000)).version == 1
    assert len(warnings) == 1
    assert "version 1 is the newest one at" in warnings[0]
    assert "versions up to 4" in warnings[0]
    with said(caplog) as warnings:
        assert right.snapshot(timestamp=ahead + 2).version == 4
        assert right.snapshot(version=2).version == 2
    assert warnings == []


def test_small_differences_of_clocks_are_not_worth_a_word(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = new_table()
    append(clocked(log, NOW), "a")
    with said(caplog) as warnings:
        append(clocked(log, NOW - TOLERANCE_MS / 1000), "b")
        clocked(log, NOW - 1).snapshot(timestamp=int(NOW * 1000))
    assert warnings == []
    assert log.history()[0].timestamp == int(NOW * 1000) + 1
    with said(caplog) as warnings:
        append(clocked(log, NOW - TOLERANCE_MS / 1000 - 1), "c")
    assert len(warnings) == 1


# -- moments that are no dates ------------------------------------------------------------------


def dated(log: TransactionLog, timestamp_ms: int) -> TransactionLog:
    """The table with its newest version dated by somebody else."""
    path = version_path(log.snapshot().version)
    from indextables.log.actions.codec import decode_lines, encode_lines

    lines = [dict(line) for line in decode_lines(log.store.read(path), path=path)]
    for line in lines:
        if "commitInfo" in line:
            line["commitInfo"]["timestamp"] = timestamp_ms
    log.store.put(path, encode_lines(lines, compressed=False))
    return reopen(log)


@pytest.mark.parametrize("moment", [253402300800000, LATEST_MS, -62135596800001, -LATEST_MS - 1])
def test_times_without_a_date_are_shown_as_numbers(moment: int) -> None:
    from indextables.maintenance.describe_log import describe_log

    log = new_table()
    append(log, "a")
    log = dated(log, moment)
    table = Table(log, log.snapshot())
    assert f"{moment} ms" in repr(table)
    assert f"{moment} ms" in table._repr_html_()
    assert log.history()[0].timestamp == moment
    assert describe_log(log).to_pylist()
    append(log, "b")
    again = reopen(log)
    assert names(again) == ["a", "b"]
    assert moment <= again.history()[0].timestamp <= LATEST_MS
    assert json.dumps([entry.timestamp for entry in again.history()])
    log.checkpoint()
    assert names(reopen(log)) == ["a", "b"]


@pytest.mark.parametrize(
    "moment",
    [
        *(math.nan, math.inf, -math.inf, True, "", "now", "nan", "99999-01-01", 1 << 63, 1e300),
        *(b"2026-01-01", [1], object(), pd.NaT, "2026-01-01\ud800", complex(1)),
    ],
)
def test_what_is_no_moment_is_refused(moment: Any) -> None:
    with pytest.raises(ConfigError, match="is not a timestamp"):
        new_table().snapshot(timestamp=moment)


def test_moments_of_any_make() -> None:
    utc = datetime.UTC
    zone = datetime.timezone(datetime.timedelta(hours=14))
    expected = 1769860800005
    assert to_millis(float(expected) + 0.9) == expected
    assert to_millis(np.int64(expected)) == expected
    assert to_millis(pd.Timestamp(expected, unit="ms")) == expected
    assert to_millis(datetime.date(2026, 1, 31)) == expected - 12 * 3_600_000 - 5
    assert to_millis(datetime.datetime.min.replace(tzinfo=zone)) < -62135596800000
    assert to_millis(datetime.datetime(1969, 12, 31, 23, 59, 59, 999_500, tzinfo=utc)) == -1
