"""Spellings of text blocks: dictionary codes, pair codes, templates, zstd.

Each is handed one block's values at a time and writes the block, or declines, upon which the block
is written ``PLAIN``.

A template is the shape that all values of a chunk share: same length, and at every place either
always the same character, or a decimal digit, or a hex digit of one case. Digits next to each other
become one number: ``9e767967-ccab-4...`` is 122 bits, ``user-004711`` is 20.
"""

from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._cursor cimport it_le64
from indextables.native._rows_bits cimport packed_bytes
from indextables.native._rows_blocks cimport CODES, PAIRS, TEMPLATE, ZSTD
from indextables.native._rows_encode cimport BlockWriter, Spelling
from indextables.native._rows_pairs cimport PairTable
from indextables.native._rows_lexicon cimport (
    OP_DECIMAL, OP_HEX_LOWER, OP_HEX_UPPER, OP_LITERAL, TEMPLATE_PAGE, Lexicon, Op,
)
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef class CodeSpelling(Spelling):
    """Numbers of dictionary words, one for each value of the chunk."""
    cdef const uint64_t[::1] codes

    def __init__(self, codes):
        self.codes = codes

    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1:
        w.expect(self.codes.shape[0])
        if w.put_head(b, CODES):
            w.put_vector(
                &self.codes[0] + w.values[b], w.values[b + 1] - w.values[b], w.least_width(b)
            )
        return 1


cdef class PairSpelling(Spelling):
    """Runs of words of a pair table."""
    cdef PairTable table
    cdef uint32_t width
    cdef object held
    cdef uint16_t[::1] codes

    def __init__(self, PairTable table):
        self.table = table
        self.width = table.code_width()

    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1:
        cdef int64_t first = w.values[b], n = w.values[b + 1] - first, i
        cdef uint64_t total = offsets[first + n] - offsets[first], used = 0
        if self.held is None or <uint64_t>self.codes.shape[0] < total:
            self.held = np.empty(max(2 * total, <uint64_t>4096), np.uint16)
            self.codes = self.held
        if not w.put_head(b, PAIRS):
            return 1
        with nogil:
            for i in range(first, first + n):
                used += self.table.encode(
                    data + offsets[i], offsets[i + 1] - offsets[i], size - offsets[i],
                    &self.codes[0] + used,
                )
                ends[i - first] = used
            w.put_vector(ends, n, w.least_width(b))
            w.put_number(total, 4)
            put_codes(w, &self.codes[0], used, self.width)
        return 1


cdef int put_codes(
    BlockWriter w, const uint16_t* codes, uint64_t n, uint32_t width
) except -1 nogil:
    cdef uint64_t i, acc = 0, word
    cdef uint32_t fill = 0
    cdef uint8_t* out
    w.need(packed_bytes(n, width) + 8)
    out = w.data + w.size
    for i in range(n):
        acc |= <uint64_t>codes[i] << fill
        fill += width
        if fill >= 48:
            word = it_le64(acc)
            memcpy(out, &word, 8)
            out += fill >> 3
            acc >>= fill & ~7
            fill &= 7
    word = it_le64(acc)
    memcpy(out, &word, 8)
    w.size += packed_bytes(n, width)
    return 0


cdef class ZstdSpelling(Spelling):
    """Ends of the values, then all their bytes as one frame of ``compress``."""
    cdef object compress

    def __init__(self, compress):
        self.compress = compress

    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1:
        cdef int64_t first = w.values[b], n = w.values[b + 1] - first, i
        cdef uint64_t total = offsets[first + n] - offsets[first]
        cdef const uint8_t[::1] frame
        if total == 0:
            return 0
        frame = self.compress(data[offsets[first]:offsets[first + n]])
        if <uint64_t>frame.shape[0] >= total:
            return 0
        if w.put_head(b, ZSTD):
            for i in range(n):
                ends[i] = offsets[first + i + 1] - offsets[first]
            w.put_vector(ends, n, w.least_width(b))
            w.put_number(total, 4)
            w.put(&frame[0], frame.shape[0])
        return 1


cdef class TemplateSpelling(Spelling):
    """The digits of values that all fit one template."""
    cdef Lexicon shape

    def __init__(self, Lexicon shape):
        if shape.kind != TEMPLATE_PAGE:
            raise ValueError("not a template")
        self.shape = shape

    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1:
        cdef int64_t first = w.values[b], n = w.values[b + 1] - first, i
        cdef Sink sink
        cdef bint fits = True
        if not w.put_head(b, TEMPLATE):
            return 1
        w.need(packed_bytes(n, self.shape.row_bits) + 8)
        sink.out = w.data + w.size
        sink.acc = 0
        sink.fill = 0
        with nogil:
            for i in range(first, first + n):
                if (
                    offsets[i + 1] - offsets[i] != self.shape.row_chars
                    or not pack_value(self.shape, data + offsets[i], &sink)
                ):
                    fits = False
                    break
        if not fits:
            return 0
        sink_flush(&sink)
        w.size += packed_bytes(n, self.shape.row_bits)
        return 1


cdef struct Sink:
    uint8_t* out
    uint64_t acc
    uint32_t fill


cdef inline void sink_put(Sink* s, uint64_t value, uint32_t width) noexcept nogil:
    cdef uint64_t word
    s.acc |= value << s.fill
    if s.fill + width < 64:
        s.fill += width
        return
    word = it_le64(s.acc)
    memcpy(s.out, &word, 8)
    s.out += 8
    s.acc = value >> (64 - s.fill) if s.fill else 0
    s.fill = s.fill + width - 64


cdef inline void sink_flush(Sink* s) noexcept nogil:
    cdef uint64_t word = it_le64(s.acc)
    memcpy(s.out, &word, 8)


cdef inline int32_t digit_of(uint8_t c, uint32_t kind) noexcept nogil:
    """Value of a digit of this kind, or -1."""
    if 48 <= c <= 57:
        return c - 48
    if kind == OP_HEX_LOWER and 97 <= c <= 102:
        return c - 87
    if kind == OP_HEX_UPPER and 65 <= c <= 70:
        return c - 55
    return -1


cdef bint pack_value(Lexicon shape, const uint8_t* value, Sink* sink) noexcept nogil:
    cdef uint32_t i, k, radix
    cdef int32_t digit
    cdef uint64_t number
    cdef const Op* op
    for i in range(shape.count):
        op = &shape.ops[i]
        if op.kind == OP_LITERAL:
            for k in range(op.chars):
                if value[k] != shape.data[op.at + k]:
                    return False
        else:
            radix = 10 if op.kind == OP_DECIMAL else 16
            number = 0
            for k in range(op.chars):
                digit = digit_of(value[k], op.kind)
                if digit < 0:
                    return False
                number = number * radix + digit
            sink_put(sink, number, op.bits)
        value += op.chars
    return True


cdef enum:
    SAW_DIGIT = 1
    SAW_LOWER = 2
    SAW_UPPER = 4
    SAW_OTHER = 8
    SAW_SEVERAL = 16
    LONGEST = 96


cdef inline uint8_t class_of(uint8_t c) noexcept nogil:
    if 48 <= c <= 57:
        return SAW_DIGIT
    if 97 <= c <= 102:
        return SAW_LOWER
    if 65 <= c <= 70:
        return SAW_UPPER
    return SAW_OTHER


def find_template(const uint8_t[::1] data, const uint64_t[::1] offsets):
    """The template page that all values fit, or None."""
    cdef Py_ssize_t n = offsets.shape[0] - 1, i
    cdef uint64_t length, k
    cdef uint8_t seen[LONGEST]
    cdef const uint8_t* first
    cdef const uint8_t* value
    cdef bint fits = True
    if n == 0 or offsets[n] > <uint64_t>data.shape[0]:
        return None
    length = offsets[1] - offsets[0]
    if length == 0 or length > LONGEST:
        return None
    memset(seen, 0, LONGEST)
    first = &data[offsets[0]]
    with nogil:
        for i in range(n):
            if offsets[i + 1] - offsets[i] != length:
                fits = False
                break
            value = &data[offsets[i]]
            for k in range(length):
                seen[k] |= class_of(value[k]) | (SAW_SEVERAL if value[k] != first[k] else 0)
    if not fits:
        return None
    return template_page(first[:length], seen[:length])


cdef object template_page(bytes first, bytes seen):
    """The page for values like ``first`` of whose places ``seen`` tells the characters."""
    parts = []
    chars = b""
    current = None
    for char, flags in zip(first, seen):
        kind = part_kind(flags)
        if kind is None:
            return None
        joined = None if current is None else joined_kind(current, kind)
        if joined is None or len(chars) >= (LONGEST if kind == OP_LITERAL else 16):
            if chars:
                parts.append((current, chars))
            joined = kind
            chars = b""
        current = joined
        chars += bytes([char])
    parts.append((current, chars))
    return _template_bytes(parts, len(first))


def part_kind(int flags):
    """What a place is, by the characters seen there; None where no part can hold it."""
    if not flags & SAW_SEVERAL:
        return OP_LITERAL
    return {
        SAW_DIGIT: OP_DECIMAL,
        SAW_LOWER: OP_HEX_LOWER,
        SAW_UPPER: OP_HEX_UPPER,
        SAW_DIGIT | SAW_LOWER: OP_HEX_LOWER,
        SAW_DIGIT | SAW_UPPER: OP_HEX_UPPER,
    }.get(flags & ~SAW_SEVERAL)


def joined_kind(int left, int right):
    """The kind of a part that holds two neighbours, or None where they stay apart."""
    if left == right:
        return left
    if left == OP_LITERAL or right == OP_LITERAL:
        return None
    pair = {left, right}
    if pair == {OP_DECIMAL, OP_HEX_LOWER}:
        return OP_HEX_LOWER
    if pair == {OP_DECIMAL, OP_HEX_UPPER}:
        return OP_HEX_UPPER
    return None


cdef object _template_bytes(list parts, int length):
    page = bytearray([TEMPLATE_PAGE, 0])
    page += length.to_bytes(2, "little") + len(parts).to_bytes(4, "little")
    for kind, chars in parts:
        page += bytes([kind, len(chars)])
        if kind == OP_LITERAL:
            page += chars
    return bytes(page)
