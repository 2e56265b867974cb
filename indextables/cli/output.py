"""How results reach the terminal: aligned tables for people, JSON for programs.

A table never grows wider than the terminal (80 columns when there is none): long cells are cut in
the middle, and a single row is shown as a list of fields instead.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

WIDEST_CELL = 60


def emit(rows: Sequence[dict[str, Any]], as_json: bool, empty: str = "nothing found") -> None:
    """Print rows in the asked form."""
    if as_json:
        print(json.dumps(list(rows), indent=2, default=plain, ensure_ascii=False))
    elif not rows:
        print(empty)
    elif len(rows) == 1:
        print(record(rows[0]))
    else:
        print(grid(rows))


def plain(value: Any) -> Any:
    """JSON's spelling of values it does not know."""
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    if hasattr(value, "items"):
        return dict(value)
    return str(value)


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
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=plain, ensure_ascii=False)
    return " ".join(str(value).split())


def cut(value: str, width: int) -> str:
    """The text in at most ``width`` characters, its middle left out."""
    if len(value) <= width:
        return value
    if width < 5:
        return value[:width]
    head = (width - 3) // 2
    return f"{value[:head]}...{value[len(value) - (width - 3 - head) :]}"


def record(row: dict[str, Any]) -> str:
    """One row as a list of fields; nested fields are indented."""
    flat = dict(flatten(row))
    width = max(map(len, flat), default=0)
    return "\n".join(f"{name:<{width}}  {text(value)}" for name, value in flat.items())


def flatten(row: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for name, value in row.items():
        if isinstance(value, dict) and prefix == "" and name == "metrics":
            found += flatten(value, "  ")
        else:
            found.append((prefix + name, value))
    return found


def grid(rows: Sequence[dict[str, Any]]) -> str:
    """Rows as aligned columns; empty columns are left out, wide ones are cut to fit."""
    names = [n for n in rows[0] if any(row.get(n) is not None for row in rows)]
    cells = [[cut(text(row.get(n)), WIDEST_CELL) for n in names] for row in rows]
    widths = [max(len(n), *(len(line[i]) for line in cells)) for i, n in enumerate(names)]
    fit(widths, terminal_width())
    numeric = [all(isinstance(r.get(n), int | float | None) for r in rows) for n in names]
    lines = [_line(names, widths, [False] * len(names)), _line(["-" * w for w in widths], widths)]
    lines += [_line(line, widths, numeric) for line in cells]
    return "\n".join(line.rstrip() for line in lines)


def fit(widths: list[int], most: int) -> None:
    """Shrink the widest columns until the line fits."""
    while sum(widths) + 2 * (len(widths) - 1) > most and max(widths) > 8:
        widths[widths.index(max(widths))] -= 1


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool] | None = None) -> str:
    sides = right or [False] * len(cells)
    shown = (cut(c, w) for c, w in zip(cells, widths, strict=True))
    parts = (
        c.rjust(w) if side else c.ljust(w) for c, w, side in zip(shown, widths, sides, strict=True)
    )
    return "  ".join(parts)


def terminal_width() -> int:
    if not sys.stdout.isatty():
        return 80
    return max(40, shutil.get_terminal_size((80, 24)).columns)
