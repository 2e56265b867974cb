"""Statements on their way to Spark: which are ours, and what of ours the others hold.

Searches become calls (``expr.infix``), calls of bucket functions become what they mean
(``sqlbuckets``). Text that cannot be cut into tokens is left as it is: Spark says what is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from indextables.expr.infix import OLD_PREFIX, OPERATORS, Edit, edited, search_edits
from indextables.expr.lexer import Token, tokenize
from indextables.spark.sql.buckets import NAMES, called
from indextables.verbs import first_words

CATALOG = "indextables"


def java_pattern() -> str:
    """A pattern for texts that may be ours; all others never leave the JVM."""
    blank = r"(?:\s|--[^\n]*\n|/\*.*?\*/)*"
    commands = rf"^{blank}(?:{'|'.join(first_words())})\b"
    calls = rf"\b(?:{OLD_PREFIX})?(?:{'|'.join(OPERATORS)})(?:all)?\b"
    return rf"{calls}|indextables_|{commands}"


def is_command(text: str, spark: Any = None) -> bool:
    """Is this one of our maintenance commands, for a table this session knows?"""
    return bool(commands().is_command(text, spark))


def commands() -> Any:
    """The package of our commands, imported when one may be in sight."""
    return import_module("indextables.sql")


def rewritten(text: str) -> str:
    """The text with every search as a call on the column it asks, and buckets as plain SQL."""
    tokens = tokenize(text)
    searches = edited(text, tokens, search_edits(tokens))
    if stores_text(tokens):
        searches = _by_catalog(searches)
    if any(token.value.lower() in NAMES for token in tokens if token.kind == "word"):
        again = tokenize(searches)
        return edited(searches, again, _bucket_edits(searches, again))
    return searches


def stores_text(tokens: Sequence[Token]) -> bool:
    """Does the statement make a view that outlives the session?

    Such a view may name functions of a catalog only, not those of this session.
    """
    words = [token.upper for token in tokens[:4]]
    if words[:1] == ["CREATE"]:
        return "VIEW" in words and not {"TEMPORARY", "TEMP"} & set(words)
    return words[:2] == ["ALTER", "VIEW"]


def _by_catalog(text: str) -> str:
    """Every call of a search by its name in our catalog."""
    tokens = tokenize(text)
    names = {f"{name}{end}" for name in OPERATORS for end in ("", "all")}
    found = [
        Edit(i, i + 1, (f"{CATALOG}.{token.value.lower()}",))
        for i, token in enumerate(tokens)
        if token.kind == "word"
        and token.value.lower() in names
        and tokens[i + 1].is_mark("(")
        and not (i and tokens[i - 1].is_mark("."))
    ]
    return edited(text, tokens, found)


def _bucket_edits(text: str, tokens: Sequence[Token]) -> list[Edit]:
    found: list[Edit] = []
    at = 0
    for i in range(len(tokens)):
        edit = _bucket_call(text, tokens, i)
        if edit is not None and edit.first >= at:
            found.append(edit)
            at = edit.end
    return found


def _bucket_call(text: str, tokens: Sequence[Token], i: int) -> Edit | None:
    """The call of a bucket function at ``i``, and what it means."""
    name = tokens[i].value.lower()
    if tokens[i].kind != "word" or name not in NAMES or not tokens[i + 1].is_mark("("):
        return None
    if i > 0 and tokens[i - 1].upper == "FUNCTION":
        return None
    arguments, start, depth = [], tokens[i + 1].end, 0
    for k, token in enumerate(tokens[i + 1 :], i + 1):
        mark = token.text if token.kind == "mark" else ""
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(mark, 0)
        if (mark == "," and depth == 1) or depth == 0:
            arguments.append(text[start : token.start])
            start = token.end
        if depth == 0:
            meaning = called(name, arguments)
            return None if meaning is None else Edit(i, k + 1, (meaning,))
    return None
