"""Resource pages of a chunk, opened once and shared by all its blocks.

    u8 kind | u8 code width | u16 characters | u32 count | ...

    text dictionary   u32 end of each word, then the words
    pair table        u8 length of each word (1..16), then the words
    template          count parts: u8 kind, u8 characters, and for a literal its characters

Words are copied behind ``PAD`` bytes of slack, so that a decoder may load 16 bytes at any word.
"""

from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

import numpy as np

from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_init, cursor_left, cursor_over, cursor_take, read_u8, read_u16,
    read_u32,
)
from indextables.native._rows_bits cimport width_of
from indextables.native._typedefs cimport uint8_t, uint32_t, uint64_t

cdef enum:
    MAX_WORDS = 1 << 24


cdef uint32_t decimal_bits(uint32_t digits) noexcept nogil:
    """Bits for any number of so many decimal digits."""
    cdef uint64_t top = 1
    cdef uint32_t _i
    for _i in range(digits):
        top *= 10
    return width_of(top - 1)


cdef class Lexicon:

    def __cinit__(self, page):
        cdef Cursor c
        cdef const uint8_t[::1] view = page
        cursor_over(&c, view, 0)
        self.kind = read_u8(&c)
        self.width = read_u8(&c)
        self.row_chars = read_u16(&c)
        self.count = read_u32(&c)
        if self.kind == TEXT_DICTIONARY:
            self._open_words(&c, 4)
        elif self.kind == PAIR_TABLE:
            self._open_words(&c, 1)
        elif self.kind == TEMPLATE_PAGE:
            self._open_template(&c)
        else:
            cursor_fail(&c, b"unknown kind of resource page")

    def __dealloc__(self):
        free(self.ops)

    cdef int _keep(self, Cursor* c) except -1:
        """Copy what is left of the page, with slack for wide loads."""
        cdef uint64_t size = cursor_left(c)
        kept = np.zeros(size + PAD, np.uint8)
        cdef uint8_t[::1] bytes_view = kept
        if size:
            memcpy(&bytes_view[0], cursor_take(c, size), size)
        self.held_bytes = kept
        self.data = &bytes_view[0]
        return 0

    cdef int _open_words(self, Cursor* c, uint32_t size_of_length) except -1:
        """``count`` ends (u32) or lengths (u8), then the words."""
        cdef Cursor sizes
        cdef uint32_t i, total = 0, end
        if self.count > MAX_WORDS or self.width > 16:
            return cursor_fail(c, b"impossible dictionary size")
        cursor_init(
            &sizes, cursor_take(c, self.count * size_of_length), self.count * size_of_length, 0
        )
        starts = np.zeros(self.count + 1, np.uint32)
        cdef uint32_t[::1] s = starts
        for i in range(self.count):
            end = read_u32(&sizes) if size_of_length == 4 else total + read_u8(&sizes)
            if end < total or end > cursor_left(c):
                return cursor_fail(c, b"dictionary word outside its page")
            if size_of_length == 1 and end - total > MAX_WORD:
                return cursor_fail(c, b"pair table word is too long")
            self.longest = max(self.longest, end - total)
            total = end
            s[i + 1] = end
        if cursor_left(c) != total:
            return cursor_fail(c, b"dictionary page has bytes without a word")
        self.held_starts = starts
        self.starts = &s[0]
        return self._keep(c)

    cdef int _open_template(self, Cursor* c) except -1:
        cdef uint32_t i, chars = 0, bits = 0
        cdef uint64_t start = c.pos
        cdef Cursor again = c[0]
        if self.count > 255:
            return cursor_fail(c, b"impossible template")
        self.ops = <Op*>calloc(self.count + 1, sizeof(Op))
        if self.ops == NULL:
            raise MemoryError
        for i in range(self.count):
            self.ops[i].kind = read_u8(c)
            self.ops[i].chars = read_u8(c)
            self._open_op(c, &self.ops[i], start)
            chars += self.ops[i].chars
            bits += self.ops[i].bits
        if chars != self.row_chars or cursor_left(c):
            return cursor_fail(c, b"template does not add up")
        self.row_bits = bits
        return self._keep(&again)

    cdef int _open_op(self, Cursor* c, Op* op, uint64_t start) except -1:
        if op.kind == OP_LITERAL:
            op.at = <uint32_t>(c.pos - start)
            cursor_take(c, op.chars)
        elif op.kind == OP_HEX_LOWER or op.kind == OP_HEX_UPPER:
            op.bits = 4 * op.chars
        elif op.kind == OP_DECIMAL:
            op.bits = decimal_bits(min(op.chars, 19))
        else:
            return cursor_fail(c, b"unknown template part")
        if op.kind != OP_LITERAL and (op.chars > 16 or op.bits > 64 or op.chars == 0):
            return cursor_fail(c, b"template part is too wide")
        return 0

    def words(self):
        """The words of a dictionary or pair table."""
        if self.kind == TEMPLATE_PAGE:
            return []
        cdef uint32_t i
        return [self.data[self.starts[i]:self.starts[i + 1]] for i in range(self.count)]
