"""FilterSet: the answers of its filters, one by one, in their order."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from native_keys import splitmix_keys
from numpy.typing import NDArray

from indextables.native import BinaryFuse8, BinaryFuse16, FilterSet
from indextables.native._fuse import BinaryFuse

SIZES = [0, 1, 3, 30, 100, 100, 300, 300, 1010]


def mixed_filters(count: int, seed: int) -> list[BinaryFuse]:
    source = np.random.default_rng(seed)
    out: list[BinaryFuse] = []
    for state in range(count):
        cls = BinaryFuse16 if source.random() < 0.3 else BinaryFuse8
        keys = splitmix_keys(seed + state, int(source.choice(SIZES)))
        out.append(cls.build(keys, round_segments=bool(source.integers(2))))
    return out


def one_by_one(filters: list[BinaryFuse], keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """A row for each filter, a column for each key."""
    rows = [item.contains_many(keys) for item in filters]
    return np.array(rows, np.bool_).reshape(-1, len(keys))


@given(
    count=st.integers(0, 40),
    seed=st.integers(0, 2**32),
    share=st.sampled_from([0.0, 0.02, 0.5, 1.0]),
)
def test_probes_equal_the_single_answers(count: int, seed: int, share: float) -> None:
    filters = mixed_filters(count, seed)
    held = FilterSet(filters)
    keys = splitmix_keys(seed, 30)
    expected = one_by_one(filters, keys)
    mask = np.random.default_rng(seed).random(count) < share
    assert len(held) == count
    assert sum(held.groups) == count
    for column, key in enumerate(keys.tolist()):
        assert (held.probe(key) == expected[:, column]).all()
        assert (held.probe(key, mask) == expected[:, column] & mask).all()
    for some in (slice(0, 0), slice(0, 1), slice(0, 3), slice(None)):
        any_of, all_of = expected[:, some].any(axis=1), expected[:, some].all(axis=1)
        assert (held.probe_any(keys[some]) == any_of).all()
        assert (held.probe_any(keys[some], mask) == any_of & mask).all()
        assert (held.probe_all(keys[some]) == all_of).all()
        assert (held.probe_all(keys[some], mask) == all_of & mask).all()


@pytest.mark.parametrize("cls", [BinaryFuse8, BinaryFuse16])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 63, 64, 65, 200])
def test_groups_of_every_width(cls: type[BinaryFuse], count: int) -> None:
    filters: list[BinaryFuse] = [
        cls.build(splitmix_keys(1000 * state, 300), first_seed=0) for state in range(count)
    ]
    same_seed = [item for item in filters if item.seed == filters[0].seed]
    held = FilterSet(same_seed)
    assert held.groups == [len(same_seed)]
    keys = np.concatenate([splitmix_keys(1000 * state, 3) for state in range(count)])
    expected = one_by_one(same_seed, keys)
    got = np.array([held.probe(key) for key in keys.tolist()]).T
    assert (got == expected).all()
    assert expected.any(axis=0).sum() >= 3 * len(same_seed)


def test_few_survivors_among_many_filters() -> None:
    """``probe_all`` leaves the groups once few filters are left; the answers stay the same."""
    common = splitmix_keys(9, 40)
    filters: list[BinaryFuse] = [
        BinaryFuse8.build(common if i % 97 == 0 else splitmix_keys(5000 + i, 40))
        for i in range(1000)
    ]
    held = FilterSet(filters)
    expected = one_by_one(filters, common).all(axis=1)
    assert (held.probe_all(common) == expected).all()
    assert np.flatnonzero(expected).tolist()[:3] == [0, 97, 194]
    few = np.zeros(1000, np.bool_)
    few[[0, 1, 97]] = True
    assert np.flatnonzero(held.probe_all(common, few)).tolist() == [0, 97]
    assert np.flatnonzero(held.probe_any(common[:1], few)).tolist()[0] == 0


def test_equal_shapes_share_a_group_and_memory_is_that_of_the_filters() -> None:
    sets = [splitmix_keys(state, 20_000 + 10 * state) for state in range(60)]
    filters = [BinaryFuse8.build(keys, round_segments=True) for keys in sets]
    held = FilterSet(filters)
    assert held.groups[0] >= 50
    assert held.nbytes == sum(item.nbytes for item in filters)
    for state in (0, 30, 59):
        assert held.probe(int(sets[state][7]))[state]


def test_an_empty_set() -> None:
    held = FilterSet([])
    assert len(held) == 0
    assert held.probe(1).tolist() == held.probe_all([1, 2]).tolist() == []
    assert held.groups == []


@pytest.mark.parametrize("wrong", [[None], ["filter"], [b""]])
def test_only_filters_are_held(wrong: list[Any]) -> None:
    with pytest.raises(TypeError, match="Binary Fuse filters"):
        FilterSet(wrong)


def test_a_mask_of_another_length_is_refused() -> None:
    with pytest.raises(ValueError, match="one bool for each"):
        FilterSet([BinaryFuse8()]).probe(1, [True, False])


def test_probing_from_several_threads() -> None:
    filters = mixed_filters(300, 5)
    held = FilterSet(filters)
    keys = splitmix_keys(5, 40)
    expected = one_by_one(filters, keys).T
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(held.probe, keys.tolist() * 8))
    assert (np.array(got) == np.tile(expected, (8, 1))).all()
