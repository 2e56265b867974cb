"""Blocks out of values: the writing half of the row format.

A ``BlockWriter`` knows where the blocks of a stream begin (in slots and in values, since nulls take
no room) and writes all blocks of one chunk in one call. For each vector of integers it tries a
plain frame of reference, one with a common divisor, and a straight line, and keeps the narrowest.

Where a block in a short spelling would stand for more bytes than a reader accepts, it is written
``PLAIN`` instead; integers are given at least one bit for the same reason.
"""

from libc.math cimport llrint, fabs
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._crc32c cimport crc32c_extend
from indextables.native._cursor cimport it_le64
from indextables.native._rows_bits cimport (
    VEC_FACTOR, VEC_SLOPE, packed_bytes, width_of,
)
from indextables.native._rows_blocks cimport (
    ALL_NULL, CODES, DECIMAL_FLOATS, EXPANSION, HAS_NULLS, INTEGERS, LISTS, PLAIN,
    ROW_ALLOWANCE, VALIDITY, WIDE_INTEGERS,
)
from indextables.native._typedefs cimport (
    float32_t, float64_t, int64_t, uint8_t, uint32_t, uint64_t,
)

cdef enum:
    SLOPE_SHIFT = 20
    MAX_DECIMALS = 15

cdef float64_t POWERS[MAX_DECIMALS + 1]
cdef int _k
for _k in range(MAX_DECIMALS + 1):
    POWERS[_k] = float(10 ** _k)


cdef struct Model:
    uint32_t width
    uint64_t base
    uint64_t slope
    uint64_t factor


cdef inline uint64_t line(uint64_t slope, uint64_t i) noexcept nogil:
    return <uint64_t>(<int64_t>(slope * i) >> SLOPE_SHIFT)


cdef uint64_t common_divisor(const uint64_t* v, uint64_t n, uint64_t least) noexcept nogil:
    cdef uint64_t i, a, b, g = 0
    for i in range(n):
        a = v[i] - least
        b = g
        while b:
            a, b = b, a % b
        g = a
        if g == 1:
            return 1
    return g if g else 1


cdef uint64_t slope_of(const uint64_t* v, uint64_t n) noexcept nogil:
    """Rise of a step in 1/2**20, from the means of the two halves."""
    cdef uint64_t half = n // 2, i
    cdef float64_t a = 0, b = 0, rise
    if half < 8:
        return 0
    for i in range(half):
        a += <float64_t><int64_t>(v[i] - v[0])
        b += <float64_t><int64_t>(v[n - half + i] - v[0])
    rise = (b - a) / half / (n - half) * (1 << SLOPE_SHIFT)
    if fabs(rise) * n > 4e18:
        return 0
    return <uint64_t><int64_t>llrint(rise)


cdef void fit(const uint64_t* v, uint64_t n, Model* m) noexcept nogil:
    """The narrowest of the three models."""
    cdef int64_t least = <int64_t>v[0], most = least, x
    cdef uint64_t i, slope
    cdef uint32_t width
    for i in range(n):
        least = min(least, <int64_t>v[i])
        most = max(most, <int64_t>v[i])
    m.slope = 0
    m.base = <uint64_t>least
    m.factor = 1
    m.width = width_of(<uint64_t>most - <uint64_t>least)
    if m.width < 2:
        return
    m.factor = common_divisor(v, n, m.base)
    m.width = width_of((<uint64_t>most - <uint64_t>least) // m.factor)
    slope = slope_of(v, n)
    if slope == 0:
        return
    least = most = <int64_t>v[0]
    for i in range(1, n):
        x = <int64_t>(v[i] - line(slope, i))
        least = min(least, x)
        most = max(most, x)
    width = width_of(<uint64_t>most - <uint64_t>least)
    if width < m.width and (m.width - width) * n > 72:
        m.slope = slope
        m.factor = 1
        m.base = <uint64_t>least
        m.width = width


cdef inline bint to_digits(
    uint64_t bits, uint32_t item_bits, int exponent, int64_t* digits
) noexcept nogil:
    """``digits / 10**exponent`` gives exactly these bits back."""
    cdef float64_t wide, back
    cdef float32_t narrow
    cdef uint32_t narrow_bits = <uint32_t>bits
    cdef uint64_t again
    if item_bits == 64:
        memcpy(&wide, &bits, 8)
    else:
        memcpy(&narrow, &narrow_bits, 4)
        wide = narrow
    back = wide * POWERS[exponent]
    if not fabs(back) < 9e15:
        return False
    digits[0] = llrint(back)
    back = <float64_t>digits[0] / POWERS[exponent]
    if item_bits == 64:
        memcpy(&again, &back, 8)
        return again == bits
    narrow = <float32_t>back
    memcpy(&narrow_bits, &narrow, 4)
    return narrow_bits == <uint32_t>bits


cdef int best_exponent(const uint64_t* bits, int64_t n, uint32_t item_bits) noexcept nogil:
    """The smallest exponent that suits a sample of the block, or -1."""
    cdef int exponent
    cdef int64_t i, step = max(n // 64, 1), tried, missed, digit = 0
    for exponent in range(MAX_DECIMALS + 1):
        tried = missed = i = 0
        while i < n:
            tried += 1
            missed += not to_digits(bits[i], item_bits, exponent, &digit)
            if missed > 4:
                break
            i += step
        if missed <= tried // 16:
            return exponent
    return -1


cdef class BlockWriter:
    """All blocks of one stream of one chunk.

    Block ``b`` holds slots ``slots[b] .. slots[b + 1]``, of which the valid ones are values
    ``values[b] .. values[b + 1]``; ``mask`` (empty: no nulls) has a byte for every slot; ``rows``
    is the number of table rows of each block.
    """
    def __cinit__(self, slots, values, rows, mask):
        self.slots = slots
        self.values = values
        self.rows = rows
        self.mask = mask
        self.blocks = self.slots.shape[0] - 1
        self.held_lengths = np.zeros(self.blocks, np.uint32)
        self.held_crcs = np.zeros(self.blocks, np.uint32)
        self.lengths = self.held_lengths
        self.crcs = self.held_crcs
        self.check()

    def __dealloc__(self):
        free(self.data)

    cdef int check(self) except -1:
        cdef Py_ssize_t b
        if self.values.shape[0] != self.blocks + 1 or self.rows.shape[0] != self.blocks:
            raise ValueError("block bounds differ in length")
        if self.slots[0] != 0 or self.values[0] != 0:
            raise ValueError("blocks must begin at 0")
        for b in range(self.blocks):
            if self.slots[b] > self.slots[b + 1] or self.values[b] > self.values[b + 1]:
                raise ValueError("blocks must be in order")
        if self.mask.shape[0] and self.mask.shape[0] != self.slots[self.blocks]:
            raise ValueError("mask and slots differ in length")
        return 0

    cdef int need(self, uint64_t more) except -1 nogil:
        cdef uint64_t wanted = self.size + more
        cdef void* grown
        if wanted <= self.capacity:
            return 0
        wanted = max(wanted, 2 * self.capacity, <uint64_t>65536)
        grown = realloc(self.data, wanted)
        if grown == NULL:
            with gil:
                raise MemoryError
        self.data = <uint8_t*>grown
        self.capacity = wanted
        return 0

    cdef int put(self, const void* source, uint64_t n) except -1 nogil:
        self.need(n)
        if n:
            memcpy(self.data + self.size, source, n)
        self.size += n
        return 0

    cdef int put_number(self, uint64_t value, uint32_t nbytes) except -1 nogil:
        value = it_le64(value)
        return self.put(&value, nbytes)

    cdef int put_head(self, Py_ssize_t b, uint8_t kind) except -1 nogil:
        """Begin block ``b``: 1 where a body must follow, 0 where the block is complete."""
        cdef uint64_t count = self.slots[b + 1] - self.slots[b]
        cdef uint64_t valid = self.values[b + 1] - self.values[b]
        cdef bint nulls = valid < count
        self.begun = self.size
        if count == 0 or (kind == VALIDITY and not nulls):
            return 0
        if valid == 0 and count * 16 <= ROW_ALLOWANCE * <uint64_t>self.rows[b]:
            kind = ALL_NULL
            nulls = False
        self.put_number(kind, 1)
        self.put_number(HAS_NULLS if nulls else 0, 3)
        self.put_number(count, 4)
        if nulls:
            self.put_number(valid, 4)
            self.put_bitmap(b, count)
        return 0 if kind == ALL_NULL else 1

    cdef int put_bitmap(self, Py_ssize_t b, uint64_t count) except -1 nogil:
        cdef uint64_t i, nbytes = (count + 7) >> 3
        cdef const uint8_t* mask = &self.mask[self.slots[b]]
        cdef uint8_t* out
        self.need(nbytes)
        out = self.data + self.size
        memset(out, 0, nbytes)
        for i in range(count):
            out[i >> 3] |= (mask[i] != 0) << (i & 7)
        self.size += nbytes
        return 0

    cdef int seal(self, Py_ssize_t b) noexcept nogil:
        self.lengths[b] = <uint32_t>(self.size - self.begun)
        self.crcs[b] = crc32c_extend(
            0, self.data + self.begun, self.size - self.begun
        )
        return 0

    cdef bint too_dense(self, Py_ssize_t b, uint64_t output) noexcept nogil:
        """Whether block ``b`` as it stands is too small for the bytes it stands for."""
        cdef uint64_t allowed = EXPANSION * (self.size - self.begun)
        return output > allowed + ROW_ALLOWANCE * <uint64_t>self.rows[b]

    cdef uint32_t least_width(self, Py_ssize_t b) noexcept nogil:
        cdef uint64_t count = self.slots[b + 1] - self.slots[b]
        return 1 if count * 16 > ROW_ALLOWANCE * <uint64_t>self.rows[b] else 0

    cdef int put_vector(self, const uint64_t* v, uint64_t n, uint32_t least) except -1 nogil:
        cdef Model m
        cdef uint8_t flags = 0
        memset(&m, 0, sizeof(Model))
        m.factor = 1
        if n:
            fit(v, n, &m)
        if m.slope:
            flags |= VEC_SLOPE
        if m.factor != 1:
            flags |= VEC_FACTOR
        m.width = max(m.width, least)
        self.put_number(m.width, 1)
        self.put_number(flags, 1)
        self.put_number(m.base, 8)
        if m.slope:
            self.put_number(SLOPE_SHIFT, 1)
            self.put_number(m.slope, 8)
        if m.factor != 1:
            self.put_number(m.factor, 8)
        if m.width == 0:
            return 0
        return self.put_packed(v, n, m.base, m.slope, m.factor, m.width)

    cdef int put_packed(
        self, const uint64_t* v, uint64_t n, uint64_t base, uint64_t slope, uint64_t factor,
        uint32_t width,
    ) except -1 nogil:
        cdef uint64_t i, x, word, acc = 0
        cdef uint32_t fill = 0
        cdef uint8_t* out
        self.need(packed_bytes(n, width) + 8)
        out = self.data + self.size
        for i in range(n):
            x = v[i] - base
            if slope:
                x -= line(slope, i)
            elif factor != 1:
                x //= factor
            acc |= x << fill
            if fill + width >= 64:
                word = it_le64(acc)
                memcpy(out, &word, 8)
                out += 8
                acc = x >> (64 - fill) if fill else 0
                fill = fill + width - 64
            else:
                fill += width
        word = it_le64(acc)
        memcpy(out, &word, 8)
        self.size += packed_bytes(n, width)
        return 0

    cdef int expect(self, Py_ssize_t count) except -1:
        if count != self.values[self.blocks]:
            raise ValueError("number of values differs from the block bounds")
        return 0

    def integers(self, const uint64_t[::1] v, bint codes=False):
        """Values (or dictionary codes) as 64-bit words."""
        cdef Py_ssize_t b
        cdef uint8_t kind = CODES if codes else INTEGERS
        self.expect(v.shape[0])
        with nogil:
            for b in range(self.blocks):
                if self.put_head(b, kind):
                    self.put_vector(
                        &v[0] + self.values[b], self.values[b + 1] - self.values[b],
                        self.least_width(b),
                    )
                self.seal(b)

    def wide(self, const uint64_t[::1] low, const uint64_t[::1] high):
        """128-bit values in halves; only the low half is written where it says it all."""
        cdef Py_ssize_t b
        cdef uint64_t n
        cdef int64_t i
        cdef bint narrow
        self.expect(low.shape[0])
        self.expect(high.shape[0])
        with nogil:
            for b in range(self.blocks):
                n = self.values[b + 1] - self.values[b]
                narrow = True
                for i in range(self.values[b], self.values[b + 1]):
                    if high[i] != <uint64_t>(<int64_t>low[i] >> 63):
                        narrow = False
                        break
                if self.put_head(b, INTEGERS if narrow else WIDE_INTEGERS):
                    self.put_vector(&low[0] + self.values[b], n, self.least_width(b))
                    if not narrow:
                        self.put_vector(&high[0] + self.values[b], n, 0)
                self.seal(b)

    def floats(self, const uint64_t[::1] bits, uint32_t item_bits):
        """Floats by their bits: as decimals where nearly all are short ones."""
        cdef Py_ssize_t b
        cdef int64_t n
        self.expect(bits.shape[0])
        digits = np.empty(bits.shape[0], np.uint64)
        cdef uint64_t[::1] d = digits
        with nogil:
            for b in range(self.blocks):
                n = self.values[b + 1] - self.values[b]
                if n == 0 or not self.put_decimals(
                    b, &bits[0] + self.values[b], n, item_bits, &d[0] + self.values[b]
                ):
                    if self.put_head(b, INTEGERS):
                        self.put_vector(&bits[0] + self.values[b], n, self.least_width(b))
                self.seal(b)

    cdef int put_decimals(
        self, Py_ssize_t b, const uint64_t* bits, int64_t n, uint32_t item_bits, uint64_t* digits
    ) except -1 nogil:
        """Write block ``b`` as decimals; 0 where that would not pay."""
        cdef int64_t i, missed = 0
        cdef int exponent = best_exponent(bits, n, item_bits)
        cdef int64_t digit = 0, last = 0
        if exponent < 0:
            return 0
        for i in range(n):
            if to_digits(bits[i], item_bits, exponent, &digit):
                last = digit
            else:
                missed += 1
            digits[i] = <uint64_t>last
        if missed > n // 16:
            return 0
        self.put_head(b, DECIMAL_FLOATS)
        self.put_number(exponent, 1)
        self.put_number(missed, 4)
        for i in range(n):
            if missed and not to_digits(bits[i], item_bits, exponent, &digit):
                self.put_number(i, 4)
        for i in range(n):
            if missed and not to_digits(bits[i], item_bits, exponent, &digit):
                self.put_number(bits[i], 8)
        self.put_vector(digits, n, self.least_width(b))
        return 1

    def lists(self, const uint64_t[::1] ends):
        """Ends of the (valid) lists, counted in children of the chunk."""
        cdef Py_ssize_t b
        cdef int64_t i
        self.expect(ends.shape[0])
        local = np.empty(ends.shape[0], np.uint64)
        cdef uint64_t[::1] v = local
        cdef uint64_t before
        with nogil:
            for b in range(self.blocks):
                before = ends[self.values[b] - 1] if self.values[b] else 0
                for i in range(self.values[b], self.values[b + 1]):
                    v[i] = ends[i] - before
                if self.put_head(b, LISTS):
                    self.put_vector(
                        &v[0] + self.values[b], self.values[b + 1] - self.values[b], 0
                    )
                self.seal(b)

    def validity(self):
        """Only which slots are null."""
        cdef Py_ssize_t b
        for b in range(self.blocks):
            self.put_head(b, VALIDITY)
            self.seal(b)

    cdef int put_plain(
        self, Py_ssize_t b, const uint8_t* data, const uint64_t* offsets, uint64_t* ends
    ) except -1 nogil:
        """A whole ``PLAIN`` block: ``offsets`` are those of all values of the chunk."""
        cdef int64_t first = self.values[b], n = self.values[b + 1] - first, i
        if not self.put_head(b, PLAIN):
            return 0
        for i in range(n):
            ends[i] = offsets[first + i + 1] - offsets[first]
        self.put_vector(ends, n, self.least_width(b))
        return self.put(data + offsets[first], offsets[first + n] - offsets[first])

    def text(self, const uint8_t[::1] data, const uint64_t[::1] offsets, spelling=None):
        """Byte strings: ``PLAIN``, or as ``spelling`` (codes, pair table, template) writes them."""
        cdef Py_ssize_t b
        cdef uint64_t total
        self.expect(offsets.shape[0] - 1)
        if offsets[offsets.shape[0] - 1] > <uint64_t>data.shape[0]:
            raise ValueError("offsets are not those of the data")
        scratch = np.empty(offsets.shape[0], np.uint64)
        cdef uint64_t[::1] ends = scratch
        cdef const uint8_t* base = &data[0] if data.shape[0] else NULL
        cdef Spelling how = spelling if spelling is not None else Spelling()
        for b in range(self.blocks):
            total = offsets[self.values[b + 1]] - offsets[self.values[b]]
            self.begun = self.size
            if not how.put(self, b, base, data.shape[0], &offsets[0], &ends[0]) or (
                self.too_dense(b, total)
            ):
                self.size = self.begun
                self.put_plain(b, base, &offsets[0], &ends[0])
            self.seal(b)

    def finish(self):
        """The blocks one after the other, their lengths and their checksums."""
        return self.data[:self.size], self.held_lengths, self.held_crcs


cdef class Spelling:
    """How a text block is written; this one declines, which means ``PLAIN``."""

    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1:
        return 0
