"""Text that a terminal only shows.

Values, names and paths come from data, and a terminal obeys what it is sent: an escape sequence
moves the cursor, sets the title or types for the user, a bidirectional override makes one name look
like another. So whatever is written for people goes through ``printable``: control characters (C0,
C1, DEL), line and paragraph separators, bidirectional controls, invisible tags and halves of
surrogate pairs are shown as the escapes Python would write. JSON has escapes of its own:
``printable_json``.
"""

from __future__ import annotations

import json
import logging
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)


def printable(text: str, keep: str = "\n") -> str:
    """The text with everything a terminal would act on escaped, but for the characters to keep."""
    return _UNSAFE.sub(lambda m: m[0] if m[0] in keep else _escaped(m[0]), text)


def on_one_line(text: str) -> str:
    """A value or a name for a line of its own: line breaks are escaped too."""
    return printable(text, keep="")


def printable_json(text: str) -> str:
    """JSON text with the same characters as JSON's own escapes; it means the same."""
    return _UNSAFE.sub(lambda m: m[0] if m[0] == "\n" else json.dumps(m[0])[1:-1], text)


class PrintableFormatter(logging.Formatter):
    """Log lines for a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _escaped(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


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
