"""Columns of texts while file entries are taken apart: where the texts of some rows lie.

A chunk of rows is noted first, then packed column by column while its bytes are near. The keys of
a map mostly come in the order of the row before, so each place remembers the key that stood there.
"""

from libc.string cimport memset

from indextables.native._cursor cimport Cursor
from indextables.native._textpack cimport Bytes, TextPacker
from indextables.native._textslots cimport same_bytes
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    CHUNK = 256             # rows that are taken apart before they are packed
    GUESSES = 64
    MOST_KEYS = 10000

cdef struct Guess:
    uint32_t key
    uint32_t size                   # of the key's bytes, 2**32 - 1 when there is no guess
    uint64_t word                   # its first eight bytes, zeros where there are fewer
    uint64_t mask                   # which bytes of ``word`` count
    uint32_t* starts                # where its column notes the texts of a chunk
    uint32_t* lengths


cdef class Places:
    """Where the texts of one column lie, for the rows of the chunk at hand, and their packer."""

    cdef uint32_t[CHUNK] starts
    cdef uint32_t[CHUNK] lengths
    cdef TextPacker packer

    cdef inline void clear(self) noexcept nogil:
        memset(self.lengths, 0xff, CHUNK * sizeof(uint32_t))

    cdef inline void set(self, size_t i, uint64_t start, uint64_t n) noexcept nogil:
        self.starts[i] = <uint32_t>start
        self.lengths[i] = <uint32_t>n

    cdef int flush(self, const Cursor* c, size_t first, size_t rows) except -1 nogil


cdef class Keys:
    """The keys of one map field, each with its column."""

    cdef size_t rows
    cdef list columns
    cdef list names
    cdef void** places              # the columns again, for use without the GIL
    cdef Bytes arena                # the keys' bytes
    cdef uint32_t* keys             # two per key: start and length in the arena
    cdef uint32_t count
    cdef uint32_t room              # keys that fit before everything grows
    cdef int32_t* table             # key number plus one by hash, four slots per key of room
    cdef Guess[GUESSES] guess       # the key that stood at each place of the row before
    cdef uint8_t* present

    cdef inline bint is_key(self, uint32_t key, const uint8_t* p, uint64_t n) noexcept nogil:
        return self.keys[2 * key + 1] == n and same_bytes(
            self.arena.data + self.keys[2 * key], p, n
        )

    cdef int64_t key_of(self, const uint8_t* p, uint64_t n, size_t place) except -1 nogil
    cdef void remember(self, Guess* g, const uint8_t* p, uint64_t n) noexcept nogil
    cdef int64_t search(self, const uint8_t* p, uint64_t n) except -1 nogil
    cdef int64_t make(self, const uint8_t* p, uint64_t n) except -1
    cdef int grow(self) except -1
    cdef uint32_t free_slot(self, uint32_t key) noexcept nogil
    cdef int flush(self, const Cursor* c, size_t first, size_t rows) except -1 nogil
