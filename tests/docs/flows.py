"""The flows of docs/architecture.md: the page as data, real calls as data, and their comparison.

A step of a flow is right when its file is called while the file of the step before it is the
innermost listed one on the stack, later than the step before. A row that says ``back in`` names an
earlier file from which the next step is called; ``in a task`` starts a new stack. There is at most
one such row in a flow. Files of the last column are called while their step's file is the innermost
one of those listed so far. Every folder in which anything was called is named in the flow.
"""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import indextables

PACKAGE = str(Path(indextables.__file__).parent) + "/"
FUNCTION = 0x1  # CO_OPTIMIZED: set for functions, not for modules and class bodies
Stack = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """One row: a file, the files it uses, and how the row begins ("", "back in", "in a task")."""

    file: str
    helpers: tuple[str, ...]
    kind: str = ""


def flow_of(page: str, title: str) -> list[Step]:
    """The steps below a heading of the page."""
    found = re.search(rf"^### {title}\n(.*?)(?=^##)", page, re.M | re.S)
    assert found, f"the page has no flow '{title}'"
    steps = []
    for cells in re.findall(r"^\| *\d* *\|([^|]*)\|[^|]*\|([^|]*)\|$", found[1], re.M):
        files = re.findall(r"`([\w/]+\.py)`", cells[0])
        if files:
            (file,) = files
            kind = next((k for k in ("back in", "in a task") if k in cells[0]), "")
            steps.append(Step(file, tuple(re.findall(r"`([\w/]+\.py)`", cells[1])), kind))
    return steps


class Recorder:
    """The stack of files at each call that enters a file from another one."""

    def __init__(self) -> None:
        self.calls: list[Stack] = []

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(PACKAGE):
            return
        caller = frame.f_back
        same = caller is not None and caller.f_code.co_filename == code.co_filename
        if not same and code.co_flags & FUNCTION:
            self.calls.append(tuple(reversed(list(files_of(frame)))))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record this thread, and threads that it starts."""
        before = sys.getprofile()
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(before)
            threading.setprofile(None)


def files_of(frame: FrameType | None) -> Iterator[str]:
    """Our files on the stack, innermost first; neighbours in one file once."""
    last = ""
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(PACKAGE) and name != last:
            yield name[len(PACKAGE) :]
            last = name
        frame = frame.f_back


def mistakes(steps: list[Step], calls: list[Stack]) -> list[str]:
    """What the page says wrongly about these calls."""
    if len(steps) < 3:
        return ["the flow has fewer than three steps"]
    returns = [step for step in steps if step.kind]
    wrong = [f"{s.file}: more than one row returns" for s in returns[1:]]
    return [*wrong, *_chain(steps, calls), *_helpers(steps, calls), *_missing(steps, calls)]


def _chain(steps: list[Step], calls: list[Stack]) -> Iterator[str]:
    spine = {step.file for step in steps}
    at, before = 0, ""
    seen: set[str] = set()
    for step in steps:
        if step.kind == "back in":
            if step.file not in seen:
                yield f"{step.file}: the flow was not there before"
        else:
            caller = "" if step.kind == "in a task" else before
            found = _next_call(step.file, caller, spine, calls, at)
            if found is None:
                yield f"{step.file}: not called from {caller or 'outside'}, or too early"
            else:
                at = found
        before = step.file
        seen.add(step.file)


def _next_call(
    file: str, caller: str, spine: set[str], calls: list[Stack], start: int
) -> int | None:
    for at in range(start, len(calls)):
        if calls[at][-1] == file and innermost(calls[at][:-1], spine - {file}) == caller:
            return at
    return None


def _helpers(steps: list[Step], calls: list[Stack]) -> Iterator[str]:
    spine: set[str] = set()
    for step in steps:
        spine.add(step.file)
        for helper in step.helpers:
            others = spine - {helper}
            if not any(c[-1] == helper and innermost(c[:-1], others) == step.file for c in calls):
                yield f"{helper}: not called while {step.file} is at work"


def innermost(stack: Iterable[str], spine: set[str]) -> str:
    return next((file for file in reversed(tuple(stack)) if file in spine), "")


def _missing(steps: list[Step], calls: list[Stack]) -> Iterator[str]:
    named = {folder(file) for step in steps for file in (step.file, *step.helpers)}
    for entered in sorted({folder(call[-1]) for call in calls}):
        if entered and entered not in named:
            yield f"{entered}/: takes part and is not named"


def folder(file: str) -> str:
    return file.rpartition("/")[0]
