"""How results reach the terminal: aligned tables for people, JSON for programs.

Nothing grows wider than the terminal (80 columns when there is none). Headers are stacked at their
underscores, long or nested cells are cut in the middle; numbers and moments never are, and a
last column of prose is wrapped. Rows that still do not fit, and a single row, are shown as lists of
fields. Columns that rarely matter, the table's own path among them, are left out. ``--wide`` lifts
all of this: every column, nothing cut.

Everything the command prints leaves through ``show``, ``say`` or ``show_json``, so nothing that
came from data can give orders to the terminal (``printable``). Cells and headings are escaped
before they are measured, line breaks too.
"""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, TextIO

from indextables.cli.screens import chosen, cut, paragraphs, summed_up
from indextables.printable import on_one_line, plain, printable, printable_json
from indextables.settings import PREFIX

WIDEST_CELL = 60
READABLE = 30


UNLIMITED = 1 << 20
MOST_WIDE_COLUMNS = 12


def emit(
    rows: Sequence[dict[str, Any]],
    as_json: bool,
    empty: str = "nothing found",
    wide: bool = False,
) -> None:
    """Print rows in the asked form."""
    if as_json:
        show_json(json.dumps(list(rows), indent=2, default=plain, ensure_ascii=False))
        return
    found, sentences = summed_up(rows)
    if found:
        show(screen(found, wide))
    elif not sentences:
        show(empty)
    for sentence in sentences:
        show(f"\n{sentence}" if found else sentence)


def show(text: str, stream: TextIO | None = None) -> None:
    """Print text; what a terminal would obey is shown instead."""
    print(printable(text), file=stream or sys.stdout)


def say(text: str, wide: bool = False, stream: TextIO | None = None) -> None:
    """Print text that is no table, wrapped to the screen."""
    escaped = printable(text)
    show(escaped if wide else paragraphs(escaped, terminal_width(stream)), stream)


def show_json(text: str) -> None:
    """Print JSON text."""
    print(printable_json(text))


def screen(rows: Sequence[dict[str, Any]], wide: bool = False) -> str:
    """The rows as people read them."""
    width = UNLIMITED if wide else terminal_width()
    shown = list(rows) if wide else chosen(rows)
    if len(shown) == 1:
        return record(shown[0], width)
    if wide and len(shown[0]) > MOST_WIDE_COLUMNS:
        return records(shown, width)
    return grid(shown, width)


def text(value: Any) -> str:
    """One cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.3g}" if abs(value) < 1 else f"{value:,.2f}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    if isinstance(value, dict):
        return ", ".join(f"{text(name)}={text(item)}" for name, item in value.items()) or "-"
    if isinstance(value, list | tuple):
        return printable_json(json.dumps(value, default=plain, ensure_ascii=False))
    return on_one_line(" ".join(str(value).split()))


def record(row: dict[str, Any], most: int) -> str:
    """One row as a list of fields; metrics among them, prose is wrapped."""
    flat = {on_one_line(name): value for name, value in flatten(row)}
    width = max(map(len, flat), default=0)
    room = max(20, most - width - 2)
    lines = []
    for name, value in flat.items():
        first, *more = _shown(text(value) or "-", room)
        lines.append(f"{name:<{width}}  {first}")
        lines += [" " * (width + 2) + rest for rest in more]
    return "\n".join(lines)


def _shown(value: str, room: int) -> list[str]:
    """Prose is wrapped; JSON, and a word that is longer than the line, are cut."""
    if value.startswith(("{", "[")):
        return [cut(value, room)]
    return [cut(line, room) for line in wrapped(value, room)]


def records(rows: Sequence[dict[str, Any]], most: int) -> str:
    """Several rows as lists of the fields they have."""
    known = [{n: v for n, v in row.items() if v is not None} for row in rows]
    return "\n\n".join(record(row, most) for row in known)


def wrapped(value: str, width: int, break_words: bool = False) -> list[str]:
    """The text in lines of that width; a longer word stays whole unless ``cut`` is set."""
    found = textwrap.wrap(value, width, break_long_words=break_words, break_on_hyphens=False)
    return found or [""]


def flatten(row: dict[str, Any]) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if isinstance(value, dict) and name == "metrics":
            found += flatten(value)
        else:
            found.append((name, value))
    return found


@dataclass
class Column:
    """One column of a grid: its cells, and how narrow it may become."""

    name: str
    values: list[Any]

    def __post_init__(self) -> None:
        self.name = on_one_line(self.name)
        self.cells = [text(v).removeprefix(PREFIX) for v in self.values]
        self.is_number = all(isinstance(v, int | float | None) for v in self.values)
        self.is_nested = any(isinstance(v, dict | list | tuple) for v in self.values)
        fixed = self.is_number or all(isinstance(v, datetime | date | None) for v in self.values)
        self.widest = max(map(len, self.cells))
        word = max(map(len, _pieces(self.name)))
        least = self.widest if fixed else min(self.widest, 8 if self.is_nested else 16)
        self.floor = max(word, least)
        self.width = max(len(self.name), self.widest)

    @property
    def lost_its_sense(self) -> bool:
        """A sentence of which too little is left."""
        prose = any(cell.count(" ") >= 3 for cell in self.cells)
        return prose and not self.is_nested and self.width < min(self.widest, READABLE)

    def heading(self) -> list[str]:
        """The name, stacked at its underscores to fit the width."""
        lines = [""]
        for piece in _pieces(self.name):
            if lines[-1] and len(lines[-1] + piece) > self.width:
                lines.append("")
            lines[-1] += piece
        return [self.aligned(line) for line in lines]

    def aligned(self, value: str) -> str:
        return value.rjust(self.width) if self.is_number else value.ljust(self.width)


def _pieces(name: str) -> list[str]:
    words = name.split("_")
    return [f"{word}_" for word in words[:-1]] + words[-1:]


def grid(rows: Sequence[dict[str, Any]], most: int) -> str:
    """Rows as aligned columns, or as lists of fields when they do not fit."""
    names = [n for n in rows[0] if any(r.get(n) not in (None, "") for r in rows)]
    columns = [Column(n, [row.get(n) for row in rows]) for n in names]
    if not columns or not fit(columns, most) or any(c.lost_its_sense for c in columns[:-1]):
        return records(rows, most)
    headings = [column.heading() for column in columns]
    height = max(map(len, headings))
    lines = []
    for i in range(height):
        stacked = zip(headings, columns, strict=True)
        lines.append([(h[i] if i < len(h) else " " * c.width) for h, c in stacked])
    lines.append(["-" * column.width for column in columns])
    for i in range(len(rows)):
        lines += _row(columns, i)
    return "\n".join("  ".join(line).rstrip() for line in lines)


def _row(columns: Sequence[Column], i: int) -> list[list[str]]:
    """The lines of one row: several where the last column is prose that is wrapped."""
    *others, last = columns
    start = [c.aligned(cut(c.cells[i], c.width)) for c in others]
    pairs = isinstance(last.values[i], dict)
    prose = wrapped(last.cells[i], last.width, break_words=pairs)
    is_list = isinstance(last.values[i], list | tuple)
    if is_list or last.is_number or max(map(len, prose)) > last.width:
        prose = [cut(last.cells[i], last.width)]
    blank = [" " * c.width for c in others]
    return [[*(blank if k else start), last.aligned(line)] for k, line in enumerate(prose)]


def fit(columns: Sequence[Column], most: int) -> bool:
    """Narrow the columns until a line fits: headers, then long or nested cells, then texts."""
    if most < UNLIMITED:
        for column in columns:
            column.width = min(column.width, max(WIDEST_CELL, column.floor))
    stages: tuple[Callable[[Column], int], ...] = (
        lambda c: max(c.widest, c.floor),
        lambda c: c.floor if c.is_nested else max(c.floor, min(c.width, READABLE)),
        lambda c: c.floor,
    )
    for least in stages:
        while (over := sum(c.width + 2 for c in columns) - 2 - most) > 0:
            widest = max(columns, key=lambda c: (c.width - least(c) > 0, c.width))
            if widest.width <= least(widest):
                break
            widest.width -= 1
        if over <= 0:
            return True
    return False


def terminal_width(stream: Any = None) -> int:
    if not (stream or sys.stdout).isatty():
        return 80
    return max(40, shutil.get_terminal_size((80, 24)).columns)
