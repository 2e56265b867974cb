"""What a score is: BM25 as one index over all live rows of a table would compute it.

A search is scored by its leaves, and only by what they mean, never by how a split answers them:

* a word or phrase of tokenised text scores ``idf * 2.2 * tf / (tf + 1.2 * (0.25 + 0.75 * l / a))``
  with ``tf`` its occurrences in the row, ``l`` the row's length in tokens (rounded down to one of
  256 lengths, as tantivy keeps it) and ``a`` the mean length over all rows. The idf of a phrase is
  the sum of its words' ones. A phrase with moves scores like its words;
* a whole value of exact text is a text of one token that occurs once; a word inside JSON too, and
  there ``a`` is 1;
* a pattern, fuzzy word, set of words, beginning of a phrase, range of texts and a phrase inside
  JSON score 1;
* numbers, times, addresses, "has a value" and everything excluded score 0.

A boolean query scores the sum of its parts that match, a boost multiplies. The statistics (number
of rows, tokens of a column, rows that hold a word) are those of the whole table at its version
without deleted rows; ``Statistics`` carries them to wherever a split is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from indextables.expr import ast, jsonpaths
from indextables.expr.analyzers import analyze
from indextables.mapping import DocMapping, FieldMapping

K1 = np.float32(1.2)
B = np.float32(0.75)
PATTERN_SCORE = 1.0
Word: TypeAlias = tuple[str, str]
"""(column or JSON path as the query spells it, token or whole value)."""


def _lengths() -> NDArray[np.int64]:
    """The 256 lengths that are told apart: exact up to 40, then with four significant bits."""
    made = list(range(24))
    for code in range(232):
        high, low = code >> 3, code & 7
        made.append(24 + (low if high == 0 else (low | 8) << (high - 1)))
    return np.array(made, np.int64)


LENGTHS = _lengths()


def rounded_lengths(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of tokens as an index keeps them."""
    return LENGTHS[np.searchsorted(LENGTHS, lengths, side="right") - 1]


def idf(rows_with: int, rows: int) -> np.float32:
    """How much a word says that so many of all rows hold."""
    half = np.float32(0.5)
    odds = (np.float32(rows - rows_with) + half) / (np.float32(rows_with) + half)
    return np.float32(np.log(np.float32(1) + odds))


def term_scores(
    weight: np.float32, times: NDArray[Any], lengths: NDArray[Any], mean: np.float32
) -> NDArray[np.float32]:
    """BM25 of rows where a word of this weight occurs so many times among so many tokens."""
    norm = K1 * (np.float32(1) - B + B * lengths.astype(np.float32) / mean)
    times = times.astype(np.float32)
    scores: NDArray[np.float32] = weight * (times / (times + norm.astype(np.float32)))
    return scores


@dataclass(frozen=True)
class Statistics:
    """What the scores of one search need to know of the whole table."""

    rows: int
    mapping: DocMapping
    tokens: Mapping[str, int] = field(default_factory=dict)
    rows_with: Mapping[Word, int] = field(default_factory=dict)

    def mean(self, column: str) -> np.float32:
        """The mean number of tokens of a column."""
        tokens = max(self.tokens.get(column, 0), 1)
        return np.float32(tokens) / np.float32(max(self.rows, 1))

    def weight(self, words: tuple[Word, ...]) -> np.float32:
        """The factor of a word's or a phrase's score."""
        total = sum((self.idf(word) for word in words), np.float32(0))
        return np.float32(np.float32(total) * (np.float32(1) + K1))

    def idf(self, word: Word) -> np.float32:
        return idf(min(self.rows_with.get(word, 0), self.rows), max(self.rows, 1))

    def value_score(self, leaf: ValueLeaf) -> float:
        """The score of a whole value: once in a text of one token."""
        one = np.ones(1, np.int64)
        mean = np.float32(1) if leaf.is_json else self.mean(leaf.column)
        return float(term_scores(self.weight(leaf.words), one, one, mean)[0])


@dataclass(frozen=True)
class Ranking:
    """The searches whose scores a row's relevance is the sum of.

    With ``best`` only so many rows are wanted, ``with_ties`` also all that equal the last of them.
    """

    queries: tuple[ast.Query, ...]
    statistics: Statistics
    best: int | None = None
    with_ties: bool = False

    def chosen(self, scores: NDArray[np.float32]) -> NDArray[np.int64]:
        """The places of the best scores, ascending."""
        if self.best is None or self.best >= len(scores):
            return np.arange(len(scores))
        order = np.argsort(-scores, kind="stable")
        if self.with_ties and self.best:
            return np.flatnonzero(scores >= scores[order[self.best - 1]])
        return np.sort(order[: self.best])


@dataclass(frozen=True, slots=True)
class TextLeaf:
    """Words of tokenised text: each alone, or next to each other as one phrase."""

    column: str
    words: tuple[Word, ...]
    is_phrase: bool = False


@dataclass(frozen=True, slots=True)
class ValueLeaf:
    """A whole value of exact text or at a JSON path."""

    column: str
    words: tuple[Word, ...]
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class ConstantLeaf:
    """Rows that all score the same."""

    score: float


ScoredLeaf: TypeAlias = TextLeaf | ValueLeaf | ConstantLeaf


def scored_leaf(query: ast.FieldQuery, mapping: DocMapping) -> ScoredLeaf:
    """How a question about one field is scored."""
    found = mapping.get(query.field)
    if found is None:
        found = mapping.get(jsonpaths.split_field(query.field)[0])
    if found is None or isinstance(query, ast.Exists) or found.type not in ("text", "json"):
        return ConstantLeaf(0.0)
    match query:
        case ast.Term():
            known = isinstance(query.value, str)
            return _words_leaf(query.field, found, [query.value]) if known else ConstantLeaf(0.0)
        case ast.FullText():
            return _full_text(query, found)
        case ast.Phrase():
            return _phrase_leaf(query, found)
        case ast.Range():
            is_text = isinstance(query.lower, str) or isinstance(query.upper, str)
            return ConstantLeaf(PATTERN_SCORE if is_text and found.type == "text" else 0.0)
        case ast.TermSet() | ast.Wildcard() | ast.Regex() | ast.Fuzzy():
            return ConstantLeaf(PATTERN_SCORE)
        case _:
            assert_never(query)


def _full_text(query: ast.FullText, found: FieldMapping) -> ScoredLeaf:
    if found.type == "json":
        return ConstantLeaf(PATTERN_SCORE)
    words = [query.text]
    if found.is_tokenized:
        words = analyze(found.tokenizer or "default", query.text, found.token_length)
    return _words_leaf(query.field, found, words)


def _phrase_leaf(query: ast.Phrase, found: FieldMapping) -> ScoredLeaf:
    many = len(query.terms) > 1
    if query.prefix or (found.type == "json" and many):
        return ConstantLeaf(PATTERN_SCORE)
    if many and found.is_tokenized and found.record == "position" and not query.slop:
        return TextLeaf(found.name, tuple((query.field, w) for w in query.terms), is_phrase=True)
    return _words_leaf(query.field, found, query.terms)


def _words_leaf(name: str, found: FieldMapping, words: Sequence[Any]) -> ScoredLeaf:
    keys = tuple((name, word) for word in dict.fromkeys(words))
    if found.is_tokenized:
        return TextLeaf(found.name, keys)
    return ValueLeaf(found.name, keys, is_json=found.type == "json")


def scored_words(query: ast.Query, mapping: DocMapping) -> list[Word]:
    """Every word whose frequency the score of a query depends on, in order of first use."""
    found = (word for one in ast.asked(query, wanted=True) for word in _words(one, mapping))
    return list(dict.fromkeys(found))


def _words(query: ast.FieldQuery, mapping: DocMapping) -> Iterator[Word]:
    leaf = scored_leaf(query, mapping)
    if not isinstance(leaf, ConstantLeaf):
        yield from leaf.words


def scored_columns(query: ast.Query, mapping: DocMapping) -> list[str]:
    """The columns whose mean length the score of a query depends on."""
    leaves = (scored_leaf(one, mapping) for one in ast.asked(query, wanted=True))
    named = (
        leaf.column
        for leaf in leaves
        if isinstance(leaf, TextLeaf) or (isinstance(leaf, ValueLeaf) and not leaf.is_json)
    )
    return list(dict.fromkeys(named))
