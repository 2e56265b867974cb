"""Our operators in Spark SQL, rewritten to function calls before Spark parses the text.

``message TEXTSEARCH 'a b'`` becomes ``textsearch(message, 'a b')``; FIELDMATCH and INDEXQUERY
likewise, ``a NOT TEXTSEARCH 'x'`` becomes ``NOT textsearch(a, 'x')``, and ``* TEXTSEARCH 'x'``
asks every field. Calls that name no column of the query are given one: ``textsearchall('x')`` asks
every field too, and ``tantivy4spark_textsearch('a', 'x')``, whose column is a string, column ``a``.
Calls of bucket functions become what they mean (``sqlbuckets``).
The text is cut into tokens first, so strings, quoted names and comments are
never touched, and a word is an operator only between a column and a search string: a column may
be called ``textsearch``.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any, NamedTuple

from indextables.spark.sqlbuckets import NAMES, called

OPERATORS = ("textsearch", "fieldmatch", "indexquery")
OLD_PREFIX = "tantivy4spark_"
EVERY = "_indexall"
COMMANDS = (
    "merge", "purge", "drop", "checkpoint", "compact", "truncate", "repair", "index", "describe",
    "invalidate", "flush", "prewarm", "delete", "restore", "doctor", "alter", "create", "reindex",
)  # fmt: skip
_TOKEN = re.compile(
    r"(?P<space>\s+|--[^\n]*|/\*.*?\*/)"
    r"|(?P<text>[rR]?'(?:[^'\\]|\\.|'')*'|[rR]?\"(?:[^\"\\]|\\.|\"\")*\")"
    r"|(?P<quoted>`(?:[^`]|``)*`)"
    r"|(?P<word>[^\W\d]\w*)"
    r"|(?P<marker>:[^\W\d]\w*|\?)"
    r"|(?P<other>.)",
    re.DOTALL,
)


class Token(NamedTuple):
    """A piece of SQL and what kind it is."""

    kind: str
    text: str
    start: int
    end: int


def java_pattern() -> str:
    """A pattern for texts that may be ours; all others never leave the JVM."""
    blank = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    commands = rf"^{blank}(?:{'|'.join(COMMANDS)})\b"
    calls = rf"\b(?:{OLD_PREFIX})?(?:{'|'.join(OPERATORS)})(?:all)?\b"
    return rf"{calls}|indextables_|{commands}"


def is_command(text: str) -> bool:
    """Is this one of our maintenance commands?"""
    found = getattr(commands(), "is_command", None)
    return bool(found and found(text))


def commands() -> Any:
    """The package of our commands, imported when one may be in sight."""
    return import_module("indextables.sql")


def tokens(text: str) -> list[Token]:
    """The tokens of a text, white space and comments left out."""
    return [
        Token(str(m.lastgroup), m.group(), m.start(), m.end())
        for m in _TOKEN.finditer(text)
        if m.lastgroup != "space"
    ]


def rewritten(text: str) -> str:
    """The text with every search as a call on the column it asks."""
    found = tokens(text)
    pieces: list[str] = []
    at = 0
    for i in range(len(found)):
        edit = (
            _operator_call(text, found, i)
            or _call_without_column(found, i)
            or _bucket_call(text, found, i)
        )
        if edit is not None and edit[0] >= at:
            start, end, call = edit
            pieces += [text[at:start], call]
            at = end
    return "".join(pieces) + text[at:]


def _operator_call(text: str, found: list[Token], i: int) -> tuple[int, int, str] | None:
    """Where an infix search stands, and the call it means."""
    if not _is_operator(found, i):
        return None
    negated = _is_word(found[i - 1], "not") and _ends_operand(found, i - 2)
    last = i - 2 if negated else i - 1
    first = _operand_start(found, last)
    column = text[found[first].start : found[last].end]
    call = _call(found[i].text, EVERY if column == "*" else column, found[i + 1].text)
    return found[first].start, found[i + 1].end, f"(NOT {call})" if negated else call


def _call_without_column(found: list[Token], i: int) -> tuple[int, int, str] | None:
    """Where a call stands whose arguments hold no column, and the call it means."""
    name = found[i].text.lower().removeprefix(OLD_PREFIX)
    plain = name.removesuffix("all")
    if found[i].kind != "word" or plain not in OPERATORS:
        return None
    rest = found[i + 1 : i + 6]
    kinds = [t.text if t.kind == "other" else t.kind for t in rest]
    values = ("text", "marker")
    if name != plain and kinds[:1] == ["("] and kinds[2:3] == [")"] and kinds[1] in values:
        return found[i].start, rest[2].end, _call(plain, EVERY, rest[1].text)
    named = kinds[:3] == ["(", "text", ","] and kinds[4:] == [")"] and kinds[3] in values
    if name == plain and named:
        column = rest[1].text[1:-1].replace("`", "``")
        return found[i].start, rest[4].end, _call(plain, f"`{column}`", rest[3].text)
    return None


def _bucket_call(text: str, found: list[Token], i: int) -> tuple[int, int, str] | None:
    """Where a call of a bucket function stands, and what it means."""
    name = found[i].text.lower()
    if name not in NAMES or [t.text for t in found[i + 1 : i + 2]] != ["("]:
        return None
    if i > 0 and _is_word(found[i - 1], "function"):
        return None
    arguments, start, depth = [], found[i + 1].end, 0
    for token in found[i + 1 :]:
        mark = token.text if token.kind == "other" else ""
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(mark, 0)
        if (mark == "," and depth == 1) or depth == 0:
            arguments.append(text[start : token.start])
            start = token.end
        if depth == 0:
            meaning = called(name, arguments)
            return None if meaning is None else (found[i].start, token.end, meaning)
    return None


def _call(name: str, column: str, query: str) -> str:
    return f"{name.lower()}({column}, {query})"


def _is_operator(found: list[Token], i: int) -> bool:
    token = found[i]
    if token.kind != "word" or token.text.lower() not in OPERATORS or i == 0:
        return False
    if i + 1 >= len(found) or found[i + 1].kind not in ("text", "marker"):
        return False
    if _is_word(found[i - 1], "not"):
        return i > 1 and _ends_operand(found, i - 2)
    return _ends_operand(found, i - 1)


def _is_word(token: Token, word: str) -> bool:
    return token.kind == "word" and token.text.lower() == word


_NEVER_COLUMNS = frozenset(
    [
        "where",
        "and",
        "or",
        "not",
        "on",
        "having",
        "when",
        "then",
        "else",
        "select",
        "by",
        "case",
        "filter",
        "qualify",
    ]
)


def _ends_operand(found: list[Token], i: int) -> bool:
    """Can a column, or the star for every field, end at token ``i``?"""
    token = found[i]
    if token.text == "*":
        return i == 0 or not _ends_value(found[i - 1])
    if token.kind == "quoted":
        return True
    return token.kind == "word" and token.text.lower() not in _NEVER_COLUMNS


def _ends_value(token: Token) -> bool:
    if token.kind in ("quoted", "text", "marker") or token.text == ")":
        return True
    return token.kind == "word" and token.text.lower() not in _NEVER_COLUMNS


def _operand_start(found: list[Token], i: int) -> int:
    """Where the column that ends at token ``i`` begins: ``a.b.c`` is one column."""
    while i >= 2 and found[i - 1].text == "." and found[i - 2].kind in ("word", "quoted"):
        i -= 2
    return i
