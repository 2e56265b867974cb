"""The pieces of texts: digits, UUIDs, UTF-8, short comparisons. All of it without the GIL.

An integer slot is a run of one to eighteen digits without a leading zero; a UUID slot is a
lower-case ``xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx``. What is read as a slot is written back exactly.
"""

from libc.string cimport memcpy

from indextables.native._hash cimport load16, load32, load64
from indextables.native._typedefs cimport uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    static const uint64_t it_powers_of_ten[8] = {
        1, 10, 100, 1000, 10000, 100000, 1000000, 10000000
    };
    """
    const uint64_t* POWERS_OF_TEN "it_powers_of_ten"
    int trailing_zeros "__builtin_ctzll"(unsigned long long v) noexcept nogil

cdef enum:
    MOST_DIGITS = 18

cdef bint utf8_valid(const uint8_t* p, size_t n) noexcept nogil


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


cdef inline uint64_t low_bytes(size_t n) noexcept nogil:
    """A mask of the first ``n`` bytes of a word, of all eight when there are more."""
    return (<uint64_t>1 << (8 * n)) - 1 if n < 8 else 0xffffffffffffffffULL


cdef inline size_t zero_bytes(uint64_t w) noexcept nogil:
    """How many bytes of a word, from its low one on, are zero."""
    return <size_t>trailing_zeros(w) >> 3 if w else 8


cdef inline bint text_valid(const uint8_t* p, size_t n) noexcept nogil:
    """``utf8_valid`` with a short way for ASCII."""
    cdef size_t i = 0
    cdef uint64_t word
    while i + 8 <= n:
        memcpy(&word, p + i, 8)
        if word & 0x8080808080808080ULL:
            return utf8_valid(p + i, n - i)
        i += 8
    while i < n:
        if p[i] >= 0x80:
            return utf8_valid(p + i, n - i)
        i += 1
    return True


cdef inline uint32_t digits_in(uint64_t w) noexcept nogil:
    """How many bytes of a word, from its low one on, are decimal digits."""
    cdef uint64_t t = w ^ 0x3030303030303030ULL
    t = (((t & 0x7f7f7f7f7f7f7f7fULL) + 0x7676767676767676ULL) | t) & 0x8080808080808080ULL
    return <uint32_t>trailing_zeros(t) >> 3 if t else 8


cdef inline uint64_t eight_digits(uint64_t w) noexcept nogil:
    """The number that eight digits spell, the first in the low byte; they are summed pairwise."""
    w = (w & 0x0f0f0f0f0f0f0f0fULL) * 2561 >> 8
    w = (w & 0x00ff00ff00ff00ffULL) * 6553601 >> 16
    return (w & 0x0000ffff0000ffffULL) * 42949672960001ULL >> 32


cdef inline size_t take_digits(
    const uint8_t* p, size_t most, size_t room, uint64_t* value
) noexcept nogil:
    """Length of the run of at most ``most`` digits at ``p``; ``room`` bytes can be read there."""
    cdef size_t i = 0
    cdef size_t k
    cdef uint64_t v = 0
    cdef uint64_t w
    while i < most and i + 8 <= room:
        w = load64(p + i)
        k = min(<size_t>digits_in(w), most - i)
        if k < 8:
            if k:
                v = v * POWERS_OF_TEN[k] + eight_digits(w << (64 - 8 * k))
            value[0] = v
            return i + k
        v = v * 100000000 + eight_digits(w)
        i += 8
    while i < most and <uint8_t>(p[i] - 48) <= 9:
        v = v * 10 + <uint8_t>(p[i] - 48)
        i += 1
    value[0] = v
    return i


cdef inline size_t take_integer(
    const uint8_t* p, size_t n, size_t room, uint64_t* value
) noexcept nogil:
    """Length of the integer slot at ``p``, 0 when there is none (no digit, or a leading zero).

    The text has ``n`` more bytes; ``room`` bytes, not fewer than ``n``, can be read.
    """
    if n == 0 or <uint8_t>(p[0] - 48) > 9:
        return 0
    if p[0] == 48:
        value[0] = 0
        return 0 if n > 1 and <uint8_t>(p[1] - 48) <= 9 else 1
    return take_digits(p, min(n, <size_t>MOST_DIGITS), room, value)


cdef inline uint64_t eight_hex(uint64_t w, uint64_t* bad) noexcept nogil:
    """Eight lower-case hexadecimal digits, first one in the low byte, as a 32-bit number.

    Letters have bit 6. ``bad`` gathers what is wrong: a nibble out of range for its kind of
    character, or a character that is not the canonical one of its nibble.
    """
    cdef uint64_t letter = (w >> 6) & 0x0101010101010101ULL
    cdef uint64_t nibble = (w & 0x0f0f0f0f0f0f0f0fULL) + 9 * letter
    bad[0] |= nibble & 0xf0f0f0f0f0f0f0f0ULL
    bad[0] |= (((nibble + 0x0606060606060606ULL) >> 4) & 0x0101010101010101ULL) ^ letter
    bad[0] |= (nibble + 0x3030303030303030ULL + 0x27 * letter) ^ w
    nibble = ((nibble << 4) | (nibble >> 8)) & 0x00ff00ff00ff00ffULL
    nibble = ((nibble << 8) | (nibble >> 16)) & 0x0000ffff0000ffffULL
    return ((nibble << 16) | (nibble >> 32)) & 0xffffffffULL


cdef inline bint take_uuid(const uint8_t* p, size_t n, uint64_t* halves) noexcept nogil:
    """Read ``xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`` into two words."""
    cdef uint64_t bad = 0
    if n < 36 or p[8] != 45 or p[13] != 45 or p[18] != 45 or p[23] != 45:
        return False
    halves[0] = eight_hex(load64(p), &bad) << 32
    halves[0] |= eight_hex(load32(p + 9) | load32(p + 14) << 32, &bad)
    halves[1] = eight_hex(load32(p + 19) | load32(p + 24) << 32, &bad) << 32
    halves[1] |= eight_hex(load64(p + 28), &bad)
    return bad == 0


cdef inline uint32_t decimal_length(uint64_t v) noexcept nogil:
    cdef uint32_t n = 1
    while v >= 10000:
        v //= 10000
        n += 4
    if v >= 1000:
        return n + 3
    if v >= 100:
        return n + 2
    return n + 1 if v >= 10 else n


cdef inline size_t put_integer(uint8_t* out, uint64_t v) noexcept nogil:
    cdef uint32_t n = decimal_length(v)
    cdef uint32_t i = n
    while i > 0:
        i -= 1
        out[i] = <uint8_t>(48 + v % 10)
        v //= 10
    return n


cdef inline uint8_t hex_digit(uint64_t nibble) noexcept nogil:
    return <uint8_t>(nibble + (48 if nibble < 10 else 87))


cdef inline size_t put_uuid(uint8_t* out, uint64_t high, uint64_t low) noexcept nogil:
    cdef int i
    cdef int at = 0
    for i in range(32):
        if i == 8 or i == 12 or i == 16 or i == 20:
            out[at] = 45
            at += 1
        if i < 16:
            out[at] = hex_digit((high >> (60 - 4 * i)) & 15)
        else:
            out[at] = hex_digit((low >> (60 - 4 * (i - 16))) & 15)
        at += 1
    return 36
