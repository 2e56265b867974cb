"""Search operators in SQL text, rewritten to calls that any SQL parser reads.

``message TEXTSEARCH 'a b'`` becomes ``textsearch(message, 'a b')``; FIELDMATCH and INDEXQUERY
likewise, ``a NOT TEXTSEARCH 'x'`` becomes ``(NOT textsearch(a, 'x'))``, and ``* TEXTSEARCH 'x'``
asks every field, which is the column ``_indexall``. Calls that name no column are given one:
``textsearchall('x')`` asks every field too, and ``tantivy4spark_textsearch('a', 'x')``, whose
column is a string, column ``a``.

A word is an operator only between a column and a search string or parameter: a column may be
called ``textsearch``. The rewriter knows tokens only, so strings, quoted names and comments are
never touched. It serves predicates (``expr.sqltext``) and Spark's statements (``spark.sqltext``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from indextables.expr.lexer import Token, quoted_name, run_of_strings

OPERATORS = ("textsearch", "fieldmatch", "indexquery")
OLD_PREFIX = "tantivy4spark_"
EVERY = "_indexall"
_NEVER_COLUMNS = frozenset(
    (
        "where", "and", "or", "not", "on", "having", "when", "then", "else", "select", "by", "case",
        "filter", "qualify", "like", "ilike", "rlike", "regexp", "between", "in", "is", "escape",
        "distinct", "from", "div",
    )
)  # fmt: skip


class Edit(NamedTuple):
    """Tokens ``first`` up to ``end`` give way to new text and to tokens of the same list."""

    first: int
    end: int
    pieces: tuple[str | range, ...]


def search_edits(tokens: Sequence[Token]) -> list[Edit]:
    """Every search in the text as a call, in the order of the text."""
    found: list[Edit] = []
    at = 0
    for i, token in enumerate(tokens):
        if token.kind != "word":
            continue
        edit = _operator(tokens, i) or _call_without_column(tokens, i)
        if edit is not None and edit.first >= at:
            found.append(edit)
            at = edit.end
    return found


def edited(text: str, tokens: Sequence[Token], edits: Iterable[Edit]) -> str:
    """The text with the edits made; everything between them stays as it was written."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        pieces.append(text[at : tokens[edit.first].start])
        for piece in edit.pieces:
            pieces.append(piece if isinstance(piece, str) else written(text, tokens, piece))
        at = tokens[edit.end - 1].end
    return "".join(pieces) + text[at:]


def written(text: str, tokens: Sequence[Token], which: range) -> str:
    """How some tokens stand in the text."""
    return text[tokens[which.start].start : tokens[which.stop - 1].end]


def lacks_its_string(tokens: Sequence[Token], i: int) -> bool:
    """Does an operator stand at ``i`` after a column, with something else than its string?"""
    if tokens[i].value.lower() not in OPERATORS or tokens[i].kind != "word":
        return False
    return bool(_column_before(tokens, i)) and not tokens[i + 1].is_mark("(")


def _operator(tokens: Sequence[Token], i: int) -> Edit | None:
    """The search whose operator stands at ``i``."""
    name = tokens[i].value.lower()
    query = _query(tokens, i + 1)
    column = _column_before(tokens, i) if name in OPERATORS and query else None
    if column is None or query is None:
        return None
    star = tokens[column.start].is_mark("*")
    target: str | range = EVERY if star else column
    negated = column.stop < i
    call = (f"(NOT {name}(" if negated else f"{name}(", target, ", ", query)
    return Edit(column.start, query.stop, (*call, "))" if negated else ")"))


def _query(tokens: Sequence[Token], i: int) -> range | None:
    """The strings or the marker that begin at ``i``."""
    end = i + 1 if tokens[i].kind == "marker" else run_of_strings(tokens, i)
    return range(i, end) if end > i else None


def _column_before(tokens: Sequence[Token], i: int) -> range | None:
    """The column, or the star for every field, that an operator at ``i`` is asked of."""
    last = i - 1
    if last >= 1 and tokens[last].upper == "NOT" and _ends_column(tokens, last - 1):
        last -= 1
    if last < 0 or not _ends_column(tokens, last):
        return None
    first = last
    while first >= 2 and tokens[first - 1].is_mark(".") and _is_part(tokens[first - 2]):
        first -= 2
    return range(first, last + 1)


def _ends_column(tokens: Sequence[Token], i: int) -> bool:
    token = tokens[i]
    if token.is_mark("*"):
        return i == 0 or not _ends_value(tokens, i - 1)
    after_dot = i > 0 and tokens[i - 1].is_mark(".")
    return _is_part(token) and (after_dot or not _is_keyword(token))


def _ends_value(tokens: Sequence[Token], i: int) -> bool:
    token = tokens[i]
    if token.kind in ("name", "string", "marker", "number") or token.text in (")", "]"):
        return True
    return token.kind == "word" and not _is_keyword(token)


def _is_part(token: Token) -> bool:
    return token.kind in ("word", "name")


def _is_keyword(token: Token) -> bool:
    return token.kind == "word" and token.value.lower() in _NEVER_COLUMNS


def _call_without_column(tokens: Sequence[Token], i: int) -> Edit | None:
    """The call at ``i`` whose arguments hold no column."""
    name = tokens[i].value.lower().removeprefix(OLD_PREFIX)
    plain = name.removesuffix("all")
    if plain not in OPERATORS or not tokens[i + 1].is_mark("("):
        return None
    first = _query(tokens, i + 2)
    if first is None:
        return None
    if name != plain:
        return _closed(tokens, i, f"{plain}({EVERY}, ", first)
    column = "".join(token.value for token in tokens[first.start : first.stop])
    if tokens[first.start].kind == "marker" or not tokens[first.stop].is_mark(","):
        return None
    query = _query(tokens, first.stop + 1)
    target = EVERY if column == "*" else quoted_name(column)
    return None if query is None else _closed(tokens, i, f"{plain}({target}, ", query)


def _closed(tokens: Sequence[Token], i: int, head: str, query: range) -> Edit | None:
    if not tokens[query.stop].is_mark(")"):
        return None
    return Edit(i, query.stop + 1, (head, query, ")"))
