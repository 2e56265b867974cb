"""A Spark SQL predicate as text becomes a filter.

sqlglot parses Spark's dialect; three things are done here first, because only here they are exact.
String literals are read by Spark's own rules (``lexer``) and handed to the parser as numbered
stand-ins, so no quote or escape inside them can be misread. The infix operators
``col TEXTSEARCH 'q'``, ``FIELDMATCH`` and ``INDEXQUERY`` (and ``* TEXTSEARCH 'q'``) become the
functions of the same name (``infix``). And errors point at the place in the text the user wrote.

A number without exponent is exact (INT, BIGINT or DECIMAL), one with exponent or ``D`` a DOUBLE.
What this module cannot express is ``Unsupported`` with its text, never dropped. A text that says
nothing (blanks, comments) is an error in every place that takes one: it is what an unset variable
of a script looks like, and "every row" is the most expensive way to misread it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from indextables.errors import QuerySyntaxError, require_characters
from indextables.expr import filters as f
from indextables.expr import infix
from indextables.expr.lexer import Token, first_bad, run_of_strings, tokenize

SAY_WHICH = "Say which rows are meant; write TRUE, or leave the argument out, for all of them"


@dataclass
class _Source:
    """The text given to the parser, and the way back to the user's."""

    original: str
    pieces: list[str] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    anchors: list[tuple[int, int]] = field(default_factory=list)
    length: int = 0

    def emit(self, piece: str, origin: int) -> None:
        self.anchors.append((self.length, origin))
        self.pieces.append(piece)
        self.length += len(piece)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

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
    source = _prepared(text)
    from indextables.expr.sqlconvert import Converter

    try:
        return Converter(source.strings).condition(_parse(source))
    except RecursionError:
        raise _too_deep(text) from None


def prepare() -> None:
    """Load the parser, which takes as long as several round trips to a store.

    Called in a thread while something else is waited for; the first predicate then finds it, or
    waits for the rest.
    """
    import sqlglot

    import indextables.expr.sqlconvert  # noqa: F401

    sqlglot.Dialect.get_or_raise("spark")


def parse_value(text: str) -> f.Expression:
    """The expression of a Spark SQL value such as ``v + 1`` or ``'text'``."""
    if not text.strip():
        raise QuerySyntaxError(
            "the expression is empty", query=text, hint="An empty text is '' with its quotes"
        )
    require_characters(text)
    source = _prepared(text)
    from indextables.expr.sqlconvert import Converter

    try:
        return Converter(source.strings).value(_parse(source))
    except RecursionError:
        raise _too_deep(text) from None


def _too_deep(text: str) -> QuerySyntaxError:
    return QuerySyntaxError(
        "the predicate is nested too deeply",
        query=text,
        hint="Write it with fewer parentheses inside each other",
    )


def parse_statement(text: str) -> tuple[Any, list[str]]:
    """sqlglot's tree of a whole statement, and the strings that stand in it as ``'#0'``, ``'#1'``.

    Searches stand in it as calls, as in a predicate.
    """
    require_characters(text)
    source = _prepared(text.strip().rstrip(";"))
    return _parse(source, "a statement"), source.strings


def _parse(source: _Source, what: str = "a predicate") -> Any:
    import sqlglot
    from sqlglot.errors import ParseError, TokenError

    try:
        statements = sqlglot.parse(source.text, dialect="spark")
    except ParseError as error:
        raise _syntax_error(source, error.errors[0] if error.errors else {}) from error
    except TokenError as error:
        raise source.error("the predicate is not SQL: unreadable text", 0) from error
    if len(statements) != 1 or statements[0] is None:
        raise source.error(f"{what} is expected, and one only", _statement_end(source))
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


def _prepared(text: str) -> _Source:
    """The text as the parser gets it: comments dropped, strings lifted, searches as calls."""
    source, tokens = _Source(text), tokenize(text)
    if (bad := first_bad(tokens)) is not None:
        raise source.error(bad.value, bad.start)
    at = 0
    for edit in infix.search_edits(tokens):
        _refuse_markers(source, tokens[edit.first : edit.end])
        _emit(source, tokens, range(at, edit.first))
        _emit_gap(source, tokens, edit.first)
        for piece in edit.pieces:
            if isinstance(piece, str):
                source.emit(piece, tokens[edit.first].start)
            else:
                _emit(source, tokens, piece)
        at = edit.end
        _emit_gap(source, tokens, at)
    _emit(source, tokens, range(at, len(tokens) - 1))
    return source


def _refuse_markers(source: _Source, tokens: list[Token]) -> None:
    marker = next((t for t in tokens if t.kind == "marker"), None)
    if marker is not None:
        raise source.error(
            f"a predicate has no parameters: '{marker.text}'",
            marker.start,
            hint="Write the search string itself, in quotes",
        )


def _emit(source: _Source, tokens: list[Token], which: range) -> None:
    """Hand tokens on as they stand, strings as stand-ins and comments as blanks."""
    i = which.start
    while i < which.stop:
        token = tokens[i]
        if infix.lacks_its_string(tokens, i):
            raise source.error(
                f"{token.upper} needs a quoted search string",
                tokens[i + 1].start,
                hint="Write column TEXTSEARCH 'words'",
            )
        if i > which.start:
            _emit_gap(source, tokens, i)
        if token.upper == "X" and tokens[i + 1].kind == "string":
            source.emit(_hexadecimal(source, tokens[i + 1]), token.start)
            i += 2
        elif token.kind == "string":
            i = _emit_strings(source, tokens, i)
        else:
            source.emit(token.text, token.start)
            i += 1


def _emit_gap(source: _Source, tokens: list[Token], i: int) -> None:
    """What stands before a token: blanks as they are, comments as one blank."""
    start = tokens[i - 1].end if i else 0
    gap = source.original[start : tokens[i].start]
    source.emit(gap if gap.isspace() or not gap else " ", start)


def _emit_strings(source: _Source, tokens: list[Token], first: int) -> int:
    end = run_of_strings(tokens, first)
    source.emit(f"'#{len(source.strings)}'", tokens[first].start)
    source.strings.append("".join(token.value for token in tokens[first:end]))
    return end


def _hexadecimal(source: _Source, token: Token) -> str:
    if not all(digit in "0123456789abcdefABCDEF" for digit in token.value):
        raise source.error(f"X'{token.value}' is not hexadecimal", token.start)
    return f"X'{token.value}'"
