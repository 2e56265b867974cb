"""From text to a command: a recursive descent over the tokens, clause order fixed.

``is_command`` looks at the first words only and says whether a statement is ours; everything else
belongs to Spark, untouched. ``DELETE FROM``, ``TRUNCATE TABLE``, ``CREATE INDEX``, ``DROP INDEX``
and ``ALTER TABLE`` are shared words: they are ours only when the table is a quoted path, since
Spark never accepts one there. A WHERE clause is taken as raw text, up to the next clause word
outside of quotes and parentheses; the planner parses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from indextables.errors import CommandSyntaxError, require_characters
from indextables.expr.lexer import Token, first_bad, tokenize
from indextables.sql import commands as c

_OURS = ("INDEXTABLES", "TANTIVY4SPARK")
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def is_command(text: str) -> bool:
    """Is this statement one of ours?"""
    tokens = tokenize(text)
    if first_bad(tokens) is not None:
        return False
    words = [t.upper for t in tokens[:3]] + ["", "", ""]
    first, second = words[0], words[1]
    if (first, second) in _STARTS:
        return True
    if first in _WITH_NAME and second in _OURS:
        return True
    return _shared_word_with_path(tokens)


_STARTS = {
    ("MERGE", "SPLITS"),
    ("PURGE", "INDEXTABLE"),
    ("REPAIR", "INDEXFILES"),
    ("INDEX", "CROSSREFERENCES"),
    ("INDEX", "SPLITS"),
}
_WITH_NAME = {
    "DROP", "CHECKPOINT", "COMPACT", "TRUNCATE", "DESCRIBE", "INVALIDATE", "FLUSH", "PREWARM",
    "DOCTOR", "RESTORE",
}  # fmt: skip


def _shared_word_with_path(tokens: list[Token]) -> bool:
    words = [t.upper for t in tokens]
    first = words[0]
    if first in ("REINDEX", "DOCTOR", "RESTORE"):
        return len(tokens) > 1 and tokens[1].kind == "string"
    if words[:2] in (["DELETE", "FROM"], ["TRUNCATE", "TABLE"], ["ALTER", "TABLE"]):
        return tokens[2].kind == "string"
    if words[:2] in (["CREATE", "INDEX"], ["DROP", "INDEX"]) and "ON" in words[2:4]:
        after = words.index("ON") + 1
        return tokens[after].kind == "string"
    return False


def parse(text: str) -> c.Command:
    """The command of a statement; ``CommandSyntaxError`` points at the first wrong word."""
    parser = _Parser(text)
    command = parser.statement()
    parser.skip_mark(";")
    if parser.token.kind != "end":
        parser.fail_at_the_furthest()
    return command


def _is_count(digits: str) -> bool:
    return digits.isascii() and digits.isdecimal()


class _Parser:
    def __init__(self, text: str) -> None:
        require_characters(text)
        self.text = text
        self.tokens = tokenize(text)
        if (bad := first_bad(self.tokens)) is not None:
            raise CommandSyntaxError(bad.value, text=text, position=bad.start)
        self.at = 0
        self.missed: dict[int, list[str]] = {}
        """Words that would have been understood, by the place they would have had."""

    # -- words ----------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def fail(self, message: str, expected: Iterable[str]) -> None:
        raise CommandSyntaxError(
            message, text=self.text, position=self.token.start, expected=list(expected)
        )

    def next(self) -> Token:
        token = self.token
        if token.kind != "end":
            self.at += 1
        return token

    def peek(self, *words: str) -> bool:
        found = [t.upper for t in self.tokens[self.at : self.at + len(words)]]
        return found == list(words)

    def accept(self, *words: str) -> bool:
        if self.peek(*words):
            self.at += len(words)
            return True
        there = 0
        while self.tokens[self.at + there].upper == words[there]:
            there += 1
        self.missed.setdefault(self.at + there, []).append(words[there])
        return False

    def fail_at_the_furthest(self) -> None:
        """Nothing understands the text here, or the word after a clause that began here."""
        place = max([self.at, *self.missed])
        words = list(dict.fromkeys(self.missed.get(place, [])))
        if place == self.at:
            words += ["the end"]
        self.at = place
        self.fail(f"unexpected {self.token.value or 'end'!r}", words)

    def expect(self, *words: str) -> None:
        for word in words:
            if not self.accept(word):
                shown = self.token.value or "the end"
                self.fail(f"expected {word}, found {shown!r}", [word])

    def choose(self, *options: str) -> str:
        """Take one of several words."""
        found = self.token.upper
        if found not in options:
            self.fail(f"unexpected {self.token.value or 'end'!r}", options)
        self.next()
        return found

    def skip_mark(self, mark: str) -> bool:
        if self.token.kind == "mark" and self.token.value == mark:
            self.next()
            return True
        return False

    def expect_mark(self, mark: str) -> None:
        if not self.skip_mark(mark):
            self.fail(f"expected {mark!r}, found {self.token.value or 'the end'!r}", [mark])

    # -- pieces ---------------------------------------------------------------------------------

    def string(self, what: str) -> str:
        if self.token.kind != "string":
            self.fail(f"expected {what} in quotes", [f"'{what}'"])
        return self.next().value

    def integer(self, what: str) -> int:
        if self.token.kind != "number" or not self.token.value.isdecimal():
            self.fail(f"expected a whole number for {what}", ["a number"])
        return int(self.next().value)

    def table(self) -> c.TableName:
        if self.token.kind == "string":
            return c.TableName(path=self.next().value)
        parts = [self._name()]
        while self.skip_mark("."):
            parts.append(self._name())
        if len(parts) > 3:
            self.fail("a table name has at most three parts", ["'a path'"])
        return c.TableName(parts=tuple(parts))

    def _name(self) -> str:
        if self.token.kind not in ("word", "name"):
            self.fail("expected a table", ["'a path'", "a table name"])
        return self.next().value

    def names(self) -> tuple[str, ...]:
        """``(a, b)`` or ``('a', 'b')``."""
        self.expect_mark("(")
        found = [self._column()]
        while self.skip_mark(","):
            found.append(self._column())
        self.expect_mark(")")
        return tuple(found)

    def _column(self) -> str:
        if self.token.kind not in ("word", "name", "string"):
            self.fail("expected a column", ["a column name"])
        parts = [self.next().value]
        while self.skip_mark("."):
            parts.append(self.next().value)
        return ".".join(parts)

    def size(self) -> int:
        """``1073741824``, ``512M``, ``1G``."""
        token = self.token
        digits = token.value.rstrip("KMGTkmgt")
        unit = token.value[len(digits) :].upper()
        if token.kind not in ("word", "number") or not _is_count(digits) or len(unit) > 1:
            self.fail("expected a size", ["bytes", "512M", "1G"])
        self.next()
        return int(digits) * _SIZES[unit]

    def hours(self, what: str) -> int:
        amount = self.integer(what)
        unit = self.choose("DAYS", "DAY", "HOURS", "HOUR")
        return amount * 24 if unit.startswith("DAY") else amount

    def where(self, *stops: tuple[str, ...]) -> str | None:
        """The raw predicate after WHERE, up to one of the stop words."""
        if not self.accept("WHERE"):
            return None
        start, depth = self.token.start, 0
        while self.token.kind != "end":
            if depth == 0 and (self.token.value == ";" or any(self.peek(*s) for s in stops)):
                break
            if self.token.kind == "mark":
                depth += {"(": 1, ")": -1}.get(self.token.value, 0)
            self.next()
        end = self.tokens[self.at - 1].end if self.at else start
        predicate = self.text[start:end].strip() if end > start else ""
        if not predicate:
            self.fail("WHERE needs a predicate", ["a predicate"])
        return predicate

    # -- statements -----------------------------------------------------------------------------

    def statement(self) -> c.Command:
        first = self.token.upper
        handler = _STATEMENTS.get(first)
        if handler is None:
            self.fail("not a command of indextables", sorted(_STATEMENTS))
            raise AssertionError
        self.next()
        return handler(self)

    def ours(self) -> None:
        if self.token.upper not in _OURS:
            self.fail(f"expected INDEXTABLES, found {self.token.value!r}", ["INDEXTABLES"])
        self.next()

    def merge(self) -> c.Command:
        self.expect("SPLITS")
        table = self.table()
        stops = (("TARGET", "SIZE"), ("MAX", "DEST"), ("MAX", "SOURCE"), ("PRECOMMIT",))
        where = self.where(*stops)
        size = self.size() if self.accept("TARGET", "SIZE") else None
        dest = self.integer("MAX DEST SPLITS") if self.accept("MAX", "DEST", "SPLITS") else None
        source = None
        if self.accept("MAX", "SOURCE", "SPLITS", "PER", "MERGE"):
            source = self.integer("MAX SOURCE SPLITS PER MERGE")
        return c.MergeSplits(table, where, size, dest, source, self.accept("PRECOMMIT"))

    def purge(self) -> c.Command:
        self.expect("INDEXTABLE")
        table = self.table()
        older = self.hours("OLDER THAN") if self.accept("OLDER", "THAN") else None
        log = None
        if self.accept("TRANSACTION", "LOG", "RETENTION"):
            log = self.hours("TRANSACTION LOG RETENTION")
        return c.Purge(table, older, log, self.accept("DRY", "RUN"))

    def drop(self) -> c.Command:
        if self.accept("INDEX"):
            self.accept("IF", "EXISTS")
            if not self.peek("ON"):
                self._name()
            self.expect("ON")
            return c.DropIndex(self.table(), self.names())
        self.ours()
        self.expect("PARTITIONS", "FROM")
        table = self.table()
        where = self.where()
        if where is None:
            self.fail("DROP PARTITIONS needs WHERE", ["WHERE"])
        return c.DropPartitions(table, where or "")

    def checkpoint(self) -> c.Command:
        self.ours()
        return c.Checkpoint(self.table())

    def compact(self) -> c.Command:
        self.ours()
        return c.Checkpoint(self.table(), compact=True)

    def truncate(self) -> c.Command:
        if self.accept("TABLE"):
            return c.Truncate(self.table())
        self.ours()
        self.expect("TIME", "TRAVEL")
        return c.TruncateTimeTravel(self.table(), self.accept("DRY", "RUN"))

    def repair(self) -> c.Command:
        self.expect("INDEXFILES", "TRANSACTION", "LOG")
        source = self.string("the log to repair")
        self.expect("AT", "LOCATION")
        return c.RepairLog(source, self.string("the place of the repaired log"))

    def index(self) -> c.Command:
        if self.choose("CROSSREFERENCES", "SPLITS") == "SPLITS":
            return self._index_splits()
        self.expect("FOR")
        table = self.table()
        stops = (("FILTER", "TYPE"), ("FORCE", "REBUILD"), ("MAX", "XREF"), ("DRY", "RUN"))
        where = self.where(*stops)
        kind = self.choose("FUSE8", "FUSE16").lower() if self.accept("FILTER", "TYPE") else None
        force = self.accept("FORCE", "REBUILD")
        most = self.integer("MAX XREF BUILDS") if self.accept("MAX", "XREF", "BUILDS") else None
        return c.IndexCrossReferences(table, where, kind, force, most, self.accept("DRY", "RUN"))

    def _index_splits(self) -> c.Command:
        self.expect("FOR")
        table = self.table()
        columns = self.names() if self.token.value == "(" else ()
        where = self.where(("FORCE", "REBUILD"), ("DRY", "RUN"))
        force = self.accept("FORCE", "REBUILD")
        return c.IndexSplits(table, columns, where, force, self.accept("DRY", "RUN"))

    def describe(self) -> c.Command:
        self.ours()
        kind = self.choose(*_DESCRIBE)
        return _DESCRIBE[kind](self)

    def describe_log(self) -> c.Command:
        self.expect("LOG")
        table = self.table()
        everything = self.accept("INCLUDE", "ALL")
        xrefs = self.accept("XREFS")
        limit = self.integer("LIMIT") if self.accept("LIMIT") else None
        return c.DescribeLog(table, everything, xrefs, limit)

    def describe_sizes(self) -> c.Command:
        self.expect("SIZES")
        return c.DescribeComponentSizes(self.table(), self.where())

    def describe_stats(self) -> c.Command:
        self.expect("COVERAGE")
        return c.DescribeStatsCoverage(self.table())

    def describe_disk(self) -> c.Command:
        self.expect("CACHE")
        return c.DescribeDiskCache()

    def describe_storage(self) -> c.Command:
        self.expect("STATS")
        return c.DescribeStorageStats()

    def invalidate(self) -> c.Command:
        self.ours()
        self.expect("TRANSACTION", "LOG", "CACHE")
        return c.InvalidateCache(self.table() if self.accept("FOR") else None)

    def flush(self) -> c.Command:
        self.ours()
        kind = self.choose("DISK", "SEARCHER")
        self.expect("CACHE")
        return c.FlushDiskCache() if kind == "DISK" else c.FlushSearcherCache()

    def prewarm(self) -> c.Command:
        self.ours()
        self.expect("CACHE")
        table = self.table()
        segments = self.names() if self.accept("FOR", "SEGMENTS") else ()
        fields = self.names() if self.accept("ON", "FIELDS") else ()
        parallelism = None
        if self.accept("WITH", "PERWORKER", "PARALLELISM", "OF"):
            parallelism = self.integer("PARALLELISM")
        where = self.where(("ASYNC", "MODE"))
        upper = tuple(s.upper() for s in segments)
        return c.Prewarm(table, upper, fields, parallelism, where, self.accept("ASYNC", "MODE"))

    def delete(self) -> c.Command:
        self.expect("FROM")
        table = self.table()
        where = self.where()
        if where is None:
            self.fail(
                "DELETE needs WHERE; all rows go with TRUNCATE TABLE or WHERE TRUE", ["WHERE"]
            )
        return c.Delete(table, where or "")

    def restore(self) -> c.Command:
        if self.token.upper in _OURS:
            self.next()
        table = self.table()
        self.expect("TO")
        if self.choose("VERSION", "TIMESTAMP") == "VERSION":
            self.accept("AS", "OF")
            return c.Restore(table, version=self.integer("VERSION"))
        self.accept("AS", "OF")
        return c.Restore(table, timestamp=self.string("a timestamp"))

    def doctor(self) -> c.Command:
        if self.token.upper in _OURS:
            self.next()
        return c.Doctor(self.table())

    def alter(self) -> c.Command:
        self.expect("TABLE")
        table = self.table()
        self.expect("SET", "TBLPROPERTIES")
        self.expect_mark("(")
        found: dict[str, str] = {}
        while True:
            key = self._column()
            self.expect_mark("=")
            found[key] = self.next().value
            if not self.skip_mark(","):
                break
        self.expect_mark(")")
        return c.SetProperties(table, found)

    def create(self) -> c.Command:
        self.expect("INDEX")
        name = None if self.peek("ON") else self._name()
        self.expect("ON")
        return c.CreateIndex(self.table(), self.names(), name)

    def reindex(self) -> c.Command:
        table = self.table()
        columns: tuple[str, ...] = ()
        if self.accept("ON"):
            self.accept("DATA")
            columns = self.names()
        return c.Reindex(table, columns)


_STATEMENTS: dict[str, Callable[[_Parser], c.Command]] = {
    "MERGE": _Parser.merge,
    "PURGE": _Parser.purge,
    "DROP": _Parser.drop,
    "CHECKPOINT": _Parser.checkpoint,
    "COMPACT": _Parser.compact,
    "TRUNCATE": _Parser.truncate,
    "REPAIR": _Parser.repair,
    "INDEX": _Parser.index,
    "DESCRIBE": _Parser.describe,
    "INVALIDATE": _Parser.invalidate,
    "FLUSH": _Parser.flush,
    "PREWARM": _Parser.prewarm,
    "DELETE": _Parser.delete,
    "RESTORE": _Parser.restore,
    "DOCTOR": _Parser.doctor,
    "ALTER": _Parser.alter,
    "CREATE": _Parser.create,
    "REINDEX": _Parser.reindex,
}
_DESCRIBE: dict[str, Callable[[_Parser], c.Command]] = {
    "STATE": lambda p: c.DescribeState(p.table()),
    "TRANSACTION": _Parser.describe_log,
    "COMPONENT": _Parser.describe_sizes,
    "STATS": _Parser.describe_stats,
    "INDEXES": lambda p: c.DescribeIndexes(p.table()),
    "ENVIRONMENT": lambda p: c.DescribeEnvironment(),
    "DISK": _Parser.describe_disk,
    "STORAGE": _Parser.describe_storage,
}
