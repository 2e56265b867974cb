"""Pages of a search: which one is asked for, and where the next one begins.

``offset`` skips rows. ``search_after`` takes a page and asks for what follows it: the page carries,
in the metadata of its schema, the version of the table, the search, how many rows came before its
end, and the last of them. Going on is refused with another search or at another version, since rows
would be shown twice or never. Both look at all rows before the page once more.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from indextables.errors import PlanningError

KEY = b"indextables.search"


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of a page."""

    version: int
    search: str
    seen: int

    def follows(self, version: int, search: str) -> int:
        """How many rows to skip for the next page of the same search."""
        if self.version != version:
            raise PlanningError(
                f"the page is of version {self.version}, the table of version {version}",
                hint=f"Go on with table.at({self.version}), or start again",
            )
        if self.search != search:
            raise PlanningError(
                "the page is of another search",
                hint="Give search_after with the query, fields, where and statistics of the page",
            )
        return self.seen


def search_id(*parts: Any) -> str:
    """Two searches have the same only if they are the same."""
    return hashlib.sha256(repr(parts).encode("utf-8", "backslashreplace")).hexdigest()[:16]


def marked(page: pa.Table, cursor: Cursor) -> pa.Table:
    """The page with its end written on it."""
    notes = dict(page.schema.metadata or {})
    notes[KEY] = json.dumps(asdict(cursor)).encode()
    return page.replace_schema_metadata(notes)


def cursor_of(page: Any) -> Cursor:
    """Where a page ends."""
    notes = page.schema.metadata if isinstance(page, pa.Table) else None
    try:
        return Cursor(**json.loads((notes or {})[KEY]))
    except (KeyError, ValueError, TypeError, RecursionError):
        raise PlanningError(
            "search_after is not a page of a search",
            hint="Give the table that the search before returned, as it was returned",
        ) from None
