"""Progress of long work: a bar in a terminal, a line every ten seconds elsewhere, nothing in tasks.

``INDEXTABLES_PROGRESS`` is ``auto`` (default), ``bar``, ``lines`` or ``off``. Inside a Spark worker
it is always off. The bar needs ``rich``, which is imported only when a bar is really shown. Lines
come also while one part takes long: a thread looks at the clock.

``total`` counts the same parts as ``advance``. Who learns the size of the work only as it goes says
``expect``; a total never stays below what is done.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from indextables.printable import on_one_line

LOG = logging.getLogger("indextables")
SECONDS_BETWEEN_LINES = 10.0


class Progress:
    """One piece of work; call ``advance`` as parts of it are done."""

    def __init__(self, label: str, total: int | None) -> None:
        self.label = on_one_line(label)
        self.total = total
        self.done = 0

    def advance(self, parts: int = 1, note: str = "") -> None:
        self.done += parts
        if self.total is not None:
            self.total = max(self.total, self.done)

    def expect(self, parts: int) -> None:
        """So many parts more than known before: work that shows its size as it goes."""
        self.total = (self.total or 0) + parts

    def close(self) -> None:
        """The work ended, well or not."""


class _Lines(Progress):
    def __init__(self, label: str, total: int | None, clock: Callable[[], float]) -> None:
        super().__init__(label, total)
        self._clock = clock
        self._started = self._last = clock()
        self._lock = threading.Lock()
        self._over = threading.Event()
        if clock is time.monotonic:
            threading.Thread(target=self._look, name="indextables-progress", daemon=True).start()

    def _look(self) -> None:
        while not self._over.wait(SECONDS_BETWEEN_LINES):
            self._print_if_due("")

    def advance(self, parts: int = 1, note: str = "") -> None:
        super().advance(parts, note)
        self._print_if_due(note)

    def _print_if_due(self, note: str) -> None:
        with self._lock:
            now = self._clock()
            if now - self._last < SECONDS_BETWEEN_LINES or self._over.is_set():
                return
            self._last = now
            self._print(now, note)

    def close(self) -> None:
        self._over.set()
        if self._last != self._started:
            self._print(self._clock(), "done")

    def _print(self, now: float, note: str) -> None:
        of = f"/{self.total:,}" if self.total is not None else ""
        tail = f" {on_one_line(note)}" if note else ""
        text = f"{self.label}: {self.done:,}{of} after {now - self._started:.0f} s{tail}"
        print(text, file=sys.stderr, flush=True)


class _Bar(Progress):
    def __init__(self, label: str, total: int | None) -> None:
        super().__init__(label, total)
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._rich: Any = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=False,
        )
        self._task = self._rich.add_task(self.label, total=total)
        self._rich.start()

    def advance(self, parts: int = 1, note: str = "") -> None:
        super().advance(parts, note)
        description = f"{self.label} {on_one_line(note)}" if note else self.label
        self._rich.update(
            self._task, completed=self.done, total=self.total, description=description
        )

    def expect(self, parts: int) -> None:
        super().expect(parts)
        self._rich.update(self._task, total=self.total)

    def close(self) -> None:
        self._rich.stop()


def _is_spark_worker() -> bool:
    """Spark starts workers as ``python -m pyspark.daemon`` and the like, and forks from there."""
    started = getattr(sys.modules.get("__main__"), "__spec__", None)
    name: str = getattr(started, "name", None) or ""
    return name.startswith("pyspark.") or "SPARK_WORKER_REUSE" in os.environ


def _mode() -> str:
    if _is_spark_worker():
        return "off"
    mode = os.environ.get("INDEXTABLES_PROGRESS", "auto").lower()
    if mode != "auto":
        return mode
    return "bar" if sys.stderr.isatty() else "lines"


@contextmanager
def progress(
    label: str, total: int | None = None, *, clock: Callable[[], float] = time.monotonic
) -> Iterator[Progress]:
    """Show the progress of the block; the caller advances it."""
    mode = _mode()
    shown: Progress
    if mode == "bar":
        shown = _Bar(label, total)
    elif mode == "lines":
        shown = _Lines(label, total, clock)
    else:
        shown = Progress(label, total)
    try:
        yield shown
    finally:
        shown.close()
