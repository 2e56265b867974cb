"""Blocks of a column index: consecutive values, each with its rows."""

from indextables.native._colhex cimport HexKeys
from indextables.native._cursor cimport Cursor
from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    FORM_GAPS = 0
    FORM_BITS = 1
    FORM_REST = 2
    FORM_HEX = 16


cdef struct Sought:
    int64_t number
    const uint8_t* text
    uint64_t size


cdef inline uint64_t plane_at(
    const uint8_t* planes, uint64_t count, uint32_t width, uint64_t i
) noexcept nogil:
    """Number ``i < count`` of ``count`` numbers stored by weight, ``width`` bytes each."""
    cdef uint64_t value = 0
    cdef uint32_t plane
    for plane in range(width):
        value |= <uint64_t>planes[plane * count + i] << (8 * plane)
    return value


cdef class IndexBlock:
    cdef readonly uint64_t size
    cdef readonly uint64_t num_rows
    cdef const uint8_t[::1] raw
    cdef uint64_t split_rows
    cdef uint32_t form
    cdef uint32_t row_width
    cdef bint is_text
    cdef bint is_unique
    cdef bint is_hex
    cdef HexKeys hex
    cdef const uint8_t* text
    cdef uint64_t rows_at
    cdef int64_t* keys
    cdef int64_t* ends
    cdef uint32_t* offsets

    cdef int _open(self, Cursor* c, int64_t first) except -1 nogil
    cdef int _read_numbers(
        self, Cursor* c, int64_t first, uint64_t key_bytes, uint32_t width
    ) except -1 nogil
    cdef int _read_text(self, Cursor* c, uint64_t key_bytes, uint32_t width) except -1 nogil
    cdef int _read_counts(self, Cursor* c, uint32_t width) except -1 nogil
    cdef int _seek(self, object key, Sought* sought) except -1
    cdef int _order(self, uint64_t at, const Sought* sought) noexcept nogil
    cdef uint64_t _bound(self, const Sought* sought, bint after) noexcept nogil
    cdef int _fill(self, uint64_t start, uint64_t stop, uint32_t* out) except -1 nogil
    cdef int _fill_bits(self, uint32_t* out) except -1 nogil
