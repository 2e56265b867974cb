"""Verdict kernels against definitions that a reader can check by eye."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from indextables.native import _prune
from indextables.planner.stages.strings import AFTER, BEFORE, END, KEY_MAX, KEY_MIN, cut_key
from indextables.planner.stages.verdict import (
    ALL_NULL,
    CANNOT_MATCH,
    EMPTY,
    HAS_HIGH,
    HAS_LOW,
    HIGH_OPEN,
    MAY_MATCH,
    MUST_MATCH,
    NO_NULL,
)

I64, U8, I32 = np.int64, np.uint8, np.int32


def cut(text: str, kind: int) -> tuple[bytes, int, int]:
    return text.encode(), kind, cut_key((text.encode(), kind))


def relate(low: int, high: int, ranges: list[tuple[int, int]], facts: int = NO_NULL) -> int:
    return int(
        _prune.relate_ranges(
            np.array([low], I64),
            np.array([high], I64),
            np.array([facts], U8),
            None,
            np.array([a for a, _ in ranges], I64),
            np.array([b for _, b in ranges], I64),
            CANNOT_MATCH,
            MUST_MATCH,
        )[0]
    )


@given(
    st.integers(-6, 6), st.integers(0, 6), st.sets(st.integers(-8, 8), max_size=6), st.booleans()
)
def test_key_ranges_against_enumeration(
    low: int, size: int, points: set[int], no_null: bool
) -> None:
    ranges = [(v, v) for v in sorted(points)]
    values = set(range(low, low + size + 1))
    found = relate(low, low + size, ranges, NO_NULL if no_null else 0)
    if not values & points:
        assert found == CANNOT_MATCH
    elif size == 0 and values <= points:
        assert found == (MUST_MATCH if no_null else MAY_MATCH)
    else:
        assert found == MAY_MATCH


@pytest.mark.parametrize("facts", [ALL_NULL, EMPTY, ALL_NULL | EMPTY])
def test_without_values_nothing_matches(facts: int) -> None:
    assert relate(0, 9, [(0, 9)], facts) == CANNOT_MATCH
    assert relate(0, 9, [(0, 1), (3, 4)], facts) == CANNOT_MATCH


def text_verdict(
    low: str | None,
    high: str | None,
    ends: list,
    *,
    is_open: bool = False,
    no_null: bool = True,
) -> int:
    low_cut, high_cut = cut(low or "", BEFORE), cut(high or "", END if is_open else AFTER)
    keys = KEY_MIN if low is None else low_cut[2], KEY_MAX if high is None else high_cut[2]
    columns = [
        _prune.TextColumn(
            np.frombuffer(c[0], U8), np.zeros(1, I64), np.array([len(c[0])], I64), np.array([key])
        )
        for c, key in zip((low_cut, high_cut), keys, strict=True)
    ]
    facts = (HAS_LOW if low is not None else 0) | (HAS_HIGH if high is not None else 0)
    facts |= (HIGH_OPEN if is_open else 0) | (NO_NULL if no_null else 0)
    args = np.array([facts], U8), None, _prune.TextRanges(ends), CANNOT_MATCH, MUST_MATCH
    return int(_prune.relate_texts(*columns, *args)[0])


ALPHABET = ["", "a", "aa", "aaaaaaaa", "aaaaaaaab", "ab", "b", "é", "z\U0001f600", "a\x00"]
CUTS = [(text, kind) for text in ALPHABET for kind in (BEFORE, AFTER, END)]


def place(text: str, kind: int) -> bytes:
    """A cut as a place among byte strings without NUL behind them."""
    return text.encode() + {BEFORE: b"", AFTER: b"\x00", END: b"\xff" * 12}[kind]


def test_text_ranges_against_byte_places(rng: random.Random) -> None:
    words = [w for w in ALPHABET if "\x00" not in w]
    for _ in range(4000):
        low, high = sorted(rng.choices(words, k=2), key=str.encode)
        is_open = rng.random() < 0.4
        a, b = sorted(((w, rng.choice([BEFORE, AFTER])) for w in rng.choices(words, k=2)),
                      key=lambda c: place(*c))  # fmt: skip
        if rng.random() < 0.3 and place(b[0], END) > place(*a):
            b = (b[0], END)
        if place(*a) == place(*b):
            continue
        found = text_verdict(low, high, [cut(*a), cut(*b)], is_open=is_open)
        first, last = place(low, BEFORE), place(high, END if is_open else AFTER)
        disjoint = last <= place(*a) or place(*b) <= first
        inside = place(*a) <= first and last <= place(*b)
        expected = CANNOT_MATCH if disjoint else MUST_MATCH if inside else MAY_MATCH
        assert found == expected, (low, high, is_open, a, b)


def test_text_without_an_end_is_unbounded() -> None:
    below_m, from_m = [None, cut("m", BEFORE)], [cut("m", BEFORE), None]
    assert text_verdict(None, "k", below_m) == MUST_MATCH
    assert text_verdict(None, "k", from_m) == CANNOT_MATCH
    assert text_verdict("p", None, below_m) == CANNOT_MATCH
    assert text_verdict("p", None, from_m) == MUST_MATCH
    assert text_verdict(None, None, below_m) == MAY_MATCH
    assert text_verdict(None, None, [None, None]) == MUST_MATCH
    assert text_verdict(None, None, [None, None], no_null=False) == MAY_MATCH


def test_many_text_ranges_are_found_by_search() -> None:
    words = [f"w{i:03d}" for i in range(0, 100, 2)]
    ends = [e for w in words for e in (cut(w, BEFORE), cut(w, AFTER))]
    for i in range(100):
        word = f"w{i:03d}"
        expected = MUST_MATCH if i % 2 == 0 else CANNOT_MATCH
        assert text_verdict(word, word, ends) == expected
    assert text_verdict("w001", "w003", ends) == MAY_MATCH
    assert text_verdict("x", "y", ends) == CANNOT_MATCH


def test_nulls() -> None:
    facts = np.array([NO_NULL, ALL_NULL, 0, EMPTY, EMPTY | NO_NULL], U8)
    assert _prune.test_nulls(facts, None, True).tolist() == [0, 2, 1, 0, 0]
    assert _prune.test_nulls(facts, None, False).tolist() == [2, 0, 1, 0, 0]
    chosen = np.array([1, 2], I32)
    assert _prune.test_nulls(facts, chosen, True).tolist() == [2, 1]


def test_codes_outside_the_table_may_match() -> None:
    codes, table = np.array([0, 1, -1, 7], I32), np.array([0, 2], U8)
    assert _prune.gather(codes, table, None).tolist() == [0, 2, 1, 1]
    assert _prune.gather(codes, table, np.array([1, 3], I32)).tolist() == [2, 1]


@pytest.mark.parametrize("selection", [[-1, 0], [0, 5], [0, 9, 1]])
def test_a_selection_outside_the_splits_is_refused(selection: list[int]) -> None:
    chosen, column, facts = np.array(selection, I32), np.zeros(5, I64), np.zeros(5, U8)
    one = np.zeros(1, I64)
    with pytest.raises(IndexError):
        _prune.relate_ranges(column, column, facts, chosen, one, one, 0, 2)
    with pytest.raises(IndexError):
        _prune.test_nulls(facts, chosen, True)
    with pytest.raises(IndexError):
        _prune.gather(np.zeros(5, I32), facts, chosen)


def test_narrow_keeps_what_is_not_excluded() -> None:
    verdicts = np.array([0, 1, 2, 0], U8)
    assert _prune.narrow(None, verdicts).tolist() == [1, 2]
    assert _prune.narrow(np.array([3, 5, 8, 9], I32), verdicts).tolist() == [5, 8]
    with pytest.raises(ValueError, match="length"):
        _prune.narrow(np.zeros(1, I32), verdicts)


def test_zones_hold_their_splits(rng: random.Random) -> None:
    for _ in range(200):
        n, size = rng.randint(0, 40), rng.randint(1, 9)
        lows = np.array([rng.randint(-50, 50) for _ in range(n)], I64)
        highs = lows + np.array([rng.randint(0, 9) for _ in range(n)], I64)
        facts = np.array([rng.choice([0, NO_NULL, ALL_NULL, EMPTY]) for _ in range(n)], U8)
        zones = _prune.zone_bounds(lows, highs, facts, size)
        a = rng.randint(-60, 60)
        args = np.array([a], I64), np.array([a + rng.randint(0, 20)], I64)
        for disjoint, inside in ((0, 2), (2, 0)):
            fine = _prune.relate_ranges(lows, highs, facts, None, *args, disjoint, inside)
            coarse = _prune.relate_ranges(*zones, None, *args, disjoint, inside)
            for i in range(n):
                assert coarse[i // size] != CANNOT_MATCH or fine[i] == CANNOT_MATCH
        for is_null in (True, False):
            fine = _prune.test_nulls(facts, None, is_null)
            coarse = _prune.test_nulls(zones[2], None, is_null)
            assert all(coarse[i // size] or not fine[i] for i in range(n))
        alive = np.array([rng.choice([0, 1]) for _ in range(len(zones[2]))], U8)
        expanded = _prune.expand_zones(alive, n, size)
        wanted = [i for i in range(n) if alive[i // size]]
        assert (list(range(n)) if expanded is None else expanded.tolist()) == wanted


def test_code_zones_hold_their_codes(rng: random.Random) -> None:
    for _ in range(200):
        n, size, values = rng.randint(0, 40), rng.randint(1, 9), rng.randint(1, 8)
        codes = np.array([rng.randrange(values) for _ in range(n)], I32)
        table = np.array([rng.choice([0, 0, 1, 2]) for _ in range(values)], U8)
        coarse = _prune.gather_zones(*_prune.zone_codes(codes, size), table)
        fine = _prune.gather(codes, table, None)
        assert all(coarse[i // size] or not fine[i] for i in range(n))


def test_bad_texts_are_refused() -> None:
    data, key = np.zeros(4, U8), np.zeros(1, I64)
    for start, size in ((0, 5), (5, 0), (-1, 1), (0, -1), (4, (1 << 63) - 1)):
        with pytest.raises(ValueError, match="outside"):
            _prune.TextColumn(data, np.array([start], I64), np.array([size], I64), key)
    with pytest.raises(ValueError, match="two ends"):
        _prune.TextRanges([cut("a", BEFORE)])
    with pytest.raises(ValueError, match="two ends"):
        _prune.TextRanges([])
    with pytest.raises(ValueError, match="outermost"):
        _prune.TextRanges([cut("a", BEFORE), None, None, cut("b", BEFORE)])
