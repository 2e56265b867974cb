"""Blocks of a column index: consecutive values, each with its rows.

A block is, little-endian: u32 values, u32 rows, u32 key bytes, three u8 widths (keys, counts, rows)
and one u8 form; then keys, counts, rows. Numbers are stored by weight: all lowest bytes, then all
next ones, ``width`` of them. Keys that are numbers are differences to the key before (the first to
a key the caller knows); text is its lengths, then its bytes. Width 0 of counts: one row each.

Form 16, added to another, packs text of one length that differs in hexadecimal digits only: a
pattern, then two digits a byte (see ``_colhex.pxd``); the key width is the bytes of one key.

The rows of a value depend on the form. 0: differences inside the value, the first from zero. 1: the
block has one value, and one bit for each row of the split. 2: the block has one value, whose rows
are those no other value has, and none are stored.

Opening a block reads its head and counts through the cursor and finds every part inside the buffer;
keys ascend and counts add up, or the block is refused. Rows are decoded when asked for, compared
with the number of rows of the split, and ascend inside a value.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.stdlib cimport free, malloc

import numpy as np

from indextables.native._bitlist cimport lowest_bit
from indextables.native._colhex cimport hex_open, hex_order, hex_spell
from indextables.native._colkeys cimport compare_bytes, text_bound
from indextables.native._cursor cimport (
    cursor_fail, cursor_left, cursor_over, cursor_take, read_u8, read_u32,
)
from indextables.native._rows_bits cimport load_upto


cdef class IndexBlock:
    """One block, open. ``first`` is its first key (of numbers), ``split_rows`` bounds its rows."""

    def __cinit__(
        self, const uint8_t[::1] raw, bint is_text, int64_t first, uint64_t split_rows
    ):
        cdef Cursor c
        self.raw = raw
        self.is_text = is_text
        self.split_rows = split_rows
        cursor_over(&c, raw, 0)
        with nogil:
            self._open(&c, first)

    def __dealloc__(self):
        free(self.keys)
        free(self.ends)
        free(self.offsets)

    cdef int _open(self, Cursor* c, int64_t first) except -1 nogil:
        cdef uint32_t key_width, count_width
        cdef uint64_t key_bytes, row_bytes
        self.size = read_u32(c)
        self.num_rows = read_u32(c)
        key_bytes = read_u32(c)
        key_width = read_u8(c)
        count_width = read_u8(c)
        self.row_width = read_u8(c)
        self.form = read_u8(c)
        self.is_hex = self.is_text and self.form & FORM_HEX
        if self.is_hex:
            self.form ^= FORM_HEX
        elif key_width > 8:
            return cursor_fail(c, b"a block with an impossible head")
        if self.form > FORM_REST or count_width > 4 or self.row_width > 4:
            return cursor_fail(c, b"a block with an impossible head")
        if self.size == 0 or self.size > self.num_rows or self.num_rows > self.split_rows:
            return cursor_fail(c, b"a block with an impossible number of values")
        if self.form == FORM_GAPS:
            row_bytes = self.row_width * self.num_rows
            if self.row_width == 0:
                return cursor_fail(c, b"a block without rows")
        else:
            row_bytes = (self.split_rows + 7) // 8 if self.form == FORM_BITS else 0
            if self.size != 1 or self.row_width:
                return cursor_fail(c, b"a block of one value that holds more")
        # Each value has a row and each row a byte, or the block has one value: what follows
        # allocates in proportion to the buffer.
        if key_bytes + count_width * self.size + row_bytes != cursor_left(c):
            return cursor_fail(c, b"a block is not as long as its head says")
        if self.is_hex:
            hex_open(&self.hex, c, key_bytes, key_width, self.size)
        elif self.is_text:
            self._read_text(c, key_bytes, key_width)
        else:
            self._read_numbers(c, first, key_bytes, key_width)
        self._read_counts(c, count_width)
        self.rows_at = c.pos
        return 0

    cdef int _read_numbers(
        self, Cursor* c, int64_t first, uint64_t key_bytes, uint32_t width
    ) except -1 nogil:
        cdef uint64_t i
        cdef const uint8_t* planes
        if width * self.size != key_bytes:
            return cursor_fail(c, b"a block's keys are not as long as their count says")
        planes = cursor_take(c, key_bytes)
        self.keys = <int64_t*>malloc(self.size * sizeof(int64_t))
        if self.keys == NULL:
            with gil:
                raise MemoryError()
        self.keys[0] = <int64_t>(<uint64_t>first + plane_at(planes, self.size, width, 0))
        for i in range(1, self.size):
            self.keys[i] = <int64_t>(
                <uint64_t>self.keys[i - 1] + plane_at(planes, self.size, width, i)
            )
            if self.keys[i] <= self.keys[i - 1]:
                return cursor_fail(c, b"a block's keys do not ascend")
        return 0

    cdef int _read_text(self, Cursor* c, uint64_t key_bytes, uint32_t width) except -1 nogil:
        cdef uint64_t i, end = 0
        cdef const uint8_t* planes
        if width > 4 or width * self.size > key_bytes:
            return cursor_fail(c, b"a block's keys are not as long as their count says")
        planes = cursor_take(c, width * self.size)
        self.ends = <int64_t*>malloc((self.size + 1) * sizeof(int64_t))
        if self.ends == NULL:
            with gil:
                raise MemoryError()
        self.ends[0] = 0
        for i in range(self.size):
            end += plane_at(planes, self.size, width, i)
            self.ends[i + 1] = <int64_t>end
        if end != key_bytes - width * self.size:
            return cursor_fail(c, b"a block's text is not as long as its lengths say")
        self.text = cursor_take(c, end)
        return 0

    cdef int _read_counts(self, Cursor* c, uint32_t width) except -1 nogil:
        cdef uint64_t i, count, total = 0
        cdef const uint8_t* planes = cursor_take(c, width * self.size)
        self.is_unique = width == 0
        self.offsets = <uint32_t*>malloc((self.size + 1) * sizeof(uint32_t))
        if self.offsets == NULL:
            with gil:
                raise MemoryError()
        self.offsets[0] = 0
        for i in range(self.size):
            count = plane_at(planes, self.size, width, i) if width else 1
            total += count
            if count == 0 or total > self.num_rows:
                return cursor_fail(c, b"a block's counts do not add up")
            self.offsets[i + 1] = <uint32_t>total
        if total != self.num_rows:
            return cursor_fail(c, b"a block's counts do not add up")
        return 0

    # -- keys -------------------------------------------------------------------------------------

    cdef int _seek(self, object key, Sought* sought) except -1:
        """The key in the terms of the block; it must outlive what is made of it."""
        if self.is_text:
            sought.text = <const uint8_t*>PyBytes_AS_STRING(<bytes?>key)
            sought.size = PyBytes_GET_SIZE(key)
        else:
            sought.number = key
        return 0

    cdef int _order(self, uint64_t at, const Sought* sought) noexcept nogil:
        """Negative, zero or positive: the key at a position against another."""
        if self.is_hex:
            return hex_order(&self.hex, at, sought.text, sought.size)
        if self.is_text:
            return compare_bytes(
                self.text + self.ends[at], <uint64_t>(self.ends[at + 1] - self.ends[at]),
                sought.text, sought.size,
            )
        return (self.keys[at] > sought.number) - (self.keys[at] < sought.number)

    cdef uint64_t _bound(self, const Sought* sought, bint after) noexcept nogil:
        """How many keys are smaller than a key, or with ``after`` not larger."""
        cdef uint64_t low = 0, high = self.size, middle
        cdef int order
        if self.is_text and not self.is_hex:
            return text_bound(
                self.text, self.ends, self.size, sought.text, sought.size, after
            )
        while low < high:
            middle = (low + high) >> 1
            order = self._order(middle, sought)
            if order < 0 or (after and order == 0):
                low = middle + 1
            else:
                high = middle
        return low

    def lower(self, key):
        """How many keys are smaller."""
        cdef Sought sought
        self._seek(key, &sought)
        return self._bound(&sought, False)

    def upper(self, key):
        """How many keys are smaller or equal."""
        cdef Sought sought
        self._seek(key, &sought)
        return self._bound(&sought, True)

    def key(self, uint64_t position):
        """The key at a position."""
        if position >= self.size:
            raise IndexError("a position outside the block")
        if not self.is_text:
            return self.keys[position]
        if self.is_hex:
            found = PyBytes_FromStringAndSize(NULL, self.hex.length)
            hex_spell(&self.hex, position, <uint8_t*>PyBytes_AS_STRING(found))
            return found
        return PyBytes_FromStringAndSize(
            <const char*>self.text + self.ends[position],
            self.ends[position + 1] - self.ends[position],
        )

    def numbers(self):
        """All keys, of a block of numbers."""
        if self.is_text:
            raise TypeError("a block of text")
        return np.asarray(<int64_t[:self.size]>self.keys).copy()

    def texts(self):
        """All keys, of a block of text: their bytes, and where in them each begins and ends."""
        cdef uint64_t i
        cdef uint8_t* out
        if not self.is_text:
            raise TypeError("a block of numbers")
        if not self.is_hex:
            ends = np.asarray(<int64_t[:self.size + 1]>self.ends).copy()
            return PyBytes_FromStringAndSize(<const char*>self.text, self.ends[self.size]), ends
        spelled = PyBytes_FromStringAndSize(NULL, self.size * self.hex.length)
        out = <uint8_t*>PyBytes_AS_STRING(spelled)
        with nogil:
            for i in range(self.size):
                hex_spell(&self.hex, i, out + i * self.hex.length)
        return spelled, np.arange(self.size + 1, dtype=np.int64) * self.hex.length

    # -- rows -------------------------------------------------------------------------------------

    @property
    def is_rest(self):
        """Whether the rows are those of no other value."""
        return self.form == FORM_REST

    def rows_before(self, uint64_t position):
        """How many rows the values before a position have."""
        if position > self.size:
            raise IndexError("a position outside the block")
        return self.offsets[position]

    def starts(self):
        """Where the rows of each value begin, and where the last ones end."""
        return np.asarray(<uint32_t[:self.size + 1]>self.offsets).astype(np.int64)

    def rows(self, uint64_t start, uint64_t stop):
        """The rows of these values, value by value."""
        cdef uint32_t[::1] out
        if start >= stop or stop > self.size:
            raise IndexError("positions outside the block")
        if self.form == FORM_REST:
            raise ValueError("the rows of this block are not stored")
        found = np.empty(self.offsets[stop] - self.offsets[start], np.uint32)
        out = found
        with nogil:
            if self.form == FORM_BITS:
                self._fill_bits(&out[0])
            else:
                self._fill(start, stop, &out[0])
        return found

    def exact(self, key):
        """The rows of one key; ``None``: the block has no such key."""
        cdef Sought sought
        self._seek(key, &sought)
        cdef uint64_t at = self._bound(&sought, False)
        if at >= self.size or self._order(at, &sought):
            return None
        return self.rows(at, at + 1)

    cdef int _fill(self, uint64_t start, uint64_t stop, uint32_t* out) except -1 nogil:
        """Sum up the differences; ``out`` has room for the rows of these values."""
        cdef const uint8_t* planes = &self.raw[0] + self.rows_at
        cdef uint64_t value, i, gap, row, at = 0
        cdef uint64_t count = self.num_rows
        cdef uint32_t width = self.row_width
        cdef bint bad = False
        for value in range(start, stop):
            row = 0
            for i in range(self.offsets[value], self.offsets[value + 1]):
                gap = planes[i]
                if width > 1:
                    gap |= <uint64_t>planes[count + i] << 8
                if width > 2:
                    gap |= <uint64_t>planes[2 * count + i] << 16
                if width > 3:
                    gap |= <uint64_t>planes[3 * count + i] << 24
                bad |= gap == 0 and i > self.offsets[value]
                row += gap
                out[at] = <uint32_t>row
                at += 1
            bad |= row >= self.split_rows
        if bad:
            with gil:
                from indextables.errors import CorruptFileError

                raise CorruptFileError("rows do not ascend inside the split")
        return 0

    cdef int _fill_bits(self, uint32_t* out) except -1 nogil:
        """List the set bits; ``out`` has room for ``num_rows`` of them."""
        cdef const uint8_t* bits = &self.raw[0] + self.rows_at
        cdef uint64_t left = (self.split_rows + 7) // 8
        cdef uint64_t word, at = 0, base = 0
        cdef bint bad = False
        while left and not bad:
            word = load_upto(bits, left)
            while word:
                if at == self.num_rows:
                    bad = True
                    break
                out[at] = <uint32_t>(base + lowest_bit(word))
                at += 1
                word &= word - 1
            bits += 8
            base += 64
            left = left - 8 if left > 8 else 0
        if bad or at != self.num_rows or out[at - 1] >= self.split_rows:
            with gil:
                from indextables.errors import CorruptFileError

                raise CorruptFileError("a block of bits with another number of rows")
        return 0
