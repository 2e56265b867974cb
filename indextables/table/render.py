"""How a table shows itself: six lines of text, or a small HTML card. Never does I/O."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from indextables.log.read.moments import moment_of, moment_text
from indextables.printable import on_one_line
from indextables.types import type_name

if TYPE_CHECKING:
    from indextables.table.table import Table

_SHOWN_COLUMNS = 8
_STYLE = (
    "font:13px/1.5 system-ui,sans-serif;color:inherit;display:inline-block;max-width:60rem;"
    "border:1px solid rgba(127,127,127,.35);border-radius:8px;padding:.7em 1em"
)
_CELL = "text-align:left;padding:1px 14px 1px 0;background:none;vertical-align:top"


def as_text(table: Table) -> str:
    """Name, version, size, columns."""
    s = table.snapshot
    lines = [
        f"Table {on_one_line(table.path)}",
        f"  version    {s.version} ({moment(s.timestamp_ms)})",
        f"  splits     {s.num_files:,} with {rows_text(s.num_rows)}, {size_text(s.num_bytes)}",
        f"  columns    {columns_text(table)}",
    ]
    if s.partition_columns:
        lines.append(f"  partitions {on_one_line(', '.join(s.partition_columns))}")
    return "\n".join(lines)


def as_html(table: Table) -> str:
    """The same facts for a notebook, with how each column is indexed."""
    s = table.snapshot
    facts = {
        "version": f"{s.version} ({moment(s.timestamp_ms)})",
        "splits": f"{s.num_files:,} with {rows_text(s.num_rows)}, {size_text(s.num_bytes)}",
    }
    rows = "".join(_row(name, html.escape(text)) for name, text in facts.items())
    columns = "".join(
        _row(
            html.escape(f.name), f"{html.escape(type_name(f.type))} {_faint(_role(table, f.name))}"
        )
        for f in s.schema
    )
    head = f"<div style='font-weight:600;margin-bottom:.3em'>{html.escape(table.path)}</div>"
    grid = "border-collapse:collapse;color:inherit;background:none;margin:0"
    more = (
        f"<details><summary style='cursor:pointer'>{len(s.schema)} columns</summary>"
        f"<table style='{grid}'>{columns}</table></details>"
    )
    return f"<div style='{_STYLE}'>{head}<table style='{grid}'>{rows}</table>{more}</div>"


def _row(name: str, body: str) -> str:
    return f"<tr><td style='{_CELL}'>{_faint(name)}</td><td style='{_CELL}'>{body}</td></tr>"


def _faint(text: str) -> str:
    return f"<span style='opacity:.7'>{text}</span>"


def _role(table: Table, column: str) -> str:
    """What a column is to a query."""
    if column in table.partition_columns:
        return "partition"
    field = table.mapping.get(column)
    if field is None or not field.indexed:
        return "not indexed"
    if field.is_tokenized:
        return f"text, {html.escape(str(field.tokenizer))} tokens"
    return {"json": "json", "ip": "ip address"}.get(field.type, "exact")


def columns_text(table: Table) -> str:
    fields = list(table.schema)
    named = (f"{f.name} {type_name(f.type)}" for f in fields[:_SHOWN_COLUMNS])
    shown = on_one_line(", ".join(named))
    more = len(fields) - _SHOWN_COLUMNS
    return f"{shown}, and {more} more" if more > 0 else shown


def moment(timestamp_ms: int) -> str:
    known = moment_of(timestamp_ms)
    return moment_text(timestamp_ms) if known is None else f"{known:%Y-%m-%d %H:%M:%S} UTC"


def rows_text(rows: int | None) -> str:
    return "an unknown number of rows" if rows is None else f"{rows:,} rows"


def size_text(size: int) -> str:
    value = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"
