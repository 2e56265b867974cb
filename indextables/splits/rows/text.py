"""Which encoding a chunk of strings or binaries gets, decided by what it would cost.

In order of preference at equal size: dictionary codes (few distinct values), a template (all values
of one shape), pair codes (anything with repeating parts), plain bytes. zstd blocks are the
exception for long values that repeat each other: a single value costs a whole block there, so they
must be less than half the size of pair codes.

A stream keeps its dictionary and its pair table from chunk to chunk, so their pages are written
once; a table is learned again when it serves a chunk clearly worse than the one it was learned
from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from indextables.native._rows_lexicon import Lexicon
from indextables.native._rows_pairs import PairTable, Trainer
from indextables.native._rows_spell import (
    CodeSpelling,
    PairSpelling,
    TemplateSpelling,
    ZstdSpelling,
    find_template,
)

Array = np.ndarray[Any, Any]

SAMPLE_VALUES = 2048
DICTIONARY_BYTES = 128 << 10
TRAIN_BYTES = 2 << 20
MEASURE_BYTES = 256 << 10
ZSTD_SAMPLE = 64 << 10
ZSTD_LEVEL = 3
CAPACITIES = (4096, 16384)
BYTES_PER_SIGHTING = 32
END_COST = 1.25


@dataclass(slots=True)
class Choice:
    """An encoding for one chunk, its resource page, and the bytes it is expected to take."""

    spelling: Any
    page: bytes | None
    cost: float


@dataclass(slots=True)
class Values:
    """The non-null values of a chunk: bytes, offsets from 0, and the Arrow array of them."""

    array: pa.Array
    data: Array
    offsets: Array

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    @property
    def total(self) -> int:
        return int(self.offsets[-1])


class TextStream:
    """Decisions for one stream of strings, with what is kept between its chunks."""

    def __init__(self, compression: str) -> None:
        self.compression = compression
        self.words: pa.Array | None = None
        self.words_page: bytes | None = None
        self.table: PairTable | None = None
        self.table_page: bytes | None = None
        self.table_rate = 0.0

    def choose(self, values: Values) -> Choice:
        """The cheapest encoding for this chunk."""
        plain = Choice(None, None, values.total + END_COST * values.count)
        if values.total == 0 or self.compression == "none":
            return plain
        if self.compression == "zstd":
            return self._zstd(values)
        coded, shaped = self._dictionary(values), self._template(values)
        best = min([c for c in (plain, coded, shaped) if c is not None], key=_cost)
        if shaped is not None or best.cost < plain.cost / 4:
            return best
        best = min([best, self._pairs(values)], key=_cost)
        squeezed = self._zstd(values)
        return squeezed if squeezed.cost < best.cost / 2 else best

    def _dictionary(self, values: Values) -> Choice | None:
        step = max(values.count // SAMPLE_VALUES, 1)
        sample = values.array.take(pa.array(np.arange(0, values.count, step)))
        if len(sample) > 64 and len(sample.unique()) > len(sample) // 2:
            return None
        encoded = values.array.dictionary_encode()
        words, codes = encoded.dictionary, encoded.indices
        if _text_bytes(words) > DICTIONARY_BYTES:
            return None
        if self.words is not None:
            mapped = pc.index_in(words, self.words)
            if mapped.null_count == 0:
                words, codes = self.words, mapped.take(codes)
        fresh = words is not self.words
        page = dictionary_page(words) if fresh else self.words_page
        assert page is not None
        self.words, self.words_page = words, page
        cost = values.count * max(len(words) - 1, 1).bit_length() / 8
        numbers = np.ascontiguousarray(codes.to_numpy(zero_copy_only=False), np.uint64)
        return Choice(CodeSpelling(numbers), page, cost + (len(page) if fresh else 0))

    def _template(self, values: Values) -> Choice | None:
        if find_template(values.data, values.offsets[:257]) is None:
            return None
        page = find_template(values.data, values.offsets)
        if page is None:
            return None
        shape = Lexicon(page)
        return Choice(TemplateSpelling(shape), page, shape.row_bits * values.count / 8)

    def _pairs(self, values: Values) -> Choice:
        sample = _sample(values, MEASURE_BYTES, seed=2)
        sampled = int((values.offsets[sample + 1] - values.offsets[sample]).sum())
        if self.table is not None:
            rate = _rate(self.table, values, sample, sampled)
            if rate < self.table_rate * 1.1:
                return self._with_table(values, rate, 0)
        table, rate = _learn(values, sample, sampled)
        page = table.page()
        fresh = len(page)
        if self.table is not None:
            old = _rate(self.table, values, sample, sampled)
            if rate * values.total + fresh > old * values.total:
                return self._with_table(values, old, 0)
        self.table, self.table_page, self.table_rate = table, page, rate
        return self._with_table(values, rate, fresh)

    def _with_table(self, values: Values, rate: float, extra: int) -> Choice:
        assert self.table is not None
        cost = rate * values.total + END_COST * values.count + extra
        return Choice(PairSpelling(self.table), self.table_page, cost)

    def _zstd(self, values: Values) -> Choice:
        compressor = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=False)
        raw = values.data[: min(values.total, ZSTD_SAMPLE)].tobytes()
        rate = len(compressor.compress(raw)) / max(len(raw), 1)
        cost = rate * values.total + END_COST * values.count
        return Choice(ZstdSpelling(compressor.compress), None, cost)


def dictionary_page(words: pa.Array) -> bytes:
    """A text dictionary as a resource page."""
    lengths = pc.binary_length(words).to_numpy(zero_copy_only=False)
    ends = np.cumsum(lengths, dtype=np.uint32).astype("<u4")
    head = bytes([2, 0, 0, 0]) + len(words).to_bytes(4, "little")
    return head + ends.tobytes() + b"".join(words.cast(pa.binary()).to_pylist())


def _cost(choice: Choice) -> float:
    return choice.cost


def _text_bytes(words: pa.Array) -> int:
    return int(pc.sum(pc.binary_length(words)).as_py() or 0) + 4 * len(words)


def _sample(values: Values, limit: int, seed: int) -> Array:
    """Value numbers in random order whose values are about ``limit`` bytes in all."""
    order = np.random.default_rng(seed).permutation(values.count)
    sizes = np.cumsum(values.offsets[order + 1] - values.offsets[order])
    return order[: int(np.searchsorted(sizes, limit)) + 1]


def _rate(table: PairTable, values: Values, sample: Array, sampled: int) -> float:
    """Bytes of codes that a byte of the sample needs."""
    codes = table.measure(values.data, values.offsets.view(np.int64), sample)
    return float(codes * table.code_width() / 8 / max(sampled, 1))


def _learn(values: Values, sample: Array, sampled: int) -> tuple[PairTable, float]:
    """The table (of the capacities tried) that makes the chunk and its page smallest."""
    order = _sample(values, TRAIN_BYTES, seed=1)
    size = min(TRAIN_BYTES, values.total)
    found = []
    for capacity in CAPACITIES:
        table = _trained(values, order, size, capacity)
        rate = _rate(table, values, sample, sampled)
        found.append((rate * values.total + len(table.page()), rate, table))
        if table.count < capacity:
            break
    _, rate, table = min(found, key=lambda entry: entry[0])
    return table, rate


def _trained(values: Values, order: Array, size: int, capacity: int) -> PairTable:
    """Promote pairs at the highest threshold that fills the table."""
    threshold = max(2, size // (capacity * BYTES_PER_SIGHTING))
    while True:
        trainer = Trainer(capacity, threshold)
        trainer.learn(values.data, values.offsets.view(np.int64), order)
        if trainer.table.count >= capacity or threshold == 2:
            return trainer.table
        threshold = max(2, threshold // 2)
