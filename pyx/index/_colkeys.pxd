"""Sorted byte strings, and lists of rows, of column indexes in memory."""

from libc.string cimport memcmp

from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t


cdef inline int compare_bytes(
    const uint8_t* a, uint64_t a_size, const uint8_t* b, uint64_t b_size
) noexcept nogil:
    """Negative, zero or positive: bytes in order, a prefix before what it begins."""
    cdef int found = memcmp(a, b, a_size if a_size < b_size else b_size)
    if found:
        return found
    return (a_size > b_size) - (a_size < b_size)


cdef inline uint64_t text_bound(
    const uint8_t* base, const int64_t* ends, uint64_t count,
    const uint8_t* text, uint64_t size, bint after,
) noexcept nogil:
    """How many of ``count`` ascending strings are smaller, or with ``after`` not larger.

    String ``i`` lies from ``base + ends[i]`` to ``base + ends[i + 1]``.
    """
    cdef uint64_t low = 0, high = count, middle
    cdef int order
    while low < high:
        middle = (low + high) >> 1
        order = compare_bytes(
            base + ends[middle], <uint64_t>(ends[middle + 1] - ends[middle]), text, size
        )
        if order < 0 or (after and order == 0):
            low = middle + 1
        else:
            high = middle
    return low


cdef class TextTable:
    cdef const uint8_t[::1] data
    cdef const int64_t[::1] ends
    cdef const uint8_t* base
    cdef uint64_t count
    cdef uint32_t* slots
    cdef uint64_t mask

    cdef uint64_t _bound(self, object key, bint after) except? 18446744073709551615ULL
    cdef uint32_t* _hashed(self, uint64_t mask) noexcept nogil
    cdef int64_t _find(self, uint64_t at, const uint8_t* text, uint64_t size) noexcept nogil
    cdef int _require_slots(self) except -1
    cdef int _find_some(self, tuple keys, Py_ssize_t start, int64_t[::1] out) except -1
