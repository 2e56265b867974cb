"""Order-preserving 64-bit keys of typed values, and texts that lie in one buffer."""

from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memcpy

from indextables.native._cursor cimport Cursor, cursor_fail, cursor_seek, cursor_take
from indextables.native._typedefs cimport float64_t, int64_t, uint8_t, uint64_t


cdef inline int64_t ordered_double(float64_t value) noexcept nogil:
    """A key that sorts as SQL sorts doubles: -0.0 equals 0.0, NaN is above everything."""
    cdef int64_t bits
    if value != value:
        return INT64_MAX
    value = value + 0.0
    memcpy(&bits, &value, 8)
    return bits if bits >= 0 else bits ^ INT64_MAX


cdef inline int64_t ordered_prefix(
    const uint8_t* text, int64_t size, bint to_end
) noexcept nogil:
    """The first eight bytes as a key; a short text is filled with 0, an open end with 255."""
    cdef uint64_t key = 0
    cdef int64_t i
    for i in range(8):
        key <<= 8
        if i < size:
            key |= text[i]
        elif to_end:
            key |= 255
    return <int64_t>(key ^ (<uint64_t>1 << 63))


cdef struct Text:
    const uint8_t* at
    int64_t size


cdef inline int text_at(
    Cursor* c, const int64_t[::1] offsets, int64_t i, Text* out
) except -1 nogil:
    """Value ``i``; offsets that leave the buffer or go backwards raise."""
    out.at, out.size = NULL, 0
    if offsets[i] < 0 or offsets[i + 1] < offsets[i]:
        return cursor_fail(c, b"text offsets go backwards")
    cursor_seek(c, <uint64_t>offsets[i])
    out.at = cursor_take(c, <uint64_t>(offsets[i + 1] - offsets[i]))
    out.size = offsets[i + 1] - offsets[i]
    return 0


cdef inline int check_lengths(int64_t n, int64_t offsets, int64_t first, int64_t second) except -1:
    if offsets != n + 1 or first != n or second != n:
        raise ValueError("columns differ in length")
    return 0
