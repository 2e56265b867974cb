"""What a screen leaves out: columns that rarely matter, chosen by the columns of the result.

Programs get everything with ``--json``, people with ``--wide``. A row that sums the others up is
shown below them, as a sentence.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any

SHOWN = {
    "log_file_path": (
        "version", "action_type", "path", "num_records", "size", "skip_reason",
    ),
    "metrics": ("metrics",),
    "component_key": ("split_path", "component_key", "size_bytes", "component_type", "field_name"),
    "index_path": ("column", "action", "split_path", "cardinality", "rows", "size_bytes"),
    "property_value": ("role", "property_type", "property_name", "property_value"),
}  # fmt: skip
WIDEST_LABEL = 24


def chosen(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with the columns a screen shows."""
    for mark, names in SHOWN.items():
        if mark in rows[0]:
            return [{name: row.get(name) for name in names} for row in rows]
    return [{n: v for n, v in row.items() if n != "table_path"} for row in rows]


def summed_up(rows: Sequence[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[str]]:
    """The plain rows, and the sentences of those that sum up."""
    plain = [row for row in rows if row.get("status") != "summary"]
    return plain, [str(row["xref_path"]) for row in rows if row.get("status") == "summary"]


def cut(value: str, width: int) -> str:
    """The text in at most ``width`` characters, its middle left out."""
    if len(value) <= width:
        return value
    if width < 5:
        return value[:width]
    head = (width - 3) // 2
    return f"{value[:head]}...{value[len(value) - (width - 3 - head) :]}"


def paragraphs(text: str, width: int) -> str:
    """Each line wrapped under itself; what has no blank to wrap at is cut in its middle.

    A line with a mark below it (a caret) keeps its place: the part around the mark is shown.
    """
    lines = text.splitlines()
    shown: list[str] = []
    for i, line in enumerate(lines):
        below = lines[i + 1] if i + 1 < len(lines) else ""
        if below.lstrip().startswith("^") and len(line) > width:
            lines[i + 1], line = _around(line, below, width)
            shown.append(line)
            continue
        indent = " " * _hanging(line)
        shown += [cut(part, width) for part in _wrapped(line, width, indent)] or [""]
    return "\n".join(shown)


def _hanging(line: str) -> int:
    """Where the next lines begin: under the value of a label, else two to the right."""
    label = re.match(r"\s*\S+ {2,}(?=\S)", line)
    if label is not None and label.end() <= WIDEST_LABEL:
        return label.end()
    return len(line) - len(line.lstrip()) + 2


def _wrapped(line: str, width: int, indent: str) -> list[str]:
    if len(line) <= width:
        return [line]
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _around(line: str, below: str, width: int) -> tuple[str, str]:
    """The mark's line and the text above it, both moved left so that the mark is seen."""
    at = below.index("^")
    start = max(0, min(at - width // 3, len(line) - width + 6))
    head = "..." if start else ""
    text = head + line[start:]
    text = text if len(text) <= width else text[: width - 3] + "..."
    return " " * (at - start + len(head)) + below.lstrip(), text
