"""From text to a verb: the tokens are matched against the grammar line of every verb.

``is_command`` says whether a statement is ours; everything else belongs to Spark, untouched. A
statement whose first two words only we have is ours. ``DELETE FROM``, ``TRUNCATE TABLE``, ``CREATE
INDEX`` and the like are shared words: they are ours only when the table is a quoted path, since
Spark never accepts one there. ``ALTER TABLE ... TBLPROPERTIES`` is ours for a table of the catalog
too, if the catalog says that it is one of ours: Spark would change its own notes only.

A mistake is reported where the grammar that came furthest could not go on, with all that would have
been understood there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indextables.errors import CommandSyntaxError, require_characters
from indextables.expr.lexer import Token, first_bad, tokenize
from indextables.verbs import REGISTRY, Verb, first_words
from indextables.verbs.grammar import RAW, Choice, Flag, Node, Slot, Word, compiled, leading_words

_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SHARED = ("TABLE", "FROM", "INDEX", "HISTORY", "PARTITIONS")
_DAYS = ("DAYS", "DAY", "HOURS", "HOUR")
_SECONDS = ("SECONDS", "SECOND", "MINUTES", "MINUTE")

Taken = dict[str, Any]
Step = tuple[int, Taken]


@dataclass(frozen=True, slots=True)
class TableName:
    """A path, or the parts of a name the session's catalog knows."""

    path: str | None = None
    parts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.path if self.path is not None else ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Statement:
    """A verb with its parameters, and the table it is for."""

    verb: Verb[Any]
    table: TableName | None = None


def is_command(text: str) -> bool:
    """Is this statement one of ours?"""
    tokens = tokenize(text)
    if first_bad(tokens) is not None:
        return False
    match = _Match(text, tokens)
    return any(_begins(kind.SQL, tokens) or match.reaches_path(kind.SQL) for kind in REGISTRY)


def _begins(line: str, tokens: Sequence[Token]) -> bool:
    """Are the first two words those of a grammar, and the second one that only we have?"""
    first, second = compiled(line)[:2]
    optional = isinstance(second, Choice)
    if isinstance(second, Choice):
        second = second.ways[0][0]
    return (
        isinstance(first, Word)
        and isinstance(second, Word)
        and second.text not in _SHARED
        and first.matches(tokens[0].upper)
        and second.matches(tokens[min(1, len(tokens) - 1)].upper)
        and (optional or not tokens[2].is_mark("."))
    )


def named_table(text: str) -> TableName | None:
    """The table of a statement that is ours if its table is, which only the catalog knows."""
    tokens = tokenize(text)
    starts = {leading_words(kind.SQL) for kind in REGISTRY if kind.BY_NAME}
    if not any(tuple(t.upper for t in tokens[: len(words)]) == words for words in starts):
        return None
    try:
        statement = parse(text)
    except CommandSyntaxError:
        return None
    return statement.table if statement.verb.BY_NAME else None


def parse(text: str) -> Statement:
    """The verb of a statement; ``CommandSyntaxError`` points at the first wrong word."""
    require_characters(text)
    tokens = tokenize(text)
    if (bad := first_bad(tokens)) is not None:
        raise CommandSyntaxError(bad.value, text=text, position=bad.start)
    match = _Match(text, tokens)
    for kind in REGISTRY:
        match.needs = kind.NEEDS
        for at, taken in match.follow(compiled(kind.SQL), 0, {}):
            if match.at_end(at):
                table = taken.pop("table", None)
                taken.pop("-", None)
                return Statement(kind(**taken), table)
    raise match.mistake()


class _Match:
    """The tokens of a statement, and how far any grammar understood them."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.furthest = 0
        self.expected: dict[str, None] = {}
        self.message: str | None = None
        self.needs: Any = {}
        self.has_path = False

    # -- mistakes -------------------------------------------------------------------------------

    def miss(self, at: int, expected: Sequence[str], message: str | None = None) -> None:
        """Note what would have been understood here."""
        if at > self.furthest:
            self.furthest, self.expected, self.message = at, {}, None
        if at == self.furthest:
            self.expected.update(dict.fromkeys(expected))
            self.message = self.message or message

    def mistake(self) -> CommandSyntaxError:
        token, words = self.tokens[self.furthest], list(self.expected)
        found = repr(token.value) if token.value else "the end"
        message = self.message or f"unexpected {found}"
        if self.furthest == 0:
            message, words = "not a command of indextables", first_words()
        elif self.message is None and len(words) == 1 and words != ["the end"]:
            message = f"expected {words[0]}, found {found}"
        return CommandSyntaxError(message, text=self.text, position=token.start, expected=words)

    def reaches_path(self, line: str) -> bool:
        """Does the grammar understand all words up to a quoted path, where its table is?"""
        self.has_path = False
        next(self.follow(compiled(line), 0, {}), None)
        return self.has_path

    def at_end(self, at: int) -> bool:
        after = at + self.tokens[at].is_mark(";")
        if self.tokens[after].kind == "end":
            return True
        self.miss(after, ["the end"])
        return False

    # -- following a grammar ----------------------------------------------------------------------

    def follow(self, nodes: Sequence[Node], at: int, taken: Taken) -> Iterator[Step]:
        """Every way the nodes can be read from here on, the longest first."""
        if not nodes:
            yield at, taken
            return
        for after, more in self._one(nodes[0], at, taken):
            yield from self.follow(nodes[1:], after, more)

    def _one(self, node: Node, at: int, taken: Taken) -> Iterator[Step]:
        if isinstance(node, Choice):
            for way in node.ways:
                yield from self.follow(way, at, taken)
        elif isinstance(node, Slot):
            read = self._slot(node, at)
            if read is not None:
                yield read[1], {**taken, node.name: read[0]}
        else:
            words = node.words if isinstance(node, Flag) else (node,)
            after = self._words(words, at)
            if after is not None:
                yield after, {**taken, node.name: True} if isinstance(node, Flag) else taken

    def _words(self, words: Sequence[Word], at: int) -> int | None:
        for word in words:
            if not word.matches(self.tokens[at].upper):
                self.miss(at, [word.text], self.needs.get(word.text))
                return None
            at += 1
        return at

    def _slot(self, slot: Slot, at: int) -> Any:
        if slot.kind in RAW:
            return self._raw(at, slot)
        if "|" not in slot.kind:
            return getattr(self, f"read_{slot.kind}")(at)
        options = slot.kind.upper().split("|")
        return (self.tokens[at].upper.lower(), at + 1) if self._is_one(at, options) else None

    # -- kinds ------------------------------------------------------------------------------------

    def _is_one(self, at: int, options: Sequence[str]) -> bool:
        if self.tokens[at].upper in options:
            return True
        self.miss(at, options)
        return False

    def _mark(self, at: int, mark: str) -> bool:
        if self.tokens[at].is_mark(mark):
            return True
        self.miss(at, [mark])
        return False

    def read_string(self, at: int) -> tuple[str, int] | None:
        if self.tokens[at].kind == "string":
            return self.tokens[at].value, at + 1
        self.miss(at, ["'text'"], "expected a text in quotes")
        return None

    def read_int(self, at: int) -> tuple[int, int] | None:
        token = self.tokens[at]
        if token.kind == "number" and token.value.isdecimal():
            return int(token.value), at + 1
        before = self.tokens[at - 1].upper
        self.miss(at, ["a number"], f"expected a whole number after {before}")
        return None

    def read_hours(self, at: int) -> tuple[int, int] | None:
        amount = self.read_int(at)
        if amount is None or not self._is_one(at + 1, _DAYS):
            return None
        days = self.tokens[at + 1].upper.startswith("DAY")
        return amount[0] * (24 if days else 1), at + 2

    def read_size(self, at: int) -> tuple[int, int] | None:
        """``1073741824``, ``512M``, ``1G``."""
        token = self.tokens[at]
        digits = token.value.rstrip("KMGTkmgt")
        unit = token.value[len(digits) :].upper()
        counted = digits.isascii() and digits.isdecimal() and len(unit) <= 1
        if token.kind in ("word", "number") and counted:
            return int(digits) * _SIZES[unit], at + 1
        self.miss(at, ["bytes", "512M", "1G"], "expected a size")
        return None

    def read_table(self, at: int) -> tuple[TableName, int] | None:
        if self.tokens[at].kind == "string":
            self.has_path = True
            return TableName(path=self.tokens[at].value), at + 1
        found = self._dotted(at, ("word", "name"), ["'a path'", "a table name"], "a table")
        if found is not None and len(found[0]) > 3:
            self.miss(at, ["'a path'"], "a table name has at most three parts")
            return None
        return None if found is None else (TableName(parts=found[0]), found[1])

    read_place, read_source, read_path = read_string, read_string, read_table

    def read_seconds(self, at: int) -> tuple[int, int] | None:
        amount = self.read_int(at)
        if amount is None or not self._is_one(at + 1, _SECONDS):
            return None
        minutes = self.tokens[at + 1].upper.startswith("MINUTE")
        return amount[0] * (60 if minutes else 1), at + 2

    def read_log(self, at: int) -> tuple[TableName, int] | None:
        found = self.read_string(at)
        return None if found is None else (TableName(path=found[0]), found[1])

    def read_name(self, at: int) -> tuple[str, int] | None:
        found = self._dotted(at, ("word", "name"), ["a name"], "a name")
        return None if found is None else (".".join(found[0]), found[1])

    def column(self, at: int) -> tuple[str, int] | None:
        kinds = ("word", "name", "string")
        found = self._dotted(at, kinds, ["a column name"], "a column")
        return None if found is None else (".".join(found[0]), found[1])

    def _dotted(
        self, at: int, kinds: Sequence[str], expected: Sequence[str], what: str
    ) -> tuple[tuple[str, ...], int] | None:
        parts: list[str] = []
        while self.tokens[at].kind in kinds:
            parts.append(self.tokens[at].value)
            if not self.tokens[at + 1].is_mark("."):
                return tuple(parts), at + 1
            at += 2
        self.miss(at, expected, f"expected {what}")
        return None

    def read_names(self, at: int) -> tuple[tuple[str, ...], int] | None:
        """``(a, b)`` or ``('a', 'b')``."""
        found = self._listed(at, self.column)
        return None if found is None else (tuple(found[0]), found[1])

    def read_pairs(self, at: int) -> tuple[dict[str, str], int] | None:
        """``('a' = 'b', c = 'd')``."""
        found = self._listed(at, self._pair)
        return None if found is None else (dict(found[0]), found[1])

    def read_modes(self, at: int) -> tuple[dict[str, str], int] | None:
        """``('a': 'text', 'b': 'ip')``."""
        found = self._listed(at, lambda place: self._pair(place, ":"))
        return None if found is None else (dict(found[0]), found[1])

    def _pair(self, at: int, mark: str = "=") -> tuple[tuple[str, str], int] | None:
        key = self.column(at)
        if key is None or not self._mark(key[1], mark):
            return None
        value = self.tokens[key[1] + 1]
        if value.kind in ("mark", "end", "marker"):
            self.miss(key[1] + 1, ["'value'"], "expected a value")
            return None
        return (key[0], value.value), key[1] + 2

    def _listed(
        self, at: int, one: Callable[[int], tuple[Any, int] | None]
    ) -> tuple[list[Any], int] | None:
        found: list[Any] = []
        mark = "("
        while self._mark(at, mark):
            item = one(at + 1)
            if item is None:
                return None
            found.append(item[0])
            at, mark = item[1], ","
            if self.tokens[at].is_mark(")"):
                return found, at + 1
        self.miss(at, [")"] if found else [])
        return None

    def read_purge(self, at: int) -> tuple[bool, int] | None:
        """``(PURGE)``, as Delta spells it, or the word alone."""
        opened = self.tokens[at].is_mark("(")
        if not self._is_one(at + opened, ["PURGE"]):
            return None
        after = at + opened + 1
        if opened and not self._mark(after, ")"):
            return None
        return True, after + opened

    def read_assignments(self, at: int) -> tuple[dict[str, str], int] | None:
        """``a = expression, b = expression``, up to WHERE."""
        found: dict[str, str] = {}
        while True:
            name = self.column(at)
            if name is None or not self._mark(name[1], "="):
                return None
            value = self._expression(name[1] + 1)
            if value is None:
                return None
            if name[0] in found:
                self.miss(at, ["another column"], f"column '{name[0]}' is set twice")
                return None
            found[name[0]], at = value
            if not self.tokens[at].is_mark(","):
                return found, at
            at += 1

    def _expression(self, at: int) -> tuple[str, int] | None:
        """The raw text up to a comma or WHERE, outside of brackets and CASE."""
        first, depth = at, 0
        while self.tokens[at].kind != "end":
            token = self.tokens[at]
            ends = token.is_mark(",") or token.is_mark(";") or token.upper == "WHERE"
            if depth == 0 and ends:
                break
            if token.kind == "mark":
                depth += {"(": 1, ")": -1}.get(token.text, 0)
            at += 1
        if at == first:
            self.miss(at, ["an expression"], "SET needs a value for each column")
            return None
        return self.text[self.tokens[first].start : self.tokens[at - 1].end].strip(), at

    def _raw(self, at: int, slot: Slot) -> tuple[str, int] | None:
        """The raw text up to the words of a following clause, outside of brackets."""
        first, depth = at, 0
        while self.tokens[at].kind != "end":
            words = tuple(t.upper for t in self.tokens[at : at + 2])
            stopped = any(words[: len(stop)] == stop for stop in slot.stops)
            if depth == 0 and (self.tokens[at].is_mark(";") or stopped):
                break
            if self.tokens[at].kind == "mark":
                depth += {"(": 1, ")": -1}.get(self.tokens[at].text, 0)
            at += 1
        if at == first:
            needed = "WHERE needs a predicate" if slot.kind == "predicate" else "expected a type"
            self.miss(at, [f"a {slot.kind}"], needed)
            return None
        return self.text[self.tokens[first].start : self.tokens[at - 1].end].strip(), at
