r"""The search language: text in, query AST out.

* Words stand side by side and all are required; ``AND`` and ``OR`` (also ``&&``, ``||``) join, OR
  binding weaker; ``NOT word`` and ``-word`` exclude, ``+word`` is the word; parentheses group.
  Only upper-case words are operators.
* ``word`` searches the default fields, ``field:word`` one field, ``field:(a b)`` a group in one
  field. With several default fields each word may be in any of them; a field that cannot hold the
  word (``abc`` in a number) is skipped, unless no field can.
* ``"a phrase"``, ``"a phrase"~2`` with moves, ``"a phr"*`` with the last word a prefix.
* ``pre*``, ``w?ld*``, ``*tail``, ``word~`` and ``word~2`` (fuzzy, one edit by default), ``word~2*``
  (a beginning that is fuzzy), ``/regex/``.
* ``field:[1 TO 5]``, ``field:{1 TO 5}`` without its ends, mixed brackets, ``*`` as an open end;
  ``field:>5``, ``>=``, ``<``, ``<=``; ``field: IN [a b "c d"]``; ``field:*`` has a value, and so
  says ``_exists_:field``. Dates may be computed: ``ts:[now-1d TO now]``, ``ts:>=now/d``.
* ``(a b c)@2`` needs at least two of its parts.
* ``x^2`` multiplies the score. ``*`` alone is every row; a blank query is no row.
* A backslash takes any character as it is; inside quotes it does so before ``"`` and itself.

Errors are ``QuerySyntaxError`` with the place, or ``UnknownColumnError`` with the fields there are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

import pyarrow as pa

from indextables.errors import PlanningError, QuerySyntaxError, require_characters
from indextables.expr import ast, timetext
from indextables.expr.barewords import Word
from indextables.expr.datemath import fixed_now
from indextables.expr.ipaddr import is_range
from indextables.expr.searchfields import BadLiteralError, SearchField, any_of
from indextables.expr.searchscope import SearchScope
from indextables.mapping import DocMapping

_BLANK = " \t\r\n\u3000"
_ENDS_WORD = _BLANK + '()"'
_DEEPEST = 64
_ADDRESS = re.compile(r"[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(?:/\d{1,3})?(?![^\s)])")
_COMPARISONS = (">=", "<=", ">", "<")


def quoted(text: str) -> str:
    """A search string for a text as it stands: a phrase of its words."""
    if not isinstance(text, str):
        raise PlanningError(f"a text to search for cannot be a {type(text).__name__}")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse_query(
    text: str,
    *,
    default_fields: Sequence[str],
    mapping: DocMapping,
    schema: pa.Schema,
    time_zone: str = "UTC",
    max_default_fields: int = 0,
    default_operator: str = "and",
) -> ast.Query:
    """The query a search string means; 0 puts no limit on the default fields.

    With the default operator ``or``, words side by side are not required, except those next to an
    ``AND`` or behind a ``+``.
    """
    require_characters(text)
    scope = SearchScope(mapping, schema, timetext.zone(time_zone))
    defaults = [scope.field(name) for name in default_fields]
    parser = _Parser(text, scope, _Target(tuple(defaults), named=False), max_default_fields)
    parser.joins_by_or = default_operator == "or"
    with fixed_now():
        return parser.parse()


@dataclass(frozen=True)
class _Target:
    """The fields a literal is asked of, and whether the query named them."""

    fields: tuple[SearchField, ...]
    named: bool


class _Parser:
    """Recursive descent; ``_at`` is the place of the next character."""

    def __init__(self, text: str, scope: SearchScope, target: _Target, limit: int) -> None:
        self._text = text
        self._scope = scope
        self._defaults = target
        self._limit = limit
        self._at = 0
        self._depth = 0
        self.joins_by_or = False

    def parse(self) -> ast.Query:
        self._skip()
        if self._at == len(self._text):
            return ast.MatchNone()
        query = self._either(self._defaults)
        self._skip()
        if self._at < len(self._text):
            self._fail(f"unexpected '{self._text[self._at]}'")
        return query

    # -- reading ----------------------------------------------------------------------------------

    def _fail(self, message: str, at: int | None = None, hint: str | None = None) -> NoReturn:
        place = self._at if at is None else at
        raise QuerySyntaxError(message, query=self._text, position=place, hint=hint)

    def _peek(self, ahead: int = 0) -> str:
        return self._text[self._at + ahead : self._at + ahead + 1]

    def _skip(self) -> None:
        while self._peek() and self._peek() in _BLANK:
            self._at += 1

    def _take(self, token: str) -> bool:
        if self._text.startswith(token, self._at):
            self._at += len(token)
            return True
        return False

    def _read_word(self, extra_ends: str = "") -> Word:
        word = Word(self._at)
        while char := self._peek():
            if char == "\\":
                self._escaped(word)
            elif (
                char in _ENDS_WORD
                or char in extra_ends
                or (char in "^~" and word.chars and self._ends_modifier(char))
            ):
                break
            else:
                word.add(char, plain=False)
                self._at += 1
        return word

    def _escaped(self, word: Word) -> None:
        char = self._peek(1)
        if not char:
            self._fail("a backslash at the end", hint="Double it to search for a backslash")
        word.add(char, plain=True)
        self._at += 2

    def _ends_modifier(self, sign: str) -> bool:
        """Whether ``~2`` or ``^2`` stands here rather than a plain character."""
        at = self._at + 1
        while self._text[at : at + 1].isdigit() or (sign == "^" and self._text[at : at + 1] == "."):
            at += 1
        following = self._text[at : at + 1]
        return not following or following in _BLANK + ")^" or (sign == "~" and following == "*")

    def _keyword(self, *words: str) -> bool:
        """Take an operator word, if one stands here alone."""
        for word in words:
            after = self._peek(len(word))
            apart = not after or after in _ENDS_WORD or not word.isalpha()
            if self._text.startswith(word, self._at) and apart:
                self._at += len(word)
                return True
        return False

    # -- boolean structure ------------------------------------------------------------------------

    def _either(self, target: _Target) -> ast.Query:
        parts = [self._all(target)]
        while True:
            self._skip()
            if not self._keyword("OR", "||"):
                break
            parts.append(self._all(target))
        return parts[0] if len(parts) == 1 else ast.Bool(should=tuple(parts))

    def _all(self, target: _Target) -> ast.Query:
        must: list[ast.Query] = []
        should: list[ast.Query] = []
        must_not: list[ast.Query] = []
        joined = False
        while True:
            excluded, required, query = self._signed(target)
            self._skip()
            following = self._keyword("AND", "&&")
            if excluded:
                must_not.append(query)
            elif self.joins_by_or and not (required or joined or following):
                should.append(query)
            else:
                must.append(query)
            joined = following
            if following:
                continue
            if not self._peek() or self._peek() == ")" or self._at_or():
                break
        if len(must) + len(should) == 1 and not must_not:
            return (must or should)[0]
        return ast.Bool(tuple(must), tuple(should), tuple(must_not))

    def _at_or(self) -> bool:
        start = self._at
        found = self._keyword("OR", "||")
        self._at = start
        return found

    def _signed(self, target: _Target) -> tuple[bool, bool, ast.Query]:
        """One clause, whether it is excluded, and whether a plus requires it."""
        excluded = required = False
        while True:
            self._skip()
            start = self._at
            if self._keyword("NOT"):
                excluded = not excluded
            elif self._peek() and self._peek() in "+-":
                excluded ^= self._peek() == "-"
                required |= self._peek() == "+"
                self._at += 1
                if not self._peek() or self._peek() in _BLANK + ")":
                    self._fail(
                        f"nothing after '{self._text[start]}'", start, "Quote it to search it"
                    )
            else:
                return excluded, required, self._boosted(target)

    def _boosted(self, target: _Target) -> ast.Query:
        query = self._primary(target)
        if self._peek() != "^":
            return query
        start = self._at
        self._at += 1
        number = self._digits(".")
        try:
            factor = float(number)
        except ValueError:
            self._fail("a boost is a number", start, "Write word^2")
        return ast.Boost(query, factor)

    def _digits(self, extra: str = "") -> str:
        start = self._at
        while self._peek() and (self._peek() in "0123456789" or self._peek() in extra):
            self._at += 1
        return self._text[start : self._at]

    def _primary(self, target: _Target) -> ast.Query:
        if not self._peek():
            self._fail("something is missing here")
        if self._peek() == ")":
            self._fail("unexpected ')'")
        if self._peek() == "(":
            return self._group(target)
        named = self._field_name()
        if named is None:
            return self._value(target)
        self._skip()
        if named.text == "*" and not any(named.plain):
            if self._take("*"):
                return ast.MatchAll()
            self._fail("'*:' takes only '*'", named.start)
        if not self._peek() or self._peek() == ")":
            self._fail(f"nothing after '{named.text}:'")
        if named.is_keyword("_exists_"):
            return self._scope.field(self._read_word().text).exists()
        return self._value_in(named)

    def _value_in(self, named: Word) -> ast.Query:
        target = _Target((self._scope.field(named.text),), named=True)
        return self._group(target) if self._peek() == "(" else self._value(target)

    def _group(self, target: _Target) -> ast.Query:
        start = self._at
        self._at += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            self._fail(f"more than {_DEEPEST} parentheses inside each other", start)
        self._skip()
        if self._peek() == ")":
            self._fail("empty parentheses", start)
        query = self._either(target)
        self._skip()
        if not self._take(")"):
            self._fail("no ')' for this '('", start)
        self._depth -= 1
        return self._at_least(query) if self._peek() == "@" else query

    def _at_least(self, query: ast.Query) -> ast.Query:
        """A group of which only so many parts are needed."""
        start = self._at
        self._at += 1
        digits = self._digits()
        if not digits:
            self._fail("a group needs a number after '@'", start, "Write (a b c)@2")
        whole = query if isinstance(query, ast.Bool) else ast.Bool(must=(query,))
        parts, must_not = (*whole.must, *whole.should), whole.must_not
        if len(parts) < int(digits):
            return ast.MatchNone()
        return ast.Bool(should=parts, must_not=must_not, minimum_should_match=int(digits))

    def _field_name(self) -> Word | None:
        """The name before a colon, consumed with it; ``None`` and nothing consumed otherwise."""
        start = self._at
        if self._peek() and self._peek() in '"/[{<>':
            return None
        word = self._read_word(":")
        if word.chars and self._take(":") and not self._is_address(start):
            return word
        self._at = start
        return None

    def _is_address(self, start: int) -> bool:
        """Do the colons from here on belong to an IPv6 address that may be asked for?"""
        if not any(field.mapping.type == "ip" for field in self._defaults.fields):
            return False
        found = _ADDRESS.match(self._text, start)
        return found is not None and is_range(found[0])

    # -- values -----------------------------------------------------------------------------------

    def _value(self, target: _Target) -> ast.Query:
        start = self._at
        if not target.named:
            self._check_limit()
        if self._peek() == '"':
            return self._phrase(target, start)
        if self._peek() and self._peek() in "[{":
            return self._range(target, start)
        for sign in _COMPARISONS:
            if self._take(sign):
                return self._comparison(target, sign, start)
        if self._peek() == "/" and (pattern := self._regex()) is not None:
            return self._ask(target, start, lambda f: f.regex(pattern))
        word = self._read_word()
        if word.is_keyword("IN") and self._set_follows():
            return self._set(target, start)
        return self._word(target, word)

    def _check_limit(self) -> None:
        count = len(self._defaults.fields)
        if self._limit and count > self._limit:
            raise PlanningError(
                f"the query would search {count} fields, more than the limit of {self._limit}",
                hint="Name a field (field:word), or raise "
                "spark.indextables.indexquery.indexall.maxUnqualifiedFields",
            )
        if not count:
            self._fail("there is no default field", hint="Write field:word")

    def _ask(
        self, target: _Target, start: int, question: Callable[[SearchField], ast.Query]
    ) -> ast.Query:
        """The question put to each field; fields that cannot answer are skipped."""
        parts: list[ast.Query] = []
        first: BadLiteralError | None = None
        for one in target.fields:
            try:
                parts.append(question(one))
            except BadLiteralError as error:
                first = first or error
        if first is not None and (not parts or len(target.fields) == 1):
            self._fail(str(first), start)
        return any_of(parts)

    def _word(self, target: _Target, word: Word) -> ast.Query:
        if not word.chars:
            self._fail(f"unexpected '{self._peek()}'" if self._peek() else "something is missing")
        if word.text == "*" and not word.plain[0]:
            if not target.named:
                return ast.MatchAll()
            return self._ask(target, word.start, SearchField.exists)
        if self._peek() == "~":
            return self._fuzzy(target, word)
        if word.is_pattern:
            return self._ask(target, word.start, lambda f: f.wildcard(word.pattern))
        if word.is_keyword("AND", "OR", "NOT"):
            self._fail(f"'{word.text}' has nothing to join", word.start, "Quote it to search it")
        return self._ask(target, word.start, lambda f: f.literal(word.text))

    def _fuzzy(self, target: _Target, word: Word) -> ast.Query:
        self._at += 1
        digits = self._digits()
        distance = int(digits) if digits else 1
        if distance > 2:
            self._fail("a fuzzy word allows at most 2 edits", self._at - len(digits))
        if word.is_pattern:
            self._fail("a word cannot be fuzzy and have wildcards", word.start)
        starts = self._take("*")
        return self._ask(target, word.start, lambda f: f.fuzzy(word.text, distance, prefix=starts))

    def _phrase(self, target: _Target, start: int) -> ast.Query:
        text = self._quoted()
        slop, prefix = 0, self._take("*")
        if not prefix and self._take("~"):
            digits = self._digits()
            if not digits:
                self._fail("a phrase needs a number after '~'")
            slop = int(digits)
        return self._ask(target, start, lambda f: f.phrase(text, slop, prefix))

    def _quoted(self) -> str:
        start = self._at
        self._at += 1
        chars: list[str] = []
        while char := self._peek():
            self._at += 1
            if char == '"':
                return "".join(chars)
            if char == "\\" and self._peek() in ('"', "\\"):
                char = self._peek()
                self._at += 1
            chars.append(char)
        self._fail("no closing quote", start)

    def _regex(self) -> str | None:
        """The body of ``/.../``; ``None`` for a path such as ``/var/log``."""
        at = self._at + 1
        while at < len(self._text) and self._text[at] != "/":
            at += 2 if self._text[at] == "\\" else 1
        after = self._text[at + 1 : at + 2]
        if at >= len(self._text) or (after and after not in _BLANK + ")^") or at == self._at + 1:
            return None
        body = self._text[self._at + 1 : at].replace("\\/", "/")
        self._at = at + 1
        return body

    def _comparison(self, target: _Target, sign: str, start: int) -> ast.Query:
        self._skip()
        end = self._bound(")")
        if end is None:
            self._fail("a comparison needs a value")
        closed = sign.endswith("=")
        if sign.startswith(">"):
            return self._ask(target, start, lambda f: f.range(end, None, closed, True))
        return self._ask(target, start, lambda f: f.range(None, end, True, closed))

    def _range(self, target: _Target, start: int) -> ast.Query:
        with_lower = self._peek() == "["
        self._at += 1
        lower = self._bound("]}")
        if not self._keyword("TO"):
            self._fail("a range is written [a TO b]", hint="TO is upper-case")
        upper = self._bound("]}")
        with_upper = self._peek() == "]"
        if not (self._take("]") or self._take("}")):
            self._fail("the range has no end", start)
        return self._ask(target, start, lambda f: f.range(lower, upper, with_lower, with_upper))

    def _bound(self, ends: str) -> str | None:
        """One end of a range; ``*`` is open."""
        self._skip()
        if self._peek() == '"':
            text = self._quoted()
        else:
            word = self._read_word(ends)
            if not word.chars:
                self._fail("a value is missing")
            if word.text == "*" and not word.plain[0]:
                self._skip()
                return None
            text = word.text
        self._skip()
        return text

    def _set_follows(self) -> bool:
        start = self._at
        self._skip()
        found = self._peek() == "["
        if not found:
            self._at = start
        return found

    def _set(self, target: _Target, start: int) -> ast.Query:
        self._at += 1
        items: list[str] = []
        self._skip()
        while not self._take("]"):
            if not self._peek():
                self._fail("the set has no ']'", start)
            items.append(self._quoted() if self._peek() == '"' else self._item())
            self._skip()
        return self._ask(target, start, lambda f: f.one_of(items))

    def _item(self) -> str:
        word = self._read_word("]")
        if not word.chars:
            self._fail(f"unexpected '{self._peek()}'")
        return word.text
