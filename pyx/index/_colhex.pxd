"""Text keys of one length that differ in hexadecimal digits only, such as uuids, two digits a byte.

A pattern has one byte for each place of the text: zero where digits differ (lower-case), else the
byte all keys have there. The digits of a key follow each other, the first in the upper half of the
first byte, an odd last one in the upper half of the last; the bytes of all keys are stored by
place: all first bytes, then all second ones. Keys sort as their digits do.
"""

from indextables.native._colkeys cimport compare_bytes
from indextables.native._cursor cimport Cursor, cursor_fail, cursor_take
from indextables.native._typedefs cimport uint8_t, uint64_t

cdef enum:
    HEX_LONGEST = 255


cdef struct HexKeys:
    const uint8_t* pattern
    const uint8_t* planes
    uint64_t length
    uint64_t count


cdef inline int hex_open(
    HexKeys* keys, Cursor* c, uint64_t key_bytes, uint64_t width, uint64_t count
) except -1 nogil:
    """Find the pattern and the digits of ``count`` keys in the next ``key_bytes``."""
    cdef uint64_t i, digits = 0
    if width > HEX_LONGEST or width * count >= key_bytes:
        return cursor_fail(c, b"a block's keys are not as long as their count says")
    keys.length = key_bytes - width * count
    keys.count = count
    if keys.length > HEX_LONGEST:
        return cursor_fail(c, b"a block's pattern is too long")
    keys.pattern = cursor_take(c, keys.length)
    for i in range(keys.length):
        digits += keys.pattern[i] == 0
    if (digits + 1) >> 1 != width:
        return cursor_fail(c, b"a block's pattern has another number of digits")
    keys.planes = cursor_take(c, width * count)
    return 0


cdef inline void hex_spell(const HexKeys* keys, uint64_t at, uint8_t* out) noexcept nogil:
    """Write key ``at < count``; ``out`` has room for ``length`` bytes."""
    cdef uint64_t i
    cdef const uint8_t* next_byte = keys.planes + at
    cdef uint8_t byte = 0, digit
    cdef bint lower = False
    for i in range(keys.length):
        if keys.pattern[i]:
            out[i] = keys.pattern[i]
            continue
        if lower:
            digit = byte & 15
        else:
            byte = next_byte[0]
            next_byte += keys.count
            digit = byte >> 4
        out[i] = digit + (48 if digit < 10 else 87)
        lower = not lower


cdef inline int hex_order(
    const HexKeys* keys, uint64_t at, const uint8_t* text, uint64_t size
) noexcept nogil:
    """Negative, zero or positive: key ``at < count`` against a text."""
    cdef uint8_t[HEX_LONGEST] spelled
    hex_spell(keys, at, spelled)
    return compare_bytes(spelled, keys.length, text, size)
