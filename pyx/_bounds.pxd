"""Order-preserving 64-bit keys of typed values."""

from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.string cimport memcpy

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
