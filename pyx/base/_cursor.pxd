"""One length-checked cursor: every byte of every file format comes in through it.

A cursor walks over memory it does not own. Each read first compares what is asked with what is
left; a read that does not fit raises ``CorruptFileError`` with the offset in the file and changes
nothing. Reads may be called with or without the GIL, the error path takes it.

    cdef Cursor c
    cdef const uint8_t[::1] view = buffer
    cursor_over(&c, view, 0)
    length = read_u32(&c)
    start = cursor_take(&c, length)         # pointer to `length` readable bytes

The owner of ``view`` must outlive the cursor.
"""

from libc.string cimport memcpy

from indextables.native._typedefs cimport (
    float64_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

cdef extern from *:
    """
    static inline uint16_t it_le16(uint16_t v) {
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return __builtin_bswap16(v);
    #else
        return v;
    #endif
    }
    static inline uint32_t it_le32(uint32_t v) {
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return __builtin_bswap32(v);
    #else
        return v;
    #endif
    }
    static inline uint64_t it_le64(uint64_t v) {
    #if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        return __builtin_bswap64(v);
    #else
        return v;
    #endif
    }
    """
    uint16_t it_le16(uint16_t v) noexcept nogil
    uint32_t it_le32(uint32_t v) noexcept nogil
    uint64_t it_le64(uint64_t v) noexcept nogil
    uint16_t bswap16 "__builtin_bswap16"(uint16_t v) noexcept nogil
    uint32_t bswap32 "__builtin_bswap32"(uint32_t v) noexcept nogil
    uint64_t bswap64 "__builtin_bswap64"(uint64_t v) noexcept nogil


cdef struct Cursor:
    const uint8_t* base     # first byte of the memory walked over
    uint64_t size           # readable bytes from base
    uint64_t pos            # next byte to read, 0 <= pos <= size
    uint64_t origin         # offset of base[0] in the file, for error messages


cdef int corrupt_at(uint64_t offset, const char* reason) except -1 nogil
cdef int cursor_fail(const Cursor* c, const char* reason) except -1 nogil


cdef inline void cursor_init(
    Cursor* c, const uint8_t* base, uint64_t size, uint64_t origin
) noexcept nogil:
    c.base = base
    c.size = size
    c.pos = 0
    c.origin = origin


cdef inline void cursor_over(Cursor* c, const uint8_t[::1] view, uint64_t origin) noexcept nogil:
    """A cursor over a whole contiguous buffer (which may be empty)."""
    cursor_init(c, NULL, <uint64_t>view.shape[0], origin)
    if view.shape[0] > 0:
        c.base = &view[0]


cdef inline uint64_t cursor_left(const Cursor* c) noexcept nogil:
    return c.size - c.pos


cdef inline int cursor_need(const Cursor* c, uint64_t count) except -1 nogil:
    """Raise unless ``count`` more bytes can be read."""
    if count > c.size - c.pos:
        return cursor_fail(c, b"unexpected end of data")
    return 0


cdef inline const uint8_t* cursor_take(Cursor* c, uint64_t count) except? NULL nogil:
    """A pointer to the next ``count`` bytes, which are then passed."""
    cursor_need(c, count)
    cdef const uint8_t* at = c.base + c.pos
    c.pos += count
    return at


cdef inline int cursor_skip(Cursor* c, uint64_t count) except -1 nogil:
    cursor_need(c, count)
    c.pos += count
    return 0


cdef inline int cursor_seek(Cursor* c, uint64_t position) except -1 nogil:
    """Go to ``position`` bytes after ``base``."""
    if position > c.size:
        return cursor_fail(c, b"offset beyond the end of the data")
    c.pos = position
    return 0


cdef inline int cursor_sub(Cursor* c, uint64_t count, Cursor* inner) except -1 nogil:
    """Pass ``count`` bytes, which ``inner`` then walks alone."""
    cursor_need(c, count)
    cursor_init(inner, c.base + c.pos, count, c.origin + c.pos)
    c.pos += count
    return 0


cdef inline uint8_t read_u8(Cursor* c) except? 255 nogil:
    cursor_need(c, 1)
    c.pos += 1
    return c.base[c.pos - 1]


cdef inline uint16_t read_u16(Cursor* c) except? 65535 nogil:
    cdef uint16_t v
    memcpy(&v, cursor_take(c, 2), 2)
    return it_le16(v)


cdef inline uint32_t read_u32(Cursor* c) except? 4294967295 nogil:
    cdef uint32_t v
    memcpy(&v, cursor_take(c, 4), 4)
    return it_le32(v)


cdef inline uint64_t read_u64(Cursor* c) except? 18446744073709551615 nogil:
    cdef uint64_t v
    memcpy(&v, cursor_take(c, 8), 8)
    return it_le64(v)


cdef inline int32_t read_i32(Cursor* c) except? -1 nogil:
    return <int32_t>read_u32(c)


cdef inline int64_t read_i64(Cursor* c) except? -1 nogil:
    return <int64_t>read_u64(c)


cdef inline float64_t read_f64(Cursor* c) except? -1 nogil:
    cdef uint64_t bits = read_u64(c)
    cdef float64_t v
    memcpy(&v, &bits, 8)
    return v


cdef inline uint16_t read_u16_be(Cursor* c) except? 65535 nogil:
    return bswap16(read_u16(c))


cdef inline uint32_t read_u32_be(Cursor* c) except? 4294967295 nogil:
    return bswap32(read_u32(c))


cdef inline uint64_t read_u64_be(Cursor* c) except? 18446744073709551615 nogil:
    return bswap64(read_u64(c))


cdef inline int64_t read_i64_be(Cursor* c) except? -1 nogil:
    return <int64_t>bswap64(read_u64(c))


cdef inline float64_t read_f64_be(Cursor* c) except? -1 nogil:
    cdef uint64_t bits = read_u64_be(c)
    cdef float64_t v
    memcpy(&v, &bits, 8)
    return v


cdef inline uint64_t read_varint(Cursor* c) except? 18446744073709551615 nogil:
    """LEB128, at most ten bytes, no bits beyond 64."""
    cdef uint64_t value = 0
    cdef uint64_t at = c.pos
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while at < c.size:
        byte = c.base[at]
        at += 1
        if shift == 63 and byte > 1:
            cursor_fail(c, b"variable-length integer does not fit in 64 bits")
            return 18446744073709551615ULL
        value |= <uint64_t>(byte & 127) << shift
        if byte < 128:
            c.pos = at
            return value
        shift += 7
    cursor_fail(c, b"unexpected end of data")
    return 18446744073709551615ULL


cdef inline int64_t read_zigzag(Cursor* c) except? -1 nogil:
    """A signed LEB128 integer in zigzag form, as Avro writes int and long."""
    cdef uint64_t raw = read_varint(c)
    return <int64_t>(raw >> 1) ^ -<int64_t>(raw & 1)
