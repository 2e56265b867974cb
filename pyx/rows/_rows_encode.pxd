"""The block writer, and the hook through which text is spelled into its blocks."""

from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t


cdef class BlockWriter:
    cdef const int64_t[::1] slots
    cdef const int64_t[::1] values
    cdef const int64_t[::1] rows
    cdef const uint8_t[::1] mask
    cdef uint8_t* data
    cdef uint64_t size, capacity, begun
    cdef object held_lengths, held_crcs
    cdef uint32_t[::1] lengths
    cdef uint32_t[::1] crcs
    cdef Py_ssize_t blocks
    cdef int check(self) except -1
    cdef int need(self, uint64_t more) except -1 nogil
    cdef int put(self, const void* source, uint64_t n) except -1 nogil
    cdef int put_number(self, uint64_t value, uint32_t nbytes) except -1 nogil
    cdef int put_head(self, Py_ssize_t b, uint8_t kind) except -1 nogil
    cdef int put_bitmap(self, Py_ssize_t b, uint64_t count) except -1 nogil
    cdef int seal(self, Py_ssize_t b) noexcept nogil
    cdef bint too_dense(self, Py_ssize_t b, uint64_t output) noexcept nogil
    cdef uint32_t least_width(self, Py_ssize_t b) noexcept nogil
    cdef int put_vector(self, const uint64_t* v, uint64_t n, uint32_t least) except -1 nogil
    cdef int put_packed(
        self, const uint64_t* v, uint64_t n, uint64_t base, uint64_t slope, uint64_t factor,
        uint32_t width,
    ) except -1 nogil
    cdef int expect(self, Py_ssize_t count) except -1
    cdef int put_decimals(
        self, Py_ssize_t b, const uint64_t* bits, int64_t n, uint32_t item_bits, uint64_t* digits
    ) except -1 nogil
    cdef int put_plain(
        self, Py_ssize_t b, const uint8_t* data, const uint64_t* offsets, uint64_t* ends
    ) except -1 nogil


cdef class Spelling:
    cdef int put(
        self, BlockWriter w, Py_ssize_t b, const uint8_t* data, uint64_t size,
        const uint64_t* offsets, uint64_t* ends,
    ) except -1
