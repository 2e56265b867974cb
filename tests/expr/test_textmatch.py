"""The brute-force matcher against a naive twin, row by row and word by word."""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import permutations, product
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.errors import PlanningError, UnknownColumnError
from indextables.expr import ast
from indextables.expr.analyzers import analyze_tokens
from indextables.expr.edits import within_edits
from indextables.expr.textmatch import fits_phrase, match_rows
from indextables.mapping import DocMapping, IndexingOptions

SCHEMA = pa.schema(
    [
        ("t", pa.string()),
        ("w", pa.string()),
        ("k", pa.string()),
        ("i", pa.int64()),
        ("d", pa.float64()),
        ("tags", pa.list_(pa.string())),
    ]
)
MAPPING = DocMapping.for_schema(
    SCHEMA, (), IndexingOptions(text=("t", "w"), tokenizers={"w": "whitespace"})
)
WORDS = ["fox", "Fox", "ox", "quick", "é", "a1", "fo x"]
ROUNDS = int(os.environ.get("INDEXTABLES_EXPR_TABLES", "40"))


# -- pieces ---------------------------------------------------------------------------------------


@cache
def distance(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    best = min(
        distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0])
    )
    if len(a) > 1 and len(b) > 1 and a[0] == b[1] and a[1] == b[0]:
        best = min(best, distance(a[2:], b[2:]) + 1)
    return best


@given(st.text("abé", max_size=5), st.text("abé", max_size=5), st.integers(0, 2))
def test_edits(a: str, b: str, limit: int) -> None:
    assert within_edits(a, b, limit) == (distance(a, b) <= limit)
    beginnings = [b[:n] for n in range(len(b) + 1)]
    near = any(distance(a, head) <= limit for head in beginnings)
    assert within_edits(a, b, limit, prefix=True) == near


places = st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True), max_size=3)


@given(places, st.integers(0, 4))
def test_phrases(found: list[list[int]], slop: int) -> None:
    def spread(choice: tuple[int, ...]) -> int:
        moved = [p - i for i, p in enumerate(choice)]
        return max(moved) - min(moved)

    expected = any(
        len(set(choice)) == len(choice) and spread(choice) <= slop
        for choice in product(*found)
        if choice
    )
    assert fits_phrase(found, slop) == expected


def test_slop_counts_moves() -> None:
    assert fits_phrase([[0], [1]], 0)
    assert fits_phrase([[0], [2]], 1)
    assert not fits_phrase([[1], [0]], 1)
    assert fits_phrase([[1], [0]], 2)
    assert not fits_phrase([[0], [2], [4]], 1)
    for order in permutations(range(3)):
        assert fits_phrase([[p] for p in order], 4)


# -- the twin -------------------------------------------------------------------------------------


def terms_of(field: str, value: Any) -> list[list[tuple[str, int]]]:
    """The scalars of a value, each a list of (term, position)."""
    if value is None:
        return []
    if field == "k":
        return [[(value, 0)]]
    texts = value if field == "tags" else [value]
    tokenizer = "whitespace" if field == "w" else "default"
    return [
        [(t.text, t.position) for t in analyze_tokens(tokenizer, text)]
        for text in texts
        if text is not None
    ]


def glob(pattern: str, word: str) -> bool:
    regex = "".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in pattern)
    return re.fullmatch(regex, word, re.S) is not None


def in_range(value: Any, query: ast.Range) -> bool:
    low, high = query.lower, query.upper
    above = low is None or value > low or (value == low and query.include_lower)
    return above and (high is None or value < high or (value == high and query.include_upper))


def naive(query: Any, row: dict[str, Any]) -> bool:
    if isinstance(query, ast.MatchAll | ast.MatchNone):
        return isinstance(query, ast.MatchAll)
    if isinstance(query, ast.Boost):
        return naive(query.query, row)
    if isinstance(query, ast.Bool):
        votes = sum(naive(q, row) for q in query.should)
        return (
            all(naive(q, row) for q in query.must)
            and not any(naive(q, row) for q in query.must_not)
            and votes >= query.required_should
        )
    value = row[query.field]
    if isinstance(query, ast.Exists):
        return value is not None
    if query.field in ("i", "d"):
        if value is None:
            return False
        wanted = query.values if isinstance(query, ast.TermSet) else None
        if isinstance(query, ast.Range):
            return in_range(value, query)
        return value in wanted if wanted is not None else value == query.value
    return any(naive_words(query, scalar) for scalar in terms_of(query.field, value))


def naive_words(query: Any, scalar: list[tuple[str, int]]) -> bool:
    words = [word for word, _ in scalar]
    if isinstance(query, ast.Term):
        return query.value in words
    if isinstance(query, ast.TermSet):
        return any(v in words for v in query.values)
    if isinstance(query, ast.Wildcard):
        return any(glob(query.pattern, w) for w in words)
    if isinstance(query, ast.Regex):
        return any(re.fullmatch(query.pattern, w) for w in words)
    if isinstance(query, ast.Fuzzy):
        return any(distance(query.value, w) <= query.distance for w in words)
    tests = [[p for w, p in scalar if w == t] for t in query.terms]
    if query.prefix:
        tests[-1] = [p for w, p in scalar if w.startswith(query.terms[-1])]
    return any(
        len(set(c)) == len(c)
        and max(p - i for i, p in enumerate(c)) - min(p - i for i, p in enumerate(c)) <= query.slop
        for c in product(*tests)
    )


def random_leaf(rng: Random) -> ast.Query:
    field = rng.choice(["t", "w", "k", "tags", "i", "d"])
    if field in ("i", "d"):
        number = rng.choice([0, 1, 2, -1]) if field == "i" else rng.choice([0.0, 1.5, -0.0])
        ends = (number, number + 1, rng.random() < 0.5, rng.random() < 0.5)
        return rng.choice(
            [
                ast.Term(field, number),
                ast.TermSet(field, (number, number + 1)),
                ast.Range(field, *ends),
                ast.Range(field, None, number, True, rng.random() < 0.5),
                ast.Exists(field),
            ]
        )
    word = rng.choice([*WORDS, "quick fox", "fo"])
    pair = (word, rng.choice(WORDS))
    choices: list[ast.Query] = [
        ast.Term(field, word),
        ast.TermSet(field, pair),
        ast.Wildcard(field, rng.choice(["f*", "?ox", "*x", "q*k", "*", "fo ?", "é"])),
        ast.Regex(field, rng.choice(["fo.*", "[a-z]+", "fox|ox", "a\\d", "."])),
        ast.Fuzzy(field, word, rng.choice([1, 2])),
        ast.Phrase(field, pair, rng.choice([0, 1, 2, 5]), rng.random() < 0.3),
    ]
    if field != "tags":
        choices.append(ast.Exists(field))
    return rng.choice(choices)


def random_query(rng: Random, depth: int = 2) -> ast.Query:
    if depth == 0 or rng.random() < 0.3:
        return random_leaf(rng)
    groups = [
        tuple(random_query(rng, depth - 1) for _ in range(rng.randrange(3))) for _ in range(3)
    ]
    wanted = rng.choice([None, None, 1, 2])
    made = ast.Bool(*groups, minimum_should_match=wanted)
    return ast.Boost(made, 2.0) if rng.random() < 0.1 else made


def random_text(rng: Random) -> str | None:
    return None if rng.random() < 0.15 else " ".join(rng.choices(WORDS, k=rng.randrange(5)))


def random_row(rng: Random) -> dict[str, Any]:
    tags = None if rng.random() < 0.2 else [random_text(rng) for _ in range(rng.randrange(3))]
    return {
        "t": random_text(rng),
        "w": random_text(rng),
        "k": rng.choice([*WORDS, None]),
        "i": rng.choice([None, 0, 1, 2, -1]),
        "d": rng.choice([None, 0.0, -0.0, 1.5, 2.5]),
        "tags": tags,
    }


def test_rows_equal_the_twins(rng: Random) -> None:
    for _ in range(ROUNDS):
        sample = [random_row(rng) for _ in range(10)]
        batch = pa.Table.from_pylist(sample, SCHEMA)
        for _ in range(15):
            query = random_query(rng)
            expected = [naive(query, row) for row in sample]
            assert match_rows(query, batch, MAPPING).tolist() == expected, (query, sample)


# -- edges ----------------------------------------------------------------------------------------


def test_chunked_and_large_columns() -> None:
    chunks = pa.chunked_array([["a fox"], [], ["x", None]], pa.large_string())
    table = pa.table({"t": chunks})
    assert match_rows(ast.Term("t", "fox"), table, MAPPING).tolist() == [True, False, False]


def test_unknown_fields_match_nothing() -> None:
    batch = pa.record_batch({"t": ["fox"]})
    for field in ("nope", "nope.x"):
        assert not match_rows(ast.Term(field, "fox"), batch, MAPPING).any()
        assert not match_rows(ast.Exists(field), batch, MAPPING).any()
    with pytest.raises(UnknownColumnError):
        match_rows(ast.Term("k", "fox"), batch, MAPPING)


def test_questions_without_meaning_are_errors() -> None:
    batch = pa.record_batch({"i": [1], "t": ["a"]})
    with pytest.raises(PlanningError):
        match_rows(ast.Wildcard("i", "1*"), batch, MAPPING)
    with pytest.raises(PlanningError):
        match_rows(ast.Term("i", "one"), batch, MAPPING)


def test_full_text_joins_its_tokens() -> None:
    batch = pa.record_batch({"t": ["a fox", "quick", "quick fox", None]})
    both = match_rows(ast.FullText("t", "Quick FOX"), batch, MAPPING)
    some = match_rows(ast.FullText("t", "Quick FOX", "or"), batch, MAPPING)
    assert both.tolist() == [False, False, True, False]
    assert some.tolist() == [True, True, True, False]
    assert not match_rows(ast.FullText("t", "!?"), batch, MAPPING).any()


def test_an_empty_batch_has_no_rows() -> None:
    batch = pa.Table.from_pylist([], SCHEMA)
    for query in (
        ast.MatchAll(),
        ast.Term("t", "x"),
        ast.Phrase("t", ("a", "b")),
        ast.Term("i", 1),
    ):
        assert match_rows(query, batch, MAPPING).shape == (0,)
        assert match_rows(query, batch, MAPPING).dtype == np.bool_
