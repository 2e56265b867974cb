"""Each kernel against a few lines of plain Python."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rows_data import mapped, write
from rows_oracle import (
    CODES,
    DECIMALS,
    INTEGERS,
    LISTS,
    PAIRS,
    PLAIN,
    TEMPLATE,
    WIDE,
    ZSTD,
    Bytes,
    Oracle,
    crc32c,
    float_bits,
    head,
    number_values,
    template_values,
    text_values,
    vector,
    words_of,
)

from indextables.errors import CorruptFileError
from indextables.native._crc32c import crc32c as checksum
from indextables.native._rows_blocks import BlockSet, Spans, between, locate, rows_left
from indextables.native._rows_encode import BlockWriter
from indextables.native._rows_fixed import Dictionaries, decode_fixed
from indextables.native._rows_lexicon import Lexicon
from indextables.native._rows_pairs import PairTable, Trainer
from indextables.native._rows_spell import PairSpelling, TemplateSpelling, find_template

NONE = np.zeros(0, np.uint8)


def one_block(count: int) -> BlockWriter:
    bounds = np.array([0, count], np.int64)
    return BlockWriter(bounds, bounds, np.array([max(count, 1)], np.int64), NONE)


def block_set(data: bytes, rows: int) -> BlockSet:
    table = np.array([[0, len(data), checksum(data), rows]], np.int64)
    blocks = BlockSet([data], np.zeros(1, np.int64), np.zeros(0, np.int64), table)
    assert blocks.bad == -1
    return blocks


def texts(values: list[bytes]) -> tuple[Any, Any]:
    offsets = np.concatenate([[0], np.cumsum([len(v) for v in values])]).astype(np.uint64)
    return np.frombuffer(b"".join(values) or b"\0", np.uint8), offsets


@given(
    width=st.integers(0, 64),
    count=st.integers(1, 90),
    seed=st.integers(0, 1 << 32),
    base=st.integers(-(1 << 63), (1 << 63) - 1),
    rise=st.sampled_from([0, 1, 1000, -77777, 1 << 40]),
    factor=st.sampled_from([1, 1, 3, 1000]),
)
@settings(max_examples=300)
def test_integers(width: int, count: int, seed: int, base: int, rise: int, factor: int) -> None:
    rng = random.Random(seed)
    top = (1 << 64) - 1
    values = [(base + rise * i + factor * rng.getrandbits(width)) & top for i in range(count)]
    writer = one_block(count)
    writer.integers(np.array(values, np.uint64))
    data, lengths, crcs = writer.finish()
    assert (len(data), crc32c(data)) == (int(lengths[0]), int(crcs[0]))
    kind, valid, body = head(data, count)
    assert (kind, sum(valid)) == (INTEGERS, count)
    assert vector(body, count) == values
    low, high = sorted((rng.randint(0, count), rng.randint(0, count)))
    spans = Spans(
        np.zeros(2, np.int32),
        np.array([low, 0], np.uint32),
        np.array([high, count], np.uint32),
    )
    out = np.zeros(spans.total, np.uint64)
    nothing = Dictionaries([], np.zeros(1, np.int32))
    decode_fixed(block_set(data, count), spans, 64, nothing, out.view(np.uint8), NONE)
    assert out.tolist() == values[low:high] + values


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=60), st.integers(0, 9), st.data()
)
def test_decimal_floats(digits: list[int], exponent: int, data: Any) -> None:
    floats = [d / 10.0**exponent for d in digits]
    odd = data.draw(st.sampled_from([None, float("nan"), -0.0, 1e-300, float("inf"), 0.1 + 0.2]))
    if odd is not None and len(floats) >= 20:
        floats[data.draw(st.integers(0, len(floats) - 1))] = odd
    bits = np.array([float_bits(f, 64) for f in floats], np.uint64)
    writer = one_block(len(bits))
    writer.floats(bits, 64)
    block = writer.finish()[0]
    kind, _, body = head(block, len(bits))
    assert kind in (DECIMALS, INTEGERS)
    assert number_values(kind, body, len(bits), b"", 64) == bits.tolist()


def test_short_decimals_are_stored_as_decimals() -> None:
    values = np.round(np.random.default_rng(5).lognormal(3, 1, 4096), 3)
    values[17] = np.nan
    writer = one_block(4096)
    writer.floats(values.view(np.uint64), 64)
    block = writer.finish()[0]
    assert block[0] == DECIMALS
    assert len(block) < 4096 * 3


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=60), st.integers(0, 1 << 30))
@settings(max_examples=80)
def test_pairs(values: list[bytes], seed: int) -> None:
    values = values * 3 + [b"connection reset by peer"] * (seed % 5)
    data, offsets = texts(values)
    trainer = Trainer(300 + seed % 200, 2 + seed % 3)
    order = np.random.default_rng(seed).permutation(len(values))
    learned = trainer.learn(data, offsets.view(np.int64), order)
    table = trainer.table
    assert 0 < learned <= len(values)
    assert learned == len(values) or table.count == table.capacity
    words = table.words_list()
    assert words[:256] == [bytes([b]) for b in range(256)]
    assert len(set(words)) == len(words) == table.count
    assert all(1 <= len(word) <= 16 for word in words)
    assert words_of(table.page()) == Lexicon(table.page()).words() == words
    writer = one_block(len(values))
    writer.text(data, offsets, PairSpelling(table))
    block = writer.finish()[0]
    kind, _, body = head(block, len(values))
    assert kind == PAIRS
    assert text_values(kind, body, len(values), table.page()) == values
    greedy = sum(len(longest_match(words, value)) for value in values)
    assert table.measure(data, offsets.view(np.int64), np.arange(len(values))) == greedy


def longest_match(words: list[bytes], value: bytes) -> list[bytes]:
    known, out = set(words), []
    while value:
        size = next(n for n in range(min(16, len(value)), 0, -1) if value[:n] in known)
        out.append(value[:size])
        value = value[size:]
    return out


def test_pair_table_bounds() -> None:
    for capacity in (0, 255, 65537):
        with pytest.raises(ValueError, match="pair table"):
            PairTable(capacity)
    with pytest.raises(ValueError, match="offsets"):
        PairTable(256).measure(NONE, np.array([0, 5], np.int64), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match="row number"):
        PairTable(256).measure(NONE, np.array([0, 0], np.int64), np.array([1]))


@pytest.mark.parametrize(
    ("values", "bits"),
    [
        ([b"00ff-x", b"a1b2-x", b"c3d4-x"], 16),
        ([b"user-000001", b"user-123450", b"user-999999"], 20),
        ([b"DEAD", b"BEE0", b"0123"], 16),
        ([b"2024-01-31T10:00:00Z", b"1999-12-01T23:59:59Z"], None),
        ([b"same", b"same"], 0),
        ([b"0123456789abcdef0123", b"fedcba98765432100000"], None),
    ],
)
def test_templates(values: list[bytes], bits: int | None) -> None:
    data, offsets = texts(values)
    page = find_template(data, offsets)
    assert page is not None
    shape = Lexicon(page)
    if bits is not None:
        assert shape.row_bits == bits
    writer = one_block(len(values))
    writer.text(data, offsets, TemplateSpelling(shape))
    kind, _, body = head(writer.finish()[0], len(values))
    assert kind == TEMPLATE
    assert template_values(page, body.rest(), len(values)) == values


@pytest.mark.parametrize(
    "values",
    [[b"ab", b"abc"], [b"xyz", b"xyw"], [b"aB", b"Ab"], [b""], [b"x" * 200, b"y" * 200], []],
)
def test_shapes_without_a_template(values: list[bytes]) -> None:
    assert find_template(*texts(values)) is None


def test_a_block_that_leaves_the_template_is_plain() -> None:
    values = [b"%04d" % i for i in range(16)] + [b"none"]
    page = find_template(*texts(values[:16]))
    assert page is not None
    bounds = np.array([0, 8, 17], np.int64)
    writer = BlockWriter(bounds, bounds, np.diff(bounds), NONE)
    writer.text(*texts(values), TemplateSpelling(Lexicon(page)))
    data, lengths, _ = writer.finish()
    assert (data[0], data[int(lengths[0])]) == (TEMPLATE, PLAIN)


@given(
    chunks=st.lists(st.tuples(st.integers(1, 60), st.integers(0, 6)), min_size=1, max_size=4),
    data=st.data(),
)
def test_locate(chunks: list[tuple[int, int]], data: Any) -> None:
    starts = np.concatenate([[0], np.cumsum([n for n, _ in chunks])]).astype(np.int64)
    shifts = np.array([s for _, s in chunks], np.uint8)
    counts = [-(-n // (1 << s)) for n, s in chunks]
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    rows = sorted(data.draw(st.lists(st.integers(0, int(starts[-1]) - 1), max_size=30)))
    blocks, spans = locate(np.array(rows, np.uint32), starts, shifts, first)
    seen = []
    for block, low, high in zip(spans.block, spans.start, spans.stop, strict=True):
        ordinal = int(blocks[block])
        chunk = int(np.searchsorted(first, ordinal, side="right")) - 1
        begin = int(starts[chunk]) + ((ordinal - int(first[chunk])) << int(shifts[chunk]))
        seen += [begin + i for i in range(int(low), int(high))]
    assert seen == rows
    assert spans.total == len(rows)
    assert np.all(np.diff(blocks) > 0)


@given(
    base=st.integers(0, 50),
    skipped=st.integers(0, 40),
    count=st.integers(0, 90),
    shift=st.integers(0, 6),
    data=st.data(),
)
def test_between(base: int, skipped: int, count: int, shift: int, data: Any) -> None:
    start, stop = base + skipped, base + skipped + count
    numbers = st.lists(st.integers(start, max(stop - 1, start)), unique=True, max_size=60)
    gone = sorted(data.draw(numbers)) if count else []
    some = np.array(gone, np.uint32)
    blocks, spans = between(start, stop, some, base, shift, 7)
    seen = []
    for block, low, high in zip(spans.block, spans.start, spans.stop, strict=True):
        begin = base + ((int(blocks[block]) - 7) << shift)
        assert low < high <= 1 << shift
        seen += [begin + i for i in range(int(low), int(high))]
    want = [row for row in range(start, stop) if row not in gone]
    assert seen == want == rows_left(start, stop, some).tolist()
    assert spans.total == len(want)
    assert blocks.tolist() == sorted({7 + ((row - base) >> shift) for row in want})


@pytest.mark.parametrize("gone", [[5, 4], [4, 4], [1], [10], [3, 12]])
def test_between_refuses_what_is_not_between(gone: list[int]) -> None:
    some = np.array(gone, np.uint32)
    with pytest.raises(ValueError, match=r"ascend|outside"):
        between(2, 10, some, 0, 2, 0)
    with pytest.raises(ValueError, match=r"ascend|not among"):
        rows_left(2, 10, some)


def test_many_empty_spans_are_no_run() -> None:
    """A run has room for so many spans as it may have slots, however small they are."""
    writer = one_block(900)
    writer.integers(np.arange(900, dtype=np.uint64) * np.uint64(977) % np.uint64(13))
    blocks = block_set(writer.finish()[0], 900)
    low = np.repeat(np.arange(900, dtype=np.uint32), 3)
    high = low + (np.arange(len(low)) % 3 == 1).astype(np.uint32)
    spans = Spans(np.zeros(len(low), np.int32), low, high)
    nothing = Dictionaries([], np.zeros(1, np.int32))
    for bits, kind in ((64, np.uint64), (32, np.uint32)):
        out = np.zeros(spans.total, kind)
        decode_fixed(blocks, spans, bits, nothing, out.view(np.uint8), NONE)
        assert out.tolist() == [i * 977 % 13 for i in range(900)]


def kinds(table: pa.Table, **options: Any) -> set[int]:
    file, payload = write(table, **options)
    oracle = Oracle(file.directory, payload)
    return {block[0] for blocks in oracle.blocks.values() for block in blocks if block}


def test_columns_get_the_spelling_they_deserve() -> None:
    rng = np.random.default_rng(1)
    n = 4000
    uuids = [f"{rng.integers(1 << 60):016x}" for _ in range(n)]
    words = ["timeout", "connection", "reset", "retry", "backend", "queue", "worker"]
    messages = [" ".join(rng.choice(words, 12)) + str(rng.integers(9)) for _ in range(n)]
    stanza = "".join(chr(c) for c in rng.integers(33, 126, 3000))
    assert kinds(pa.table({"a": uuids})) == {TEMPLATE}
    assert kinds(pa.table({"a": messages})) == {PAIRS}
    assert kinds(pa.table({"a": [w + "!" * int(rng.integers(9)) for w in words] * 500})) == {CODES}
    assert kinds(pa.table({"a": [stanza + str(i) * 3 for i in range(200)]})) == {ZSTD}
    assert kinds(pa.table({"a": rng.choice([-5, 10**12, 77], n)})) == {CODES}
    assert kinds(pa.table({"a": rng.integers(0, 9999, n)})) == {INTEGERS}
    wide = pa.array([10**30 + i for i in range(50)], pa.decimal128(38, 0))
    assert kinds(pa.table({"a": wide})) == {WIDE}
    assert kinds(pa.table({"a": [[1, 2], []] * 9})) == {LISTS, INTEGERS}
    assert kinds(pa.table({"a": messages}), compression="none") == {PLAIN}


def test_sequences_cost_next_to_nothing() -> None:
    n = 50_000
    ids = pa.array(range(7_000_000, 7_000_000 + n))
    times = pa.array([1_700_000_000_000_000 + 250_000 * i for i in range(n)], pa.timestamp("us"))
    millis = pa.array([1000 * (i * 7919 % 1024) for i in range(n)])
    file, payload = write(pa.table({"ids": ids, "times": times}))
    assert len(payload) < n / 20
    assert len(write(pa.table({"m": millis}))[1]) < n * 1.4
    assert mapped(file, payload).take([49_999])["ids"].to_pylist() == [7_049_999]


@pytest.mark.parametrize(
    "page",
    [
        b"",
        b"\x09\0\0\0\0\0\0\0",
        b"\x02\0\0\0\xff\xff\xff\xff",
        b"\x02\0\0\0\x01\0\0\0\x05\0\0\0abc",
        b"\x02\0\0\0\x01\0\0\0\x02\0\0\0abc",
        b"\x03\x08\0\0\x01\0\0\0\x11" + b"x" * 17,
        b"\x04\0\x05\0\x01\0\0\0\x01\x04",
        b"\x04\0\x11\0\x01\0\0\0\x01\x11",
        b"\x04\0\x01\0\x01\0\0\0\x07\x01",
    ],
)
def test_forged_pages_are_refused(page: bytes) -> None:
    with pytest.raises(CorruptFileError):
        Lexicon(page)


def test_bytes_cursor_of_the_oracle_is_strict() -> None:
    with pytest.raises(AssertionError):
        Bytes(b"abc").number(4)
