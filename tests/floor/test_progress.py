"""Progress output: silent, lines, and never inside Spark tasks."""

from __future__ import annotations

import time

import pytest

from indextables.progress import progress


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_lines_appear_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", "lines")
    monkeypatch.delenv("SPARK_WORKER_REUSE", raising=False)
    clock = Clock()
    with progress("merge", 40, clock=clock) as bar:
        for _ in range(40):
            clock.now += 1
            bar.advance()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "merge: 10/40 after 10 s"
    assert len(lines) == 5
    assert lines[-1] == "merge: 40/40 after 40 s done"


def test_lines_appear_while_one_part_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", "lines")
    monkeypatch.delenv("SPARK_WORKER_REUSE", raising=False)
    monkeypatch.setattr("indextables.progress.SECONDS_BETWEEN_LINES", 0.01)
    seen = ""
    with progress("merge", 1):
        for _ in range(500):
            seen += capsys.readouterr().err
            if seen:
                break
            time.sleep(0.01)
    assert seen.startswith("merge: 0/1 after")


def test_short_work_prints_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", "lines")
    with progress("quick", 3) as bar:
        bar.advance(3)
    assert capsys.readouterr().err == ""


def test_off_in_spark_workers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", "bar")
    monkeypatch.setenv("SPARK_WORKER_REUSE", "1")
    with progress("task", 1) as bar:
        bar.advance()
    assert bar.done == 1
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mode", ["off", "lines", "bar"])
def test_a_total_never_stays_below_what_is_done(monkeypatch: pytest.MonkeyPatch, mode: str) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", mode)
    monkeypatch.delenv("SPARK_WORKER_REUSE", raising=False)
    with progress("merge", 0) as bar:
        bar.expect(3)
        bar.advance(2)
        assert (bar.done, bar.total) == (2, 3)
        bar.expect(2)
        assert (bar.done, bar.total) == (2, 5)
        bar.advance(4)
        assert (bar.done, bar.total) == (6, 6)
    with progress("unknown", None) as bar:
        bar.advance(2)
        assert bar.total is None


def test_bar_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDEXTABLES_PROGRESS", "bar")
    monkeypatch.delenv("SPARK_WORKER_REUSE", raising=False)
    with progress("bar", 2) as bar:
        bar.advance(2, "last.split")
    assert bar.done == 2
