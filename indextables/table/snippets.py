"""Snippets: the part of a text that answers the query, its words marked.

The text is cut by the field's own analyzer, so a word is marked exactly when the index would have
found it (``Running`` for ``run`` under stemming). The window is the one with the most different
query words; everything but the marks is escaped for HTML.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from typing import Any, assert_never

from indextables.expr import ast
from indextables.expr.analyzers import Token, analyze, analyze_tokens
from indextables.expr.edits import within_edits
from indextables.expr.like import LikePattern
from indextables.mapping import DocMapping

WINDOW = 150
OPEN, CLOSE = "<b>", "</b>"


def snippets(query: ast.Query, column: str, values: Any, mapping: DocMapping) -> list[str | None]:
    """A marked excerpt of each value; ``None`` where there is no text."""
    field = mapping.get(column)
    tokenizer = (field.tokenizer if field else None) or "default"
    length = field.token_length if field else 255
    wanted = list(matchers(query, column, tokenizer, length))
    found: list[str | None] = []
    for value in values.to_pylist():
        if not isinstance(value, str):
            found.append(None)
            continue
        tokens = analyze_tokens(tokenizer, value, length)
        found.append(_excerpt(value, [t for t in tokens if any(m(t.text) for m in wanted)]))
    return found


def matchers(
    query: ast.Query, column: str, tokenizer: str, length: int
) -> Iterator[Callable[[str], bool]]:
    """Tests that say whether a token of the column is what the query asked for."""
    for one in ast.asked(query, wanted=True):
        if one.field.lower() == column.lower():
            yield from _leaf(one, tokenizer, length)


def _leaf(query: ast.FieldQuery, tokenizer: str, length: int) -> Iterator[Callable[[str], bool]]:
    match query:
        case ast.Term():
            yield {str(query.value)}.__contains__
        case ast.TermSet():
            yield {str(v) for v in query.values}.__contains__
        case ast.FullText():
            yield set(analyze(tokenizer, query.text, length)).__contains__
        case ast.Phrase():
            whole = query.terms[:-1] if query.prefix else query.terms
            yield set(whole).__contains__
            if query.prefix:
                last = query.terms[-1]
                yield lambda token: token.startswith(last)
        case ast.Wildcard():
            parsed = LikePattern.wildcards(query.pattern)
            fits = re.compile(parsed.spelled(re.escape, ".*", "."), re.DOTALL).fullmatch
            yield lambda token: fits(token) is not None
        case ast.Fuzzy(_, value, distance, prefix, same):
            yield lambda token: within_edits(value, token, distance, prefix, same)
        case ast.Range() | ast.Regex() | ast.Exists():
            return
        case _:
            assert_never(query)


def _excerpt(text: str, hits: list[Token]) -> str:
    start = _best_start(hits)
    start = 0 if start < WINDOW // 3 else start - WINDOW // 3
    end = min(len(text), start + WINDOW)
    out = ["..." if start else ""]
    at = start
    for token in hits:
        if token.start < at or token.end > end:
            continue
        out += [html.escape(text[at : token.start]), OPEN]
        out += [html.escape(text[token.start : token.end]), CLOSE]
        at = token.end
    out += [html.escape(text[at:end]), "..." if end < len(text) else ""]
    return "".join(out)


def _best_start(hits: list[Token]) -> int:
    """Where the window with the most different words begins."""
    best, place = 0, hits[0].start if hits else 0
    for i, first in enumerate(hits):
        words = {t.text for t in hits[i:] if t.end <= first.start + WINDOW}
        if len(words) > best:
            best, place = len(words), first.start
    return place
