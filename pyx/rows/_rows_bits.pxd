"""Bit-packed integer vectors: one value out of the middle without unpacking its neighbours.

A vector of ``n`` integers is stored as

    u8 width | u8 flags | i64 base | [u8 shift | i64 slope] | [u64 factor] | packed numbers

and value ``i`` is ``base + ((slope * i) >> shift) + factor * packed[i]`` modulo 2**64. A slope is
there when flag 1 is set, a factor when flag 2 is set; the packed numbers take ``width`` bits each,
lowest bit first, in ``ceil(n * width / 8)`` bytes. Opening a vector checks once that all its bits
are there; after that reads need no check beyond ``i < n``, and no load leaves the packed bytes.
"""

from libc.string cimport memcpy

from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_take, it_le64, read_u8, read_u64,
)
from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t

cdef extern from *:
    """
    #define IT_POPCOUNT(x) ((uint64_t)__builtin_popcountll(x))
    """
    uint64_t popcount64 "IT_POPCOUNT"(uint64_t x) noexcept nogil
    int clz32 "__builtin_clz"(unsigned int x) noexcept nogil
    int clz64 "__builtin_clzll"(unsigned long long x) noexcept nogil

cdef enum:
    VEC_SLOPE = 1
    VEC_FACTOR = 2


cdef struct IntVec:
    const uint8_t* bits
    uint64_t nbytes
    uint64_t count
    uint64_t base
    uint64_t slope
    uint64_t factor
    uint64_t mask
    uint64_t safe               # numbers before this one may be loaded as eight bytes each
    uint32_t width
    uint32_t shift


cdef inline uint64_t packed_bytes(uint64_t count, uint64_t width) noexcept nogil:
    return (count * width + 7) >> 3


cdef inline uint64_t width_mask(uint32_t width) noexcept nogil:
    return ~<uint64_t>0 if width >= 64 else (<uint64_t>1 << width) - 1


cdef inline uint32_t width_of(uint64_t value) noexcept nogil:
    """Bits needed to hold ``value``."""
    return 64 - clz64(value) if value else 0


cdef inline uint64_t load_le64(const uint8_t* p) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, p, 8)
    return it_le64(v)


cdef inline uint64_t load_upto(const uint8_t* p, uint64_t available) noexcept nogil:
    """The next (at most 8) bytes as a number; missing bytes are zero."""
    cdef uint64_t v = 0
    if available >= 8:
        return load_le64(p)
    memcpy(&v, p, available)
    return it_le64(v)


cdef inline uint64_t bits_at(
    const uint8_t* bits, uint64_t nbytes, uint64_t bitpos, uint32_t width
) noexcept nogil:
    """``width`` (1..64) bits from ``bitpos``; the caller knows they lie within ``nbytes``."""
    cdef uint64_t byte = bitpos >> 3
    cdef uint32_t skip = bitpos & 7
    cdef uint64_t v = load_upto(bits + byte, nbytes - byte) >> skip
    if skip + width > 64:
        v |= <uint64_t>bits[byte + 8] << (64 - skip)
    return v & width_mask(width)


cdef inline uint64_t safe_numbers(uint64_t nbytes, uint32_t width) noexcept nogil:
    """How many leading numbers may be loaded as eight bytes: number i from byte i * width / 8."""
    if width == 0 or width > 57 or nbytes < 8:
        return 0
    return ((nbytes - 8) * 8 + 7) // width + 1


cdef inline int vec_open(Cursor* c, uint64_t count, IntVec* v) except -1 nogil:
    """Read a vector's head and take its packed bytes."""
    cdef uint8_t flags
    v.count = count
    v.width = read_u8(c)
    flags = read_u8(c)
    if v.width > 64 or flags > 3 or count > <uint64_t>1 << 40:
        return cursor_fail(c, b"impossible integer vector")
    v.base = read_u64(c)
    v.slope = 0
    v.shift = 0
    v.factor = 1
    v.mask = width_mask(v.width)
    if flags & VEC_SLOPE:
        v.shift = read_u8(c)
        v.slope = read_u64(c)
        if v.shift > 63:
            return cursor_fail(c, b"impossible integer vector")
    if flags & VEC_FACTOR:
        v.factor = read_u64(c)
    v.nbytes = packed_bytes(count, v.width)
    v.bits = cursor_take(c, v.nbytes)
    v.safe = safe_numbers(v.nbytes, v.width)
    return 0


cdef inline uint64_t vec_model(const IntVec* v, uint64_t i, uint64_t packed) noexcept nogil:
    return v.base + <uint64_t>(<int64_t>(v.slope * i) >> v.shift) + v.factor * packed


cdef inline uint64_t vec_get(const IntVec* v, uint64_t i) noexcept nogil:
    """Value ``i < count``."""
    cdef uint64_t packed = 0
    if v.width:
        packed = bits_at(v.bits, v.nbytes, i * v.width, v.width)
    return vec_model(v, i, packed)


cdef inline void unpack_scaled(
    const IntVec* v, uint64_t start, uint64_t n, uint64_t base, uint64_t factor, uint64_t* out
) noexcept nogil:
    """``base + factor * number`` for the packed numbers ``start .. start + n``."""
    cdef uint64_t i, safe, bitpos = start * v.width
    cdef uint32_t width = v.width
    cdef uint64_t mask = v.mask
    cdef const uint8_t* bits = v.bits
    if width == 0:
        for i in range(n):
            out[i] = base
        return
    safe = v.safe - start if v.safe > start else 0
    safe = safe if safe < n else n
    if factor == 1:
        for i in range(safe):
            out[i] = base + ((load_le64(bits + (bitpos >> 3)) >> (bitpos & 7)) & mask)
            bitpos += width
    else:
        for i in range(safe):
            out[i] = base + factor * (
                (load_le64(bits + (bitpos >> 3)) >> (bitpos & 7)) & mask
            )
            bitpos += width
    for i in range(safe, n):
        out[i] = base + factor * bits_at(bits, v.nbytes, bitpos, width)
        bitpos += width


cdef inline void unpack_run(
    const IntVec* v, uint64_t start, uint64_t n, uint64_t* out
) noexcept nogil:
    """Packed numbers ``start .. start + n`` without the model."""
    unpack_scaled(v, start, n, 0, 1, out)


cdef inline void vec_run(
    const IntVec* v, uint64_t start, uint64_t n, uint64_t* out
) noexcept nogil:
    """Values ``start .. start + n``, which the caller knows to be within ``count``."""
    cdef uint64_t i
    if v.slope:
        unpack_scaled(v, start, n, 0, 1, out)
        for i in range(n):
            out[i] = vec_model(v, start + i, out[i])
    else:
        unpack_scaled(v, start, n, v.base, v.factor, out)


cdef inline uint64_t rank_bits(const uint8_t* bitmap, uint64_t upto) noexcept nogil:
    """Set bits among the first ``upto``."""
    cdef uint64_t total = 0, word = 0
    cdef uint64_t whole = upto >> 6
    cdef uint64_t i
    for i in range(whole):
        total += popcount64(load_le64(bitmap + 8 * i))
    if upto & 63:
        word = load_upto(bitmap + 8 * whole, ((upto & 63) + 7) >> 3)
        total += popcount64(word & ((<uint64_t>1 << (upto & 63)) - 1))
    return total


cdef inline uint64_t rank_between(
    const uint8_t* bitmap, uint64_t start, uint64_t stop
) noexcept nogil:
    """Set bits from ``start`` to ``stop``."""
    cdef const uint8_t* near = bitmap + 8 * (start >> 6)
    return rank_bits(near, stop - (start & ~<uint64_t>63)) - rank_bits(near, start & 63)


cdef inline uint64_t rank_from(
    const uint8_t* bitmap, uint64_t slot, uint64_t rank, uint64_t wanted
) noexcept nogil:
    """The rank of slot ``wanted``, counted from a slot whose rank is known; no bitmap: its own."""
    if bitmap == NULL:
        return wanted
    if wanted < slot:
        return rank_bits(bitmap, wanted)
    return rank + rank_between(bitmap, slot, wanted)
