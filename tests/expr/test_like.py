"""LIKE: taken apart once, and the same rows wherever the segments are used.

Every pattern of up to three characters meets every text of up to three, with two escapes: by the
answers that Spark gave (``like_truth``), by a plain twin, by the evaluator, by partition values, by
bounds and by column indexes. What prunes may keep too much, so there only lost rows count.
"""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from like_truth import ESCAPES, PATTERNS, TEXTS, answers

from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.expr.column import col
from indextables.expr.evaluate import evaluate
from indextables.expr.like import LikePattern, Wild
from indextables.expr.predicate import Compare, InSet, Like, NullTest, Predicate, StringMatch
from indextables.expr.textmatch import match_rows
from indextables.mapping import DocMapping
from indextables.native import _prune
from indextables.planner.stages.partitions import PartitionColumn, partition_table, typed_values
from indextables.planner.stages.ranges import ranges_of
from indextables.planner.stages.verdict import CANNOT_MATCH, MUST_MATCH
from indextables.splits.lookup.colindex.predicates import Nothing, Range, extract_indexable
from indextables.table.snippets import matchers

SCHEMA = pa.schema([("s", pa.string())])
ROWS = pa.record_batch({"s": pa.array(TEXTS, pa.string())})
POINTS = typed_values(list(TEXTS), pa.string())
TRUTH = answers()
VALID = [(p, e) for e in ESCAPES for p in PATTERNS if TRUTH[e][p] is not None]
CODES = np.arange(len(TEXTS), dtype=np.int32)


def bound(pattern: str, escape: str, *, negated: bool = False) -> Predicate:
    test = col("s").like(pattern, escape)
    return bind(~test if negated else test, SCHEMA)


def twin(pattern: str, escape: str, text: str, wild: str = "%_") -> bool:
    """One character after the other: the places in the text that the pattern can have reached."""
    reached, plain = {0}, False
    for char in pattern:
        if char == escape and not plain:
            plain = True
        elif char == wild[0] and not plain:
            reached = set(range(min(reached, default=len(text) + 1), len(text) + 1))
        else:
            fits = char == wild[1] and not plain
            reached = {i + 1 for i in reached if i < len(text) and (fits or text[i] == char)}
            plain = False
    return len(text) in reached


def test_the_recorded_answers_are_of_these_patterns() -> None:
    assert list(TRUTH) == list(ESCAPES)
    for escape in ESCAPES:
        assert list(TRUTH[escape]) == list(dict.fromkeys(PATTERNS))
        refused = sum(found is None for found in TRUTH[escape].values())
        assert 0 < refused < len(PATTERNS) / 2


@pytest.mark.parametrize("escape", ESCAPES)
def test_what_spark_refuses_is_refused(escape: str) -> None:
    for pattern, found in TRUTH[escape].items():
        if found is None:
            with pytest.raises(PlanningError, match=r"escape|before"):
                bound(pattern, escape)


def test_spark_and_the_twin_agree() -> None:
    for pattern, escape in VALID:
        assert [twin(pattern, escape, t) for t in TEXTS] == TRUTH[escape][pattern], pattern


@pytest.mark.parametrize("negated", [False, True])
def test_the_evaluator_finds_sparks_rows(negated: bool) -> None:
    for pattern, escape in VALID:
        found = evaluate(bound(pattern, escape, negated=negated), ROWS).to_pylist()
        truth = TRUTH[escape][pattern]
        assert truth is not None
        assert found == [hit != negated for hit in truth], (pattern, escape)


@pytest.mark.parametrize("negated", [False, True])
def test_stages_lose_no_row(negated: bool) -> None:
    """Partition values are decided exactly; bounds and column indexes may keep too much."""
    column = PartitionColumn(CODES, list(TEXTS), POINTS, *_prune.zone_codes(CODES, 4))
    for pattern, escape in VALID:
        leaf, truth = bound(pattern, escape, negated=negated), TRUTH[escape][pattern]
        assert truth is not None
        wanted = np.array(truth) != negated
        if isinstance(leaf, Compare | InSet | StringMatch | Like | NullTest):
            table = partition_table(column, leaf)
            assert table.tolist() == np.where(wanted, MUST_MATCH, CANNOT_MATCH).tolist(), pattern
        if isinstance(leaf, Compare | InSet | StringMatch | Like):
            ranges = ranges_of(leaf)
            if ranges is not None:
                verdicts = ranges.verdicts(POINTS, None)
                assert not (wanted & (verdicts == CANNOT_MATCH)).any(), pattern
                assert not (~wanted & (verdicts == MUST_MATCH)).any(), pattern
        for one in extract_indexable(leaf):
            assert not isinstance(one.predicate, Nothing)
            if isinstance(one.predicate, Range):
                kept = [within(t.encode(), one.predicate) for t in TEXTS]
                assert not (wanted & ~np.array(kept)).any(), pattern


def within(key: bytes, asked: Range) -> bool:
    assert isinstance(asked.low, bytes)
    return asked.low <= key and (asked.high is None or key < asked.high)  # type: ignore[operator]


def test_long_patterns_by_the_twin(rng: random.Random) -> None:
    for _ in range(400):
        escape = rng.choice(ESCAPES)
        pieces = ["a", "b", "é", "\U0001f600", "%", "_", escape + "%", escape + "_", escape * 2]
        pattern = "".join(rng.choices(pieces, k=rng.randrange(12)))
        texts = [
            "".join(rng.choices("aabé%_!\\\U0001f600\n", k=rng.randrange(9))) for _ in range(40)
        ]
        texts.append(LikePattern.parse(pattern, escape).spelled(str, "ab", "b"))
        found = evaluate(bound(pattern, escape), pa.record_batch({"s": texts})).to_pylist()
        assert found == [twin(pattern, escape, t) for t in texts], (pattern, escape)
        assert found[-1]


@pytest.mark.parametrize(
    ("pattern", "escape", "segments"),
    [
        ("", "\\", ()),
        ("abc", "\\", ("abc",)),
        ("a%%b", "\\", ("a", Wild.RUN, "b")),
        ("%_%_", "\\", (Wild.RUN, Wild.ONE, Wild.RUN, Wild.ONE)),
        ("a\\%b\\\\%", "\\", ("a%b\\", Wild.RUN)),
        ("a!_!!%\\", "!", ("a_!", Wild.RUN, "\\")),
        ("%%a_", "%", ("%a", Wild.ONE)),
        ("__a%", "_", ("_a", Wild.RUN)),
    ],
)
def test_segments(pattern: str, escape: str, segments: tuple[str | Wild, ...]) -> None:
    parsed = LikePattern.parse(pattern, escape)
    assert parsed.segments == segments
    assert LikePattern.parse(str(parsed)) == parsed, "its SQL spelling says the same"


def test_an_escaped_character_is_part_of_the_prefix() -> None:
    (found,) = extract_indexable(bound("a!%b%c", "!"))
    assert found.predicate == Range(b"a%b", b"a%c", False, True)
    leaf = bound("a!%b%c", "!")
    assert isinstance(leaf, Like)
    ranges = ranges_of(leaf)
    assert ranges is not None
    verdicts = ranges.verdicts(typed_values(["a%bc", "a%c", "axbc"], pa.string()), None)
    assert [v == CANNOT_MATCH for v in verdicts] == [False, True, True], "and it excludes"


def test_wildcards_of_queries_are_the_same_in_other_letters() -> None:
    texts = ["".join(t) for size in range(4) for t in product("a*?\\", repeat=size)]
    words = pa.record_batch({"s": texts})
    mapping = DocMapping.for_schema(SCHEMA)
    for pattern in texts:
        found = match_rows(ast.Wildcard("s", pattern), words, mapping).tolist()
        ending = pattern + "\\" if (len(pattern) - len(pattern.rstrip("\\"))) % 2 else pattern
        expected = [twin(ending, "\\", t, "*?") for t in texts]
        assert found == expected, pattern
        marks = list(matchers(ast.Wildcard("s", pattern), "s", "raw", 255))
        assert [any(mark(t) for mark in marks) for t in texts] == expected, pattern
