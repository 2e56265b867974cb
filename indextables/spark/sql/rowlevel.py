"""DELETE, UPDATE and MERGE INTO as Spark spells them, cut into their parts.

Only the frame of a statement is read here: the table, its alias, the source, and the clauses with
their conditions and values. What stands in a condition or value is the user's text, and goes to
Spark as it stands. A statement that is cut wrongly would change wrong rows, so whatever does not
fit the frame is not ours: Spark then says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from indextables.expr.lexer import Token, first_bad, quoted_name, tokenize

MATCHED, INSERTED, BY_SOURCE = "matched", "not matched", "not matched by source"
_DELETE = "DELETE"
_OPENING = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True)
class Clause:
    """One WHEN of a MERGE; ``values`` of ``None`` delete, an empty name means ``*``."""

    kind: str
    condition: str | None
    values: tuple[tuple[str, str], ...] | None

    @property
    def takes_all(self) -> bool:
        return self.values == (("", "*"),)


@dataclass(frozen=True)
class Change:
    """A statement: its table and alias, and what is done to it."""

    verb: str
    path: str | None
    parts: tuple[str, ...]
    alias: str
    clauses: tuple[Clause, ...]
    source: str = ""
    source_alias: str = ""
    on: str = ""
    evolves: bool = False


class _NotOursError(Exception):
    """The text does not have the form of such a statement."""


def parsed(text: str) -> Change | None:
    """The parts of a DELETE, UPDATE or MERGE INTO; ``None`` for any other statement."""
    tokens = tokenize(text)
    if first_bad(tokens) is not None or not tokens:
        return None
    readers = {_DELETE: _delete, "UPDATE": _update, "MERGE": _merge}
    reader = readers.get(tokens[0].upper)
    if reader is None:
        return None
    try:
        return reader(_Text(text, tokens))
    except _NotOursError:
        return None


class _Text:
    """Tokens with a place among them."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text, self.tokens, self.at = text, tokens, 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def word(self, *words: str) -> bool:
        """Go past these words if they stand here."""
        if tuple(t.upper for t in self.tokens[self.at : self.at + len(words)]) != words:
            return False
        self.at += len(words)
        return True

    def need(self, *words: str) -> None:
        if not self.word(*words):
            raise _NotOursError

    def mark(self, mark: str) -> bool:
        if not self.now.is_mark(mark):
            return False
        self.at += 1
        return True

    def end(self) -> bool:
        self.mark(";")
        return self.now.kind == "end"

    def name(self) -> tuple[str, ...]:
        parts = []
        while self.now.kind in ("word", "name"):
            parts.append(self.now.value)
            self.at += 1
            if not self.mark("."):
                return tuple(parts)
        raise _NotOursError

    def until(self, *stops: str, commas: bool = False) -> str:
        """The raw text up to one of some words, outside of brackets and of CASE."""
        first, depth, cases = self.at, 0, 0
        while self.now.kind != "end" and not self.now.is_mark(";"):
            token = self.now
            free = depth == 0 and cases == 0
            if free and (token.upper in stops or (commas and token.is_mark(","))):
                break
            if free and commas and token.is_mark(")"):
                break
            depth += _OPENING.get(token.text, 0) if token.kind == "mark" else 0
            cases += {"CASE": 1, "END": -1}.get(token.upper, 0)
            self.at += 1
        if self.at == first or depth or cases:
            raise _NotOursError
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end]

    def alias(self, *stops: str) -> str | None:
        if self.word("AS"):
            (found,) = self.name()
            return found
        if self.now.kind == "name" or (self.now.kind == "word" and self.now.upper not in stops):
            (found,) = self.name()
            return found
        return None

    def target(self, *stops: str) -> tuple[str | None, tuple[str, ...], str]:
        """Path or name, and the name by which columns may be qualified."""
        path: str | None = None
        parts: tuple[str, ...] = ()
        if self.now.kind == "string":
            path = self.now.value
            self.at += 1
        else:
            parts = self.name()
        known = self.alias(*stops)
        return path, parts, known or (parts[-1] if parts else "target")

    def assignments(self, alias: str, *stops: str) -> tuple[tuple[str, str], ...]:
        found = []
        while True:
            parts = self.name()
            if len(parts) > 1 and parts[0].lower() == alias.lower():
                parts = parts[1:]
            if len(parts) != 1 or not (self.mark("=") or self.mark("==")):
                raise _NotOursError
            found.append((parts[0], self.until(*stops, commas=True)))
            if not self.mark(","):
                return tuple(found)


def _delete(text: _Text) -> Change:
    text.need(_DELETE, "FROM")
    path, parts, alias = text.target("WHERE")
    where = text.until() if text.word("WHERE") else None
    if not text.end():
        raise _NotOursError
    return Change(_DELETE, path, parts, alias, (Clause(MATCHED, where, None),))


def _update(text: _Text) -> Change:
    text.need("UPDATE")
    path, parts, alias = text.target("SET")
    text.need("SET")
    values = text.assignments(alias, "WHERE")
    where = text.until() if text.word("WHERE") else None
    if not text.end():
        raise _NotOursError
    return Change("UPDATE", path, parts, alias, (Clause(MATCHED, where, values),))


def _merge(text: _Text) -> Change:
    text.need("MERGE")
    evolves = text.word("WITH", "SCHEMA", "EVOLUTION")
    text.need("INTO")
    path, parts, alias = text.target("USING")
    text.need("USING")
    source, source_alias = _source(text)
    text.need("ON")
    on = text.until("WHEN")
    clauses = []
    while text.word("WHEN"):
        clauses.append(_clause(text, alias))
    if not clauses or not text.end():
        raise _NotOursError
    return Change("MERGE", path, parts, alias, tuple(clauses), source, source_alias, on, evolves)


def _source(text: _Text) -> tuple[str, str]:
    if text.now.is_mark("("):
        first, depth = text.at, 0
        while text.now.kind != "end":
            depth += _OPENING.get(text.now.text, 0) if text.now.kind == "mark" else 0
            text.at += 1
            if depth == 0:
                break
        inner = text.text[text.tokens[first].start : text.tokens[text.at - 1].end]
        return inner, text.alias("ON") or "source"
    parts = text.name()
    written = ".".join(map(quoted_name, parts))
    return written, text.alias("ON") or parts[-1]


def _clause(text: _Text, alias: str) -> Clause:
    kind = MATCHED
    if text.word("NOT"):
        kind = INSERTED
    text.need("MATCHED")
    if text.word("BY", "SOURCE"):
        kind = BY_SOURCE
    elif text.word("BY", "TARGET") and kind != INSERTED:
        raise _NotOursError
    condition = text.until("THEN") if text.word("AND") else None
    text.need("THEN")
    if kind == INSERTED:
        text.need("INSERT")
        return Clause(kind, condition, _inserted(text))
    if text.word(_DELETE):
        return Clause(kind, condition, None)
    text.need("UPDATE", "SET")
    if text.mark("*"):
        return Clause(kind, condition, (("", "*"),))
    return Clause(kind, condition, text.assignments(alias, "WHEN"))


def _inserted(text: _Text) -> tuple[tuple[str, str], ...]:
    if text.mark("*"):
        return (("", "*"),)
    if not text.mark("("):
        raise _NotOursError
    names = [text.name()[-1]]
    while text.mark(","):
        names.append(text.name()[-1])
    if not text.mark(")"):
        raise _NotOursError
    text.need("VALUES")
    if not text.mark("("):
        raise _NotOursError
    values = [text.until(commas=True)]
    while text.mark(","):
        values.append(text.until(commas=True))
    if not text.mark(")") or len(names) != len(values):
        raise _NotOursError
    return tuple(zip(names, values, strict=True))


def unqualified(text: str, alias: str) -> str:
    """The text with the target's columns by their plain names."""
    tokens = tokenize(text)
    out, at = [], 0
    for i, token in enumerate(tokens[:-2]):
        named = token.kind in ("word", "name") and token.value.lower() == alias.lower()
        follows = i > 0 and tokens[i - 1].is_mark(".")
        if named and not follows and tokens[i + 1].is_mark("."):
            out.append(text[at : token.start])
            at = tokens[i + 2].start
    return "".join([*out, text[at:]])


def key_pairs(on: str, target: str, source: str) -> list[tuple[str, str]]:
    """Columns of both sides that an ON condition requires to be equal; others may be there too."""
    tokens = tokenize(on)[:-1]
    words = {token.upper for token in tokens}
    if words & {"OR", "BETWEEN", "NOT", "CASE"} or first_bad(tokens) is not None:
        return []
    pieces: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += _OPENING.get(token.text, 0) if token.kind == "mark" else 0
        if depth == 0 and token.upper == "AND":
            pieces.append([])
        else:
            pieces[-1].append(token)
    found = []
    for piece in pieces:
        sides = _two_columns(piece)
        if sides is not None and set(sides) == {target.lower(), source.lower()}:
            found.append((sides[target.lower()], sides[source.lower()]))
    return found


def _two_columns(piece: Sequence[Token]) -> dict[str, str] | None:
    if len(piece) != 7 or not piece[3].is_mark("="):
        return None
    names = [piece[i] for i in (0, 2, 4, 6)]
    dots = piece[1].is_mark(".") and piece[5].is_mark(".")
    if not dots or any(token.kind not in ("word", "name") for token in names):
        return None
    return {names[0].value.lower(): names[1].value, names[2].value.lower(): names[3].value}
