"""What a word of a search string means in one field: the typed half of the search language.

A literal becomes the AST node its field's kind asks for:

* tokenised text: its tokens; one is a ``Term``, several are a ``Phrase``, none match nothing.
  A token beyond the field's limit is in no index, so a literal with one matches nothing;
* exact text: the whole literal, as it is;
* numbers: exact; ``1.5`` is in no integer field, a range ending there ends at the next integer;
* dates and timestamps: a day, month or year names all its moments (``ts:2024-01-15`` is that whole
  day in the session's zone, ``ts:>2024`` starts with 2025); with a time of day it is that instant;
  ``now-1d/d`` and the like are computed (``datemath``);
* ip: an address, a CIDR block or trailing wildcards (``10.0.*.*``);
* bool: ``true`` and ``false``; binary: hexadecimal digits;
* JSON: tokens at a path. A path inside a struct has a type and is read by it, any other may hold
  words or numbers, and both are asked for.

A wildcard, fuzzy word or regular expression is matched against whole terms; wildcards and fuzzy
words are first lower-cased where the analyzer does that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr import ast, datemath, jsonpaths, timetext
from indextables.expr.analyzers import analyze, changed_word
from indextables.expr.ipaddr import address_range, format_address, parse_address
from indextables.expr.leaves import is_discrete
from indextables.expr.literals import Kind, Scalar, Span, domain, span_of
from indextables.mapping import DEFAULT_TOKEN_LENGTH, FOLDING, FieldMapping
from indextables.types import type_name

_MOMENT = re.compile(r"(\d{4})(?:-(\d\d?)(?:-(\d\d?)([ T].+)?)?)?$", re.S)
_NEGATIVE = re.compile(r"-\d")
_WITHOUT_LIMIT = 1 << 30


class BadLiteralError(Exception):
    """The text is no value of the field; the parser knows where it stands."""


@dataclass(frozen=True)
class SearchField:
    """A column or a JSON path, ready to be asked."""

    name: str
    mapping: FieldMapping
    dtype: pa.DataType | None
    tz: tzinfo

    @property
    def is_json(self) -> bool:
        return self.mapping.type == "json"

    @property
    def is_text(self) -> bool:
        """Whether terms are words that patterns can be matched against."""
        return self.mapping.type == "text" or (self.is_json and self._is_untyped)

    @property
    def _is_untyped(self) -> bool:
        return self.dtype is None or pa.types.is_string(self.dtype)

    @property
    def _is_string_inside(self) -> bool:
        """A string of a struct or map: digits in it are words, never a number."""
        return self.name != self.mapping.name and self.dtype is not None

    @property
    def tokenizer(self) -> str:
        return "default" if self.is_json else self.mapping.tokenizer or "default"

    def describe(self) -> str:
        kind = {"json": "json", "ip": "ip"}.get(self.mapping.type)
        return f"'{self.name}' is {kind or type_name(self.dtype)}"

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text; none if one of them is too long to be in an index."""
        limit = DEFAULT_TOKEN_LENGTH if self.is_json else self.mapping.token_length
        found = analyze(self.tokenizer, text, limit)
        if len(text.encode()) > limit and len(analyze(self.tokenizer, text, _WITHOUT_LIMIT)) != len(
            found
        ):
            return []
        return found

    # -- words and phrases ------------------------------------------------------------------------

    def literal(self, text: str) -> ast.Query:
        """Rows that hold the literal."""
        if self.mapping.type == "text":
            return self.phrase(text)
        if self.is_json and self._is_untyped:
            return self.phrase(text) if self._is_string_inside else self._json_words(text)
        if self.mapping.type == "null":
            return ast.MatchNone()
        return self._value(text)

    def phrase(self, text: str, slop: int = 0, prefix: bool = False) -> ast.Query:
        """Rows that hold the quoted text."""
        if not self.is_text:
            if slop or prefix:
                raise BadLiteralError(f"{self.describe()}: it has no phrases")
            return self.literal(text)
        if self.mapping.is_exact_text:
            if prefix:
                return ast.Wildcard(self.name, escape_wildcards(text) + "*")
            return ast.Term(self.name, text)
        return self._phrase_of(tuple(self.tokens(text)), slop, prefix)

    def _phrase_of(self, words: tuple[str, ...], slop: int, prefix: bool) -> ast.Query:
        if not words:
            return ast.MatchNone()
        if len(words) > 1:
            return ast.Phrase(self.name, words, slop, prefix)
        if prefix:
            return ast.Wildcard(self.name, escape_wildcards(words[0]) + "*")
        return ast.Term(self.name, words[0])

    def _json_words(self, text: str) -> ast.Query:
        words = tuple(self.tokens(text))
        asked = [a for a in jsonpaths.alternatives(text) if len(a) == 1 or a == words]
        if _NEGATIVE.match(text):
            asked = [a for a in asked if a != words]
        return any_of([self._phrase_of(a, 0, False) for a in asked if words])

    # -- patterns ---------------------------------------------------------------------------------

    def wildcard(self, pattern: str, *, folded: bool = True) -> ast.Query:
        """``pattern`` has ``*`` and ``?`` as wildcards, a backslash before plain ones."""
        if self.mapping.type == "ip":
            return self._value(pattern)
        self._need_text("wildcards")
        return ast.Wildcard(self.name, self._fold(pattern) if folded else pattern)

    def fuzzy(
        self, text: str, distance: int, *, prefix: bool = False, same: int = 0, cut: bool = True
    ) -> ast.Query:
        """Terms within an edit distance; swapping two neighbours is one edit.

        With ``prefix`` a beginning of the term; the first ``same`` characters may not differ.
        With ``cut=False`` the text is one term as it is.
        """
        self._need_text("fuzzy words")
        words = self.tokens(text) if cut and not self.mapping.is_exact_text else [text]
        if len(words) > 1:
            raise BadLiteralError(f"'{text}' is {len(words)} words; only one word can be fuzzy")
        if not words:
            return ast.MatchNone()
        if distance == 0:
            start = ast.Wildcard(self.name, escape_wildcards(words[0]) + "*")
            return start if prefix else ast.Term(self.name, words[0])
        return ast.Fuzzy(self.name, words[0], distance, prefix, same)

    def regex(self, pattern: str) -> ast.Query:
        """Terms that a regular expression matches as a whole."""
        self._need_text("regular expressions")
        try:
            pc.match_substring_regex(pa.array([""]), f"^(?:{pattern})$")
        except pa.ArrowInvalid as error:
            raise BadLiteralError(f"bad regular expression: {error}") from error
        return ast.Regex(self.name, pattern)

    def _need_text(self, what: str) -> None:
        if not self.is_text:
            raise BadLiteralError(f"{what} need a text field; {self.describe()}")

    def _fold(self, text: str) -> str:
        if self.tokenizer in ("raw", "whitespace"):
            return text
        lowered = "".join(map(fold_character, text))
        if self.tokenizer != FOLDING:
            return lowered
        return "".join(c if c in "*?\\" else changed_word(FOLDING, c) for c in lowered)

    # -- sets, ranges, presence -------------------------------------------------------------------

    def one_of(self, texts: list[str]) -> ast.Query:
        """Rows that hold any of the literals."""
        parts = [self.literal(t) for t in texts]
        if parts and all(isinstance(p, ast.Term) for p in parts):
            values = dict.fromkeys(p.value for p in parts if isinstance(p, ast.Term))
            return ast.TermSet(self.name, tuple(values))
        return any_of(parts)

    def exists(self) -> ast.Query:
        return ast.Exists(self.name)

    def range(
        self, lower: str | None, upper: str | None, with_lower: bool, with_upper: bool
    ) -> ast.Query:
        """Rows with a value between two ends; ``None`` is open."""
        if lower is None and upper is None:
            return self.exists()
        if self.mapping.is_exact_text:
            return ast.Range(self.name, lower, upper, with_lower, with_upper)
        if self.mapping.type == "ip":
            return self._ip_range(lower, upper, with_lower, with_upper)
        if self.mapping.type == "text":
            raise BadLiteralError(f"a range needs whole values; '{self.name}' is cut into words")
        if self.mapping.type == "null":
            return ast.MatchNone()
        if self.is_json and self._is_untyped:
            low, high = (None if t is None else self._plain_number(t) for t in (lower, upper))
            return ast.Range(self.name, low, high, with_lower, with_upper)
        return self._typed_range(lower, upper, with_lower, with_upper)

    def _ip_range(
        self, lower: str | None, upper: str | None, with_lower: bool, with_upper: bool
    ) -> ast.Query:
        for text in (lower, upper):
            if text is not None and parse_address(text) is None:
                raise BadLiteralError(f"'{text}' is not an address; {self.describe()}")
        return ast.Range(self.name, lower, upper, with_lower, with_upper)

    def _typed_range(
        self, lower: str | None, upper: str | None, with_lower: bool, with_upper: bool
    ) -> ast.Query:
        assert self.dtype is not None
        if not is_discrete(self.dtype):
            low, high = (None if t is None else self._scalar_value(t) for t in (lower, upper))
            return ast.Range(self.name, low, high, with_lower, with_upper)
        first, last = domain(self.dtype)
        if lower is not None:
            span = self._span(lower)
            first = max(first, span.low if with_lower else max(span.high + 1, span.low))
        if upper is not None:
            span = self._span(upper)
            last = min(last, span.high if with_upper else min(span.low - 1, span.high))
        if first > last:
            return ast.MatchNone()
        return ast.Range(
            self.name, None if lower is None else first, None if upper is None else last
        )

    # -- typed values -----------------------------------------------------------------------------

    def _value(self, text: str) -> ast.Query:
        if self.mapping.type == "ip":
            return self._address(text)
        assert self.dtype is not None
        if not is_discrete(self.dtype):
            return ast.Term(self.name, self._scalar_value(text))
        span = self._span(text)
        low, high = domain(self.dtype)
        if span.low > span.high or span.low > high or span.high < low:
            return ast.MatchNone()
        timed = self.is_json and pa.types.is_temporal(self.dtype)
        if span.low == span.high and not timed:
            if self.is_json and pa.types.is_decimal(self.dtype):
                return ast.Term(self.name, jsonpaths.decimal_text(Decimal(text)))
            return ast.Term(self.name, span.low)
        return ast.Range(self.name, span.low, span.high)

    def _address(self, text: str) -> ast.Query:
        try:
            low, high = address_range(text)
        except Exception as error:
            raise BadLiteralError(str(getattr(error, "message", error))) from error
        if low == high:
            return ast.Term(self.name, format_address(low))
        return ast.Range(self.name, format_address(low), format_address(high))

    def _scalar_value(self, text: str) -> Any:
        """A bool, double or binary value."""
        assert self.dtype is not None
        if pa.types.is_boolean(self.dtype):
            if text.lower() in ("true", "false"):
                return text.lower() == "true"
            raise BadLiteralError(f"'{text}' is not true or false; {self.describe()}")
        if pa.types.is_floating(self.dtype):
            return _double(text, self.describe())
        if pa.types.is_binary(self.dtype):
            try:
                return bytes.fromhex(text)
            except ValueError:
                raise BadLiteralError(f"'{text}' is not hexadecimal; {self.describe()}") from None
        raise BadLiteralError(f"{self.describe()}: name a field inside it")

    def _plain_number(self, text: str) -> int | float:
        try:
            return int(text)
        except ValueError:
            return _double(text, self.describe())

    def _span(self, text: str) -> Span:
        assert self.dtype is not None
        if pa.types.is_temporal(self.dtype):
            return moment_span(text, self.dtype, self.tz, self.describe())
        try:
            exact = Fraction(Decimal(text))
        except (InvalidOperation, ValueError, OverflowError):
            raise BadLiteralError(f"'{text}' is not a number; {self.describe()}") from None
        return span_of(Scalar(Kind.DECIMAL, exact), self.dtype, self.tz)


def moment_span(text: str, dtype: pa.DataType, tz: tzinfo, what: str) -> Span:
    """The days or microseconds that a date or timestamp text names."""
    if datemath.is_math(text):
        return _computed_span(text, dtype, tz, what)
    match = _MOMENT.match(text.strip())
    if match is None:
        raise BadLiteralError(f"'{text}' is not a date or time; {what}")
    try:
        if match[4]:
            return _instant_span(text, dtype, tz, what)
        year, month, day = (int(match[i]) if match[i] else None for i in (1, 2, 3))
        assert year is not None
        first = timetext.days_from_civil(year, month or 1, day or 1)
        after = first + 1 if day else timetext.add_months(first, 1 if month else 12)
    except ValueError:
        raise BadLiteralError(f"'{text}' is not a date; {what}") from None
    if pa.types.is_date(dtype):
        return Span(first, after - 1)
    if dtype.tz is None:
        return Span(first * timetext.DAY_MICROS, after * timetext.DAY_MICROS - 1)
    return Span(timetext.day_start(first, tz), timetext.day_start(after, tz) - 1)


def _computed_span(text: str, dtype: pa.DataType, tz: tzinfo, what: str) -> Span:
    """A computed moment: instants, shown by a zone's clock where the column has no zone."""
    zoned = pa.timestamp("us", "UTC")
    try:
        span = datemath.math_span(text, tz, lambda part: moment_span(part, zoned, tz, what))
    except (ValueError, OverflowError):
        span = None
    if span is None:
        raise BadLiteralError(f"'{text}' is not a date or time; {what}")
    if pa.types.is_timestamp(dtype) and dtype.tz is not None:
        return span
    low, high = (timetext.instant_to_local(i, tz) for i in (span.low, span.high))
    if pa.types.is_date(dtype):
        return Span(low // timetext.DAY_MICROS, high // timetext.DAY_MICROS)
    return Span(low, high)


def _instant_span(text: str, dtype: pa.DataType, tz: tzinfo, what: str) -> Span:
    zoned = pa.types.is_timestamp(dtype) and dtype.tz is not None
    micros = timetext.parse_timestamp(text, tz if zoned else None)
    if micros is None:
        raise BadLiteralError(f"'{text}' is not a date or time; {what}")
    return span_of(Scalar(Kind.TIMESTAMP if zoned else Kind.NTZ, micros), dtype, tz)


def _double(text: str, what: str) -> float:
    try:
        if "_" in text:
            raise ValueError
        return float(text) + 0.0
    except ValueError:
        raise BadLiteralError(f"'{text}' is not a number; {what}") from None


def any_of(parts: list[ast.Query]) -> ast.Query:
    """Any part; what matches nothing falls away."""
    kept = [p for p in dict.fromkeys(parts) if not isinstance(p, ast.MatchNone)]
    if not kept:
        return ast.MatchNone()
    return kept[0] if len(kept) == 1 else ast.Bool(should=tuple(kept))


def escape_wildcards(text: str) -> str:
    """The text as a wildcard pattern that matches only itself."""
    return re.sub(r"([\\*?])", r"\\\1", text)


@lru_cache(maxsize=4096)
def fold_character(char: str) -> str:
    """One character as the analyzer lower-cases it."""
    folded = analyze("default", char)
    return folded[0] if len(folded) == 1 else char
