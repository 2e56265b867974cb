"""A table of words of 1 to 16 bytes and the longest-match search in it."""

from indextables.native._typedefs cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef struct Word:
    uint64_t lo
    uint64_t hi
    uint64_t length


cdef class PairTable:
    cdef readonly uint32_t count
    cdef readonly uint32_t capacity
    cdef object held_words, held_slots, held_lengths
    cdef Word* words
    cdef uint32_t* slots            # word number + 1 in the low half, tag of its hash in the high
    cdef uint32_t slot_mask
    cdef uint16_t* short_lengths    # by hash of 4 bytes: lengths (4..6) of words that begin so
    cdef uint16_t* long_lengths     # by hash of 6 bytes: lengths (7..16) of words that begin so
    cdef uint32_t add(self, uint64_t lo, uint64_t hi, uint32_t length) noexcept nogil
    cdef int32_t find(self, uint64_t lo, uint64_t hi, uint32_t length) noexcept nogil
    cdef uint32_t longest(
        self, const uint8_t* at, uint64_t left, uint64_t readable, uint32_t* length
    ) noexcept nogil
    cdef uint64_t encode(
        self, const uint8_t* data, uint64_t size, uint64_t readable, uint16_t* out
    ) noexcept nogil
