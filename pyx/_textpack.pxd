"""Packing of text columns: texts of one column mostly differ in their numbers alone.

A text is split into a *skeleton* and *slots*: every run of at most 18 digits without a leading
zero becomes an integer slot, every lower-case UUID two 64-bit slots, all other bytes stay in the
skeleton. ``date=2024-03-05/part-<uuid>.split`` has the skeleton ``date=#-0#-0#/part-@.split``. A
column is then a list of distinct skeletons, a code per row, and one narrow integer column per
slot. Putting the slots back gives the text exactly, whatever it was.

In a skeleton the bytes 0xff (integer) and 0xfe (UUID) mark slots; UTF-8 never contains them.
"""

from indextables.native._hash cimport load16, load32, load64
from indextables.native._typedefs cimport int32_t, uint8_t, uint32_t, uint64_t

cdef enum:
    NULL_LENGTH = 0xffffffff
    INTEGER_SLOT = 0xff
    UUID_SLOT = 0xfe
    MOST_SLOTS = 64
    MOST_TEMPLATES = 4096
    TABLE_SIZE = 16384
    MOST_DIGITS = 18

cdef struct Piece:
    uint32_t start          # literal bytes in the arena
    uint32_t size
    uint32_t slot           # what follows them: INTEGER_SLOT, UUID_SLOT or 0 at the end

cdef struct Template:
    uint32_t start          # skeleton in the arena
    uint32_t size
    uint32_t first_piece
    uint32_t pieces
    uint32_t slots

cdef inline bint same_bytes(const uint8_t* a, const uint8_t* b, size_t n) noexcept nogil:
    """Whether two runs of ``n`` bytes are equal; for short runs quicker than a library call."""
    cdef size_t i = 0
    if n >= 8:
        while i + 8 < n:
            if load64(a + i) != load64(b + i):
                return False
            i += 8
        return load64(a + n - 8) == load64(b + n - 8)
    if n >= 4:
        return load32(a) == load32(b) and load32(a + n - 4) == load32(b + n - 4)
    if n >= 2:
        return load16(a) == load16(b) and a[n - 1] == b[n - 1]
    return n == 0 or a[0] == b[0]


cdef bint utf8_valid(const uint8_t* p, size_t n) noexcept nogil
