"""Results as small HTML tables for notebooks: history, findings, aggregates, results of verbs.

Colours are those of the page, so that light and dark themes read alike; everything is escaped, and
nothing is loaded from anywhere. Long results show their first rows and say how many there are.
"""

from __future__ import annotations

import html
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from indextables.printable import on_one_line

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
MOST_ROWS = 50
MOST_CHARACTERS = 200
MARK = b"indextables.grid"
GRID = "border-collapse:collapse;color:inherit;background:none;margin:0"
CELL = "text-align:left;padding:.15em .8em .15em 0;border:none;vertical-align:top"
HEAD = f"{CELL};font-weight:600;opacity:.75"


class Listing(list[T]):
    """A list whose items are shown as the rows of a table."""

    def _repr_html_(self) -> str:
        return grid([_plain(item) for item in self[:MOST_ROWS]], len(self))


def grid(rows: Sequence[Mapping[str, Any]], total: int | None = None) -> str:
    """Rows as an HTML table."""
    if not rows:
        return "<div>no rows</div>"
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th style='{HEAD}'>{_text(name)}</th>" for name in names)
    body = "".join(f"<tr>{_cells(row.get(n) for n in names)}</tr>" for row in rows)
    left = (len(rows) if total is None else total) - len(rows)
    more = f"<div style='opacity:.75'>and {left:,} more rows</div>" if left > 0 else ""
    table = f"<table style='{GRID}'><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div style='overflow-x:auto;max-width:100%'>{table}{more}</div>"


def _cells(values: Iterable[Any]) -> str:
    return "".join(f"<td style='{CELL}'>{_text(value)}</td>" for value in values)


def _text(value: Any) -> str:
    shown = "" if value is None else on_one_line(str(value))
    cut = shown if len(shown) <= MOST_CHARACTERS else shown[: MOST_CHARACTERS - 3] + "..."
    return html.escape(cut)


def _plain(item: Any) -> dict[str, Any]:
    """What a result holds, without what is empty everywhere."""
    if is_dataclass(item):
        return {f.name: getattr(item, f.name) for f in fields(item)}
    return dict(item) if isinstance(item, Mapping) else {"value": item}


# -- Arrow tables, which know nothing of notebooks ------------------------------------------------


def shown(table: pa.Table) -> pa.Table:
    """The table, which a notebook will show as a grid."""
    _tell_notebook()
    return table.replace_schema_metadata({**(table.schema.metadata or {}), MARK: b"1"})


def as_html(table: pa.Table) -> str | None:
    """An aggregate of ours as HTML; others are shown as pyarrow shows them."""
    if MARK not in (table.schema.metadata or {}):
        return None
    return grid(table.slice(0, MOST_ROWS).to_pylist(), table.num_rows)


def _tell_notebook() -> None:
    """Where a notebook runs, teach it once to show our tables."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    formatter = getattr(getattr(shell, "display_formatter", None), "formatters", {}).get(
        "text/html"
    )
    if formatter is not None:
        import pyarrow as pa

        formatter.for_type(pa.Table, as_html)
