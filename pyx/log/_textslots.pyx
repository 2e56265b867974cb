"""UTF-8, judged as Python judges it."""

from indextables.native._typedefs cimport uint8_t


cdef bint utf8_valid(const uint8_t* p, size_t n) noexcept nogil:
    """Whether ``n`` bytes are well-formed UTF-8: shortest forms, no surrogates."""
    cdef size_t i = 0
    cdef uint8_t b
    cdef uint8_t second
    cdef size_t more
    while i < n:
        b = p[i]
        i += 1
        if b < 0x80:
            continue
        if b < 0xc2 or b > 0xf4:
            return False
        more = 1 if b < 0xe0 else (2 if b < 0xf0 else 3)
        if n - i < more:
            return False
        second = p[i]
        if (second & 0xc0) != 0x80:
            return False
        if b == 0xe0 and second < 0xa0 or b == 0xed and second > 0x9f:
            return False
        if b == 0xf0 and second < 0x90 or b == 0xf4 and second > 0x8f:
            return False
        if more > 1 and (p[i + 1] & 0xc0) != 0x80:
            return False
        if more > 2 and (p[i + 2] & 0xc0) != 0x80:
            return False
        i += more
    return True


def is_utf8(const uint8_t[::1] data not None):
    """Whether the bytes are well-formed UTF-8."""
    return data.shape[0] == 0 or bool(utf8_valid(&data[0], data.shape[0]))
