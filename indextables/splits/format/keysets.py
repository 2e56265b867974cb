"""Sets of keys: hashes, how many documents hold each, and in which splits.

A key hash is the XXH64 of ``field ":" text`` (``expr/keys.py``) cut to its upper ``bits`` bits, at
most 48. Cutting loses nothing a filter promises: two keys that fall together are one key that both
of their splits hold, so an answer may name too many splits and never too few.

Document frequencies are kept in one byte: 0 unknown, up to 200 exact, above that in steps of about
a third. Sums of them over splits are as exact as their parts; one unknown part makes the sum
unknown. A row block is the number of 4,096 rows a document lies in; it is known only for keys of
one document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_BITS = 48
BLOCK_ROWS = 4096
EXACT = 200
_STEP = 1.36

_FREQUENCIES = np.array(
    [*range(EXACT + 1), *(round(EXACT * _STEP**k) for k in range(1, 256 - EXACT))], np.int64
)


def frequency_codes(counts: NDArray[Any]) -> NDArray[np.uint8]:
    """Numbers of documents, each in a byte."""
    middles = (_FREQUENCIES[EXACT:-1] + _FREQUENCIES[EXACT + 1 :]) / 2
    coarse = EXACT + np.searchsorted(middles, counts)
    return np.where(counts <= EXACT, counts, coarse).astype(np.uint8)


def frequencies(codes: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Numbers of documents; 0 is unknown."""
    return _FREQUENCIES[codes]


@dataclass(frozen=True, slots=True)
class KeySet:
    """Keys in ascending order; the splits of key ``i`` are ``ids[offsets[i]:offsets[i + 1]]``.

    No splits mean: everywhere.
    """

    hashes: NDArray[np.uint64]
    codes: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    ids: NDArray[np.uint32]
    blocks: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.hashes)

    @property
    def pairs(self) -> int:
        return len(self.ids)

    def part(self, first: int, end: int) -> KeySet:
        """The keys of a range of hashes."""
        a = np.searchsorted(self.hashes, np.uint64(first), "left")
        b = np.searchsorted(self.hashes, np.uint64(end - 1), "right")
        low, high = self.offsets[a], self.offsets[b]
        return KeySet(
            self.hashes[a:b],
            self.codes[a:b],
            self.offsets[a : b + 1] - low,
            self.ids[low:high],
            self.blocks[a:b],
        )


EMPTY = KeySet(
    np.empty(0, np.uint64),
    np.empty(0, np.uint8),
    np.zeros(1, np.int64),
    np.empty(0, np.uint32),
    np.empty(0, np.int32),
)


def of_one_split(
    hashes: NDArray[np.uint64],
    counts: NDArray[np.int64] | None = None,
    rows: NDArray[Any] | None = None,
) -> KeySet:
    """The keys of one column of one split: ascending 64-bit hashes, documents, first rows."""
    number = len(hashes)
    known = np.zeros(number, np.int64) if counts is None else counts
    blocks = np.full(number, -1, np.int32)
    if rows is not None:
        blocks = np.where(known == 1, rows // BLOCK_ROWS, -1).astype(np.int32)
    cut = hashes >> np.uint64(64 - MOST_BITS)
    ids = np.zeros(number, np.uint32)
    made = KeySet(cut, frequency_codes(known), np.arange(number + 1), ids, blocks)
    return made if _is_strict(cut) else merged([(made, 0, 1)])


def _is_strict(hashes: NDArray[np.uint64]) -> bool:
    return bool((hashes[1:] > hashes[:-1]).all())


def merged(parts: Sequence[tuple[KeySet, int, int]], cut: Sequence[int] = ()) -> KeySet:
    """One set of several: (keys, number of the first split, number of splits) each.

    ``cut`` says by how many bits the hashes of each part are shortened first.
    """
    if not any(len(keys) for keys, _, _ in parts):
        return EMPTY
    shifts = [np.uint64(bits) for bits in cut or [0] * len(parts)]
    hashes = np.concatenate([p[0].hashes >> bits for p, bits in zip(parts, shifts, strict=True)])
    known = np.concatenate([frequencies(keys.codes) for keys, _, _ in parts])
    blocks = np.concatenate([keys.blocks for keys, _, _ in parts])
    order = np.argsort(hashes, kind="stable")
    hashes, known, blocks = hashes[order], known[order], blocks[order]
    fresh = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=fresh[1:])
    starts = np.flatnonzero(fresh)
    counts = np.add.reduceat(known, starts)
    counts[np.minimum.reduceat(known, starts) == 0] = 0
    blocks = np.where(np.diff(starts, append=len(hashes)) == 1, blocks[starts], -1)
    offsets, ids = _joined(parts, order, starts)
    return KeySet(
        hashes[starts], frequency_codes(counts), offsets, ids, blocks.astype(np.int32, copy=False)
    )


def retained(keys: KeySet, splits: int, keep: NDArray[np.bool_]) -> KeySet:
    """The keys of the splits to keep, which are renumbered; the keys of others are dropped.

    Of a key that loses splits it is no longer known how many documents hold it.
    """
    offsets, ids = _named(keys, 0, splits)
    mask = keep[ids]
    ends = np.concatenate([[0], np.cumsum(mask)])[offsets]
    counts = np.diff(ends)
    stay = counts > 0
    codes = np.where(counts == np.diff(offsets), keys.codes, 0).astype(np.uint8)
    numbers = (np.cumsum(keep) - 1).astype(np.uint32)
    starts = np.zeros(int(stay.sum()) + 1, np.int64)
    np.cumsum(counts[stay], out=starts[1:])
    return KeySet(keys.hashes[stay], codes[stay], starts, numbers[ids[mask]], keys.blocks[stay])


def _joined(
    parts: Sequence[tuple[KeySet, int, int]], order: NDArray[np.int64], starts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """The splits of the joined keys: ``order`` sorts all keys, ``starts`` begin the joined ones."""
    named = [_named(*part) for part in parts]
    counts = np.concatenate([np.diff(offsets) for offsets, _ in named])
    ids = np.concatenate([found for _, found in named])
    first = np.cumsum(counts) - counts
    counts = counts[order]
    ends = np.cumsum(counts)
    # A pair's place: where its key's splits began before, and how far into them it is.
    places = np.repeat(first[order] - (ends - counts), counts) + np.arange(len(ids))
    ids = ids[places]
    fresh = np.zeros(len(order), np.int64)
    fresh[starts] = 1
    owner = np.repeat(np.cumsum(fresh) - 1, counts)
    wrong = (owner[1:] == owner[:-1]) & (ids[1:] <= ids[:-1])
    if wrong.any():
        by_split = np.lexsort((ids, owner))
        owner, ids = owner[by_split], ids[by_split]
        keep = np.ones(len(ids), np.bool_)
        keep[1:] = (owner[1:] != owner[:-1]) | (ids[1:] != ids[:-1])
        owner, ids = owner[keep], ids[keep]
    offsets = np.zeros(len(starts) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(starts)), out=offsets[1:])
    return offsets, ids


def _named(keys: KeySet, base: int, splits: int) -> tuple[NDArray[np.int64], NDArray[np.uint32]]:
    """Offsets and splits with new numbers, where keys that are everywhere name all splits."""
    counts = np.diff(keys.offsets)
    wide = counts == 0
    if not wide.any():
        return keys.offsets, keys.ids + np.uint32(base)
    full = np.where(wide, splits, counts)
    offsets = np.zeros(len(full) + 1, np.int64)
    np.cumsum(full, out=offsets[1:])
    ids = np.empty(offsets[-1], np.uint32)
    mask = np.repeat(wide, full)
    ids[~mask] = keys.ids
    ids[mask] = np.tile(np.arange(splits, dtype=np.uint32), int(wide.sum()))
    return offsets, ids + np.uint32(base)
