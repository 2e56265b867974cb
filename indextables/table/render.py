"""How a table shows itself: six lines of text, or a small HTML card. Never does I/O."""

from __future__ import annotations

import html
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from indextables.types import type_name

if TYPE_CHECKING:
    from indextables.table.table import Table

_SHOWN_COLUMNS = 8
_STYLE = (
    "border-collapse:collapse;font:13px system-ui,sans-serif;color:inherit;background:transparent"
)


def as_text(table: Table) -> str:
    """Name, version, size, columns."""
    s = table.snapshot
    lines = [
        f"Table {table.path}",
        f"  version    {s.version} ({moment(s.timestamp_ms)})",
        f"  splits     {s.num_files:,} with {rows_text(s.num_rows)}, {size_text(s.num_bytes)}",
        f"  columns    {columns_text(table)}",
    ]
    if s.partition_columns:
        lines.append(f"  partitions {', '.join(s.partition_columns)}")
    return "\n".join(lines)


def as_html(table: Table) -> str:
    """The same facts for a notebook."""
    s = table.snapshot
    facts = {
        "version": f"{s.version} ({moment(s.timestamp_ms)})",
        "splits": f"{s.num_files:,}",
        "rows": rows_text(s.num_rows),
        "size": size_text(s.num_bytes),
        "partitions": ", ".join(s.partition_columns) or "none",
        "columns": ", ".join(f"{f.name} {type_name(f.type)}" for f in s.schema),
    }
    rows = "".join(
        f"<tr><th style='text-align:left;padding:2px 12px 2px 0'>{k}</th>"
        f"<td style='text-align:left'>{html.escape(v)}</td></tr>"
        for k, v in facts.items()
    )
    return f"<table style='{_STYLE}'><caption>{html.escape(table.path)}</caption>{rows}</table>"


def columns_text(table: Table) -> str:
    fields = list(table.schema)
    shown = ", ".join(f"{f.name} {type_name(f.type)}" for f in fields[:_SHOWN_COLUMNS])
    more = len(fields) - _SHOWN_COLUMNS
    return f"{shown}, and {more} more" if more > 0 else shown


def moment(timestamp_ms: int) -> str:
    return datetime.fromtimestamp(timestamp_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def rows_text(rows: int | None) -> str:
    return "an unknown number of rows" if rows is None else f"{rows:,} rows"


def size_text(size: int) -> str:
    value = float(size)
    for unit in ("B", "KB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
