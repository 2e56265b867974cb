"""A Spark SQL predicate as text becomes a filter.

sqlglot parses Spark's dialect; three things are done here first, because only here they are exact.
String literals are read by Spark's own rules (backslash escapes, ``''`` for a quote, ``\\%`` and
``\\_`` left alone for LIKE, ``r'...'`` raw, double quotes too) and handed to the parser as
numbered stand-ins, so no quote or escape inside them can be misread. The infix operators
``col TEXTSEARCH 'q'``, ``FIELDMATCH`` and ``INDEXQUERY`` (and ``* TEXTSEARCH 'q'``) become the
functions of the same name. And errors point at the place in the text the user wrote.

A number without exponent is exact (INT, BIGINT or DECIMAL), one with exponent or ``D`` a DOUBLE.
What this module cannot express is ``Unsupported`` with its text, never dropped. A text that says
nothing (blanks, comments) is an error in every place that takes one: it is what an unset variable
of a script looks like, and "every row" is the most expensive way to misread it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import QuerySyntaxError, require_characters
from indextables.expr import filters as f

_SCAN = re.compile(
    r"""(?P<comment>--[^\n]*|/\*.*?\*/)
      | (?P<name>`(?:[^`]|``)*`)
      | (?P<string>(?P<prefix>\b[rRxX])?(?P<quote>['"]))""",
    re.X | re.S,
)
SAY_WHICH = "Say which rows are meant; write TRUE, or leave the argument out, for all of them"
_PART = r"(?:`(?:[^`]|``)*`|[A-Za-z_]\w*)"
_INFIX = re.compile(
    rf"(?P<target>\*|{_PART}(?:\s*\.\s*{_PART})*)\s+(?P<negated>NOT\s+)?"
    r"\b(?P<verb>TEXTSEARCH|FIELDMATCH|INDEXQUERY)\b\s*(?P<query>'\#\d+')?",
    re.I,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_SPECIAL = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[0-3][0-7]{2}|.)", re.S)


@dataclass
class _Source:
    """The text given to the parser, and the way back to the user's."""

    original: str
    text: str = ""
    strings: list[str] = field(default_factory=list)
    anchors: list[tuple[int, int]] = field(default_factory=list)

    def emit(self, piece: str, origin: int) -> None:
        self.anchors.append((len(self.text), origin))
        self.text += piece

    def origin(self, position: int) -> int:
        """The place in the original of a place in the rewritten text."""
        start, origin = max((a for a in self.anchors if a[0] <= position), default=(0, 0))
        return min(origin + position - start, len(self.original))

    def error(self, message: str, position: int, hint: str | None = None) -> QuerySyntaxError:
        return QuerySyntaxError(message, query=self.original, position=position, hint=hint)


def parse_predicate(text: str) -> f.Expression:
    """The filter of a Spark SQL predicate; blank text is an error, never every row."""
    if not text.strip():
        raise QuerySyntaxError("the predicate is empty", query=text, hint=SAY_WHICH)
    require_characters(text)
    source = _rewrite_infix(_lift_strings(text))
    from indextables.expr.sqlconvert import Converter

    try:
        return Converter(source.strings).condition(_parse(source))
    except RecursionError:
        raise QuerySyntaxError(
            "the predicate is nested too deeply",
            query=text,
            hint="Write it with fewer parentheses inside each other",
        ) from None


def _parse(source: _Source) -> Any:
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        statements = sqlglot.parse(source.text, dialect="spark")
    except ParseError as error:
        raise _syntax_error(source, error.errors[0] if error.errors else {}) from error
    except TokenError as error:
        raise source.error("the predicate is not SQL: unreadable text", 0) from error
    if len(statements) != 1 or statements[0] is None:
        raise source.error("a predicate is one condition", _statement_end(source))
    return statements[0]


def _syntax_error(source: _Source, detail: dict[str, Any]) -> QuerySyntaxError:
    after = source.origin(_offset(source.text, detail.get("line"), detail.get("col")))
    word = str(detail.get("highlight") or "")
    description = str(detail.get("description", "unreadable"))
    if description.startswith("Required keyword"):
        return source.error(f"the predicate is not SQL: nothing after '{word}'", after)
    return source.error(f"the predicate is not SQL: {description}", max(after - len(word), 0))


def _statement_end(source: _Source) -> int:
    """The place just after the first statement."""
    at = source.text.find(";")
    return source.origin(at) if at >= 0 else len(source.original)


def _offset(text: str, line: int | None, column: int | None) -> int:
    lines = text.split("\n")
    before = sum(len(part) + 1 for part in lines[: (line or 1) - 1])
    return min(before + (column or 0), len(text))


def _lift_strings(text: str) -> _Source:
    """Replace each string literal by a numbered stand-in; drop comments."""
    source = _Source(text)
    at = 0
    while match := _SCAN.search(text, at):
        source.emit(text[at : match.start()], at)
        at = match.end()
        if match["comment"]:
            source.emit(" ", match.start())
        elif match["name"]:
            source.emit(match[0], match.start())
        else:
            at = _lift_one(source, match)
    source.emit(text[at:], at)
    return source


def _lift_one(source: _Source, match: re.Match[str]) -> int:
    text, start = source.original, match.start()
    prefix = (match["prefix"] or "").lower()
    value, end = _read_string(source, match.end(), match["quote"], raw=prefix == "r")
    if prefix == "x":
        source.emit(f"X'{value}'", start)
        return end
    while not prefix and (follower := re.compile(r"\s+(['\"])").match(text, end)):
        more, end = _read_string(source, follower.end(), follower[1], raw=False)
        value += more
    source.emit(f"'#{len(source.strings)}'", start)
    source.strings.append(value)
    return end


def _read_string(source: _Source, at: int, quote: str, raw: bool) -> tuple[str, int]:
    """The value of a literal whose quote was just read, and the place after it."""
    text, begin = source.original, at
    pieces: list[str] = []
    while at < len(text):
        if text[at] == "\\" and not raw and at + 1 < len(text):
            escape = _SPECIAL.match(text, at)
            assert escape is not None
            try:
                pieces.append(_unescape(escape[1]))
            except (ValueError, OverflowError) as error:
                raise source.error(f"'{escape[0]}' is no character", at) from error
            at = escape.end()
        elif text[at] != quote:
            pieces.append(text[at])
            at += 1
        elif not raw and text[at + 1 : at + 2] == quote:
            pieces.append(quote)
            at += 2
        else:
            return _whole_characters("".join(pieces)), at + 1
    raise source.error("a string has no closing quote", begin - 1)


def _whole_characters(text: str) -> str:
    """Two escaped halves of a surrogate pair are one character; a half alone becomes ``U+FFFD``."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape(body: str) -> str:
    if body[0] in "uU" and len(body) > 1:
        return chr(int(body[1:], 16))
    if len(body) == 3:
        return chr(int(body, 8))
    if body in ("%", "_"):
        return "\\" + body
    return _ESCAPES.get(body, body)


def _rewrite_infix(source: _Source) -> _Source:
    """``a TEXTSEARCH 'q'`` becomes ``textsearch(a, 'q')``, ``*`` becomes ``textsearchall('q')``."""
    result = _Source(source.original, strings=source.strings)
    at = 0
    for match in _INFIX.finditer(source.text):
        if match["target"].upper() in ("AND", "OR", "NOT", "WHEN", "THEN", "ELSE"):
            continue
        if match["query"] is None:
            if source.text[match.end() : match.end() + 1] == "(":
                continue
            raise source.error(
                f"{match['verb'].upper()} needs a quoted search string",
                source.origin(match.end()),
                hint="Write column TEXTSEARCH 'words'",
            )
        result.emit(source.text[at : match.start()], source.origin(at))
        verb, query = match["verb"].lower(), match["query"]
        every = match["target"] == "*"
        call = f"{verb}all({query})" if every else f"{verb}({match['target']}, {query})"
        result.emit(f"NOT {call}" if match["negated"] else call, source.origin(match.start()))
        at = match.end()
    result.emit(source.text[at:], source.origin(at))
    return result
