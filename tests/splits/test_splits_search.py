"""Queries over splits agree with the definition of each AST node, row by row."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from splitkit import ALL_TYPES, open_split, pooled_table, value_pools

from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.expr.ast import query_fields
from indextables.expr.predicate import TextMatch
from indextables.expr.textmatch import match_rows
from indextables.mapping import IndexingOptions
from indextables.splits.lookup import queries
from indextables.splits.read.access import count_split, matching_rows
from indextables.splits.read.reader import SplitReader, as_predicate

TEXTS = [
    "the quick brown fox",
    "The QUICK fox, the brown dog",
    "quick quick brown",
    "brown quick",
    "a b c d",
    "d c b a",
    "quicker than the fox-trot",
    "naïve café Ⱥlpha",
    "one " + "x" * 300 + " two",
    "one two",
    "",
    "42 is 3.14",
    "running runs ran",
    None,
]
FIELDS = ["txt", "ws", "stem", "basic", "s"]
WORDS = [
    "the", "quick", "brown", "fox", "dog", "a", "b", "c", "d", "two", "one", "42", "3", "14",
    "runs", "run", "quicker", "naïve", "ⱥlpha", "QUICK",
]  # fmt: skip


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, SplitReader]:
    table = pa.table({name: pa.array(TEXTS * 2, pa.string()) for name in FIELDS})
    options = IndexingOptions(
        text=("txt", "ws", "stem", "basic"),
        tokenizers={"ws": "whitespace", "stem": "en_stem"},
        records={"basic": "basic"},
    )
    return table, open_split(table, tmp_path_factory.mktemp("texts"), options)


def check(reader: SplitReader, table: pa.Table, query: ast.Query) -> None:
    expected = np.flatnonzero(match_rows(query, table, reader.mapping)).tolist()
    assert reader.search(query).rows.tolist() == expected, query
    assert reader.count(query) == len(expected), query
    scored = reader.search(query, scored=True)
    assert sorted(scored.rows.tolist()) == expected, query
    negated = TextMatch(query, tuple(query_fields(query)), "", negated=True)
    others = sorted(set(range(table.num_rows)) - set(expected))
    assert matching_rows(reader, negated).tolist() == others, query
    assert count_split(reader, negated) == len(others), query


def random_leaf(rng: random.Random) -> ast.Query:
    field = rng.choice([*FIELDS, "missing"])
    words = tuple(rng.choices(WORDS, k=rng.randrange(1, 4)))
    word = words[0]
    stars = ["qu*", "?", "*", "q?ick", "*r*", "a\\*", "the quick*", "n*ve", ""]
    regexes = ["qu.*", "[a-d]", "(?i)QUICK", "run(s|ning)?", ".*", "naïve", "\\d+"]
    typos = ["quik", "quick", "uqick", "foxx", "bn", "na", ""]
    made: list[ast.Query] = [
        ast.Term(field, word),
        ast.Term(field, rng.choice(TEXTS) or ""),
        ast.TermSet(field, words),
        ast.FullText(field, " ".join(words), rng.choice(["and", "or"])),
        ast.FullText(field, rng.choice(["--", "", "fox-trot", "Ⱥlpha 3.14"])),
        ast.Phrase(field, words, rng.randrange(3), rng.random() < 0.3),
        ast.Phrase(field, (word[:1],), prefix=True),
        ast.Phrase(field, ("quick", "b"), prefix=True),
        ast.Range(field, *sorted([word, words[-1]]), rng.random() < 0.5, rng.random() < 0.5),
        ast.Range(field, None, word, True, rng.random() < 0.5),
        ast.Wildcard(field, rng.choice(stars)),
        ast.Regex(field, rng.choice(regexes)),
        ast.Fuzzy(field, rng.choice(typos), rng.choice([1, 2]), rng.random() < 0.3),
        ast.Exists(field),
        ast.MatchAll(),
        ast.MatchNone(),
        ast.Boost(ast.Term(field, word), 2.5),
    ]  # fmt: skip
    return rng.choice(made)


def random_query(rng: random.Random, leaf: Any, depth: int = 2) -> ast.Query:
    if depth == 0 or rng.random() < 0.25:
        return leaf(rng)

    def some(most: int) -> tuple[ast.Query, ...]:
        return tuple(random_query(rng, leaf, depth - 1) for _ in range(rng.randrange(most + 1)))

    required = rng.choice([None, None, None, 0, 1, 2])
    return ast.Bool(some(2), some(3), some(2), required)


def test_random_queries_over_text(texts: tuple[pa.Table, SplitReader], rng: random.Random) -> None:
    table, reader = texts
    for _ in range(250):
        check(reader, table, random_leaf(rng))
    for _ in range(120):
        check(reader, table, random_query(rng, random_leaf))


def pool_leaf(rng: random.Random, pools: dict[str, list[Any]]) -> ast.Query:
    from test_splits_predicates import literal

    name = rng.choice([n for n in ALL_TYPES if n not in ("st", "ar", "mp", "js", "nul")])
    if name == "ip":
        block = rng.choice(["10.0.0.0/8", "::/0", "10.0.*.*", "10.0.0.1", "2001:db8::/32", "::1"])
        between = ast.Range("ip", "10.0.0.1", "10.0.0.9", rng.random() < 0.5, False)
        return rng.choice([ast.Term("ip", block), ast.TermSet("ip", (block, "::1")), between])
    values = [literal(name, rng.choice(pools[name])) for _ in range(2)]
    if name in ("bin", "b"):
        return rng.choice([ast.Term(name, values[0]), ast.Exists(name)])
    low, high = sorted(values, key=lambda v: (v != v, v))
    return rng.choice(
        [
            ast.Term(name, values[0]),
            ast.TermSet(name, tuple(values)),
            ast.Range(name, low, high, rng.random() < 0.5, rng.random() < 0.5),
            ast.Range(name, low, None),
            ast.Range(name, None, high, True, False),
            ast.Exists(name),
        ]
    )


def json_leaf(rng: random.Random) -> ast.Query:
    field = rng.choice(
        [
            "js",
            "js.a",
            "js.a.b",
            "st.name",
            "st.n",
            "st",
            "ar",
            "ar._values",
            "mp.a",
            "mp.b",
            "mp",
            "st.zz",
        ]
    )
    word = rng.choice(["red", "green", "1", "2.5", "true", "sky", "42", "quick", "oops", "car"])
    return rng.choice(
        [
            ast.Term(field, word),
            ast.Term(field, rng.choice([1, 2.5, True, 42, 1.0])),
            ast.TermSet(field, (word, "red", 1)),
            ast.FullText(
                field, rng.choice(["Green car", "2.5", "1", "the fox", "blue, sky", "-1", "--"])
            ),
            ast.FullText(field, "red 1", rng.choice(["and", "or"])),
            ast.Phrase(field, ("green", "car")),
            ast.Phrase(field, ("the", "fox"), rng.randrange(3)),
            ast.Phrase(field, ("quick", "f"), prefix=True),
            ast.Range(field, 0, 2, rng.random() < 0.5, rng.random() < 0.5),
            ast.Range(field, "a", "h"),
            ast.Wildcard(field, rng.choice(["re*", "*", "?", "gr?en"])),
            ast.Regex(field, rng.choice(["r.d", "\\d.*"])),
            ast.Fuzzy(field, "rad", 1),
            ast.Exists(field),
        ]
    )


@pytest.mark.parametrize("rows", [5, 800])
def test_random_queries_over_all_types(rows: int, rng: random.Random, tmp_path: Path) -> None:
    pools = value_pools(rng)
    table = pooled_table(rng, pools, rows)
    reader = open_split(table, tmp_path)

    def leaf(inner: random.Random) -> ast.Query:
        return json_leaf(inner) if inner.random() < 0.5 else pool_leaf(inner, pools)

    for _ in range(150):
        check(reader, table, leaf(rng))
    for _ in range(60):
        check(reader, table, random_query(rng, leaf))


def test_mixed_types_at_one_path(tmp_path: Path) -> None:
    documents = [
        '["red", 5]',
        '["red 5"]',
        '{"red": 5}',
        '[{"a b\\\\": "x"}, "red"]',
        '{"a.b": 1}',
        '{"a": {"b": 2}}',
    ]
    table = pa.table({"js": documents})
    reader = open_split(table, tmp_path)
    for query in (
        ast.FullText("js", "red 5"),
        ast.Phrase("js", ("red", "5")),
        ast.Term("js.red", 5),
        ast.Exists("js.a b\\"),
        ast.Term("js.a b\\", "x"),
        ast.Exists("js.a"),
        ast.Range("js.a.b", 1, 2),
        ast.TermSet("js.a.b", (1, 2)),
    ):
        check(reader, table, query)


def test_dropped_tokens_leave_a_gap_in_json_too(tmp_path: Path) -> None:
    table = pa.table({"ar": [["one " + "x" * 300 + " two"], ["one two"], ["one", "two"]]})
    reader = open_split(table, tmp_path)
    check(reader, table, ast.Phrase("ar", ("one", "two")))
    check(reader, table, ast.Phrase("ar", ("one", "two"), 1))


def test_paths_too_long_for_a_term_are_scanned(tmp_path: Path) -> None:
    key = "k" * 40_000
    table = pa.table({"js": [f'{{"{key}": "red"}}', '{"a": "red"}']})
    reader = open_split(table, tmp_path)
    for query in (ast.Term(f"js.{key}", "red"), ast.Exists(f"js.{key}"), ast.Term("js.a", "red")):
        check(reader, table, query)


def test_many_expansions_of_a_prefix_stay_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"txt": [f"start w{i}" for i in range(300)] + ["w1 start", "start v"]})
    reader = open_split(table, tmp_path)
    check(reader, table, ast.Phrase("txt", ("start", "w"), prefix=True))
    monkeypatch.setattr(queries, "MANY_EXPANSIONS", 1000)
    check(reader, table, ast.Phrase("txt", ("start", "w"), prefix=True))


def test_unindexed_columns_are_still_searchable(tmp_path: Path) -> None:
    table = pa.table({"txt": ["red car", "blue"], "n": [1, 2]})
    reader = open_split(table, tmp_path, IndexingOptions(text=("txt",), unindexed=("txt", "n")))
    check(reader, table, ast.Term("txt", "red"))
    check(reader, table, ast.Range("n", 2, None))


def test_scores_rank_and_limit(texts: tuple[pa.Table, SplitReader]) -> None:
    _, reader = texts
    query = ast.Bool(should=(ast.Term("txt", "quick"), ast.Term("txt", "brown")))
    best = reader.search(query, limit=3, scored=True)
    everything = reader.search(query, scored=True)
    assert best.scores is not None
    assert everything.scores is not None
    assert best.rows.tolist() == everything.rows[:3].tolist()
    assert (np.diff(everything.scores) <= 0).all()
    assert everything.scores[0] > everything.scores[-1]
    boosted = reader.search(
        ast.Bool(should=(ast.Term("txt", "quick"), ast.Boost(ast.Term("txt", "d"), 50.0))),
        limit=1,
        scored=True,
    )
    assert TEXTS[int(boosted.rows[0]) % len(TEXTS)] in ("a b c d", "d c b a")
    optional = reader.search(
        ast.Bool(must=(ast.Exists("txt"),), should=(ast.Term("txt", "café"),)), limit=2, scored=True
    )
    assert {int(r) % len(TEXTS) for r in optional.rows} == {7}
    assert reader.search(query, limit=0, scored=True).rows.tolist() == []


def test_limits_without_scores_keep_the_first_rows(texts: tuple[pa.Table, SplitReader]) -> None:
    _, reader = texts
    query = ast.Term("txt", "quick")
    assert reader.search(query, limit=2).rows.tolist() == reader.search(query).rows[:2].tolist()


def test_a_broken_pattern_is_a_planning_error(texts: tuple[pa.Table, SplitReader]) -> None:
    _, reader = texts
    with pytest.raises(PlanningError, match="malformed"):
        reader.search(ast.Regex("txt", "a("))


def test_queries_become_predicates() -> None:
    query = ast.Bool((ast.Term("a", 1),), (ast.Boost(ast.Term("b.c", 2), 2.0),), (ast.MatchAll(),))
    assert as_predicate(query) == TextMatch(query, ("a", "b.c"), "", "indexquery")
