"""Key hashes, usable without the GIL from every kernel.

A key is a field name and a value. Two kinds of hash are known to the file formats:

* ``HASH_FXHASH64``: fxhash over the bytes ``field ":" value`` and a closing ``0xff``, the hash of
  FXRF versions 1 and 2. Each step is ``(rotl(h, 5) ^ word) * K``; distinct ordinary keys collide.
* ``HASH_XXH64``: XXH64 of the value, seeded with XXH64 of the field name (seed 0). No structural
  collisions, and ``a`` + ``b:c`` differs from ``a:b`` + ``c``.

``key_prefix`` does the work that depends on the field alone; ``hash_value`` then hashes one value
without building the joined key.
"""

from libc.string cimport memcpy

from indextables.native._cursor cimport it_le16, it_le32, it_le64
from indextables.native._typedefs cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    HASH_FXHASH64 = 0
    HASH_XXH64 = 1

cdef enum:
    FX_K = 0x517cc1b727220a95ULL
    XX_P1 = 0x9e3779b185ebca87ULL
    XX_P2 = 0xc2b2ae3d27d4eb4fULL
    XX_P3 = 0x165667b19e3779f9ULL
    XX_P4 = 0x85ebca77c2b2ae63ULL
    XX_P5 = 0x27d4eb2f165667c5ULL

cdef struct KeyPrefix:
    int kind
    uint64_t state          # fxhash64: hash of the whole words of the prefix; xxh64: the seed
    uint64_t carry          # fxhash64: prefix bytes after the last whole word, low byte first
    uint32_t carried        # how many of them, 0..7


cdef inline uint64_t load64(const uint8_t* p) noexcept nogil:
    cdef uint64_t v
    memcpy(&v, p, 8)
    return it_le64(v)


cdef inline uint64_t load32(const uint8_t* p) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, p, 4)
    return it_le32(v)


cdef inline uint64_t load16(const uint8_t* p) noexcept nogil:
    cdef uint16_t v
    memcpy(&v, p, 2)
    return it_le16(v)


cdef inline uint64_t rotl64(uint64_t v, uint32_t by) noexcept nogil:
    return (v << by) | (v >> (64 - by))


cdef inline uint64_t fx_step(uint64_t h, uint64_t word) noexcept nogil:
    return (rotl64(h, 5) ^ word) * <uint64_t>FX_K


cdef inline uint64_t fx_finish(uint64_t h, const uint8_t* p, size_t n) noexcept nogil:
    """Hash the last ``n`` bytes of a key and the closing 0xff into ``h``."""
    while n >= 8:
        h = fx_step(h, load64(p))
        p += 8
        n -= 8
    if n >= 4:
        h = fx_step(h, load32(p))
        p += 4
        n -= 4
    if n >= 2:
        h = fx_step(h, load16(p))
        p += 2
        n -= 2
    if n:
        h = fx_step(h, p[0])
    return fx_step(h, 0xff)


cdef inline uint64_t fx_after_carry(
    uint64_t h, uint64_t carry, uint32_t carried, const uint8_t* p, size_t n
) noexcept nogil:
    """``fx_finish`` of ``carried`` (1..7) bytes held in ``carry``, then of ``n`` bytes at ``p``."""
    cdef uint32_t up = 8 * carried
    cdef uint64_t word
    cdef uint8_t tail[16]
    while n >= 8:
        word = load64(p)
        h = fx_step(h, carry | (word << up))
        carry = word >> (64 - up)
        p += 8
        n -= 8
    carry = it_le64(carry)
    memcpy(tail, &carry, 8)
    memcpy(tail + carried, p, n)
    return fx_finish(h, tail, carried + n)


cdef inline uint64_t xx_round(uint64_t lane, uint64_t word) noexcept nogil:
    return rotl64(lane + word * <uint64_t>XX_P2, 31) * <uint64_t>XX_P1


cdef inline uint64_t xx_merge(uint64_t h, uint64_t lane) noexcept nogil:
    return (h ^ xx_round(0, lane)) * <uint64_t>XX_P1 + <uint64_t>XX_P4


cdef inline uint64_t xx_lanes(const uint8_t* p, size_t blocks, uint64_t seed) noexcept nogil:
    """The four lanes of XXH64 over ``blocks`` (at least one) blocks of 32 bytes, merged."""
    cdef uint64_t a = seed + <uint64_t>XX_P1 + <uint64_t>XX_P2
    cdef uint64_t b = seed + <uint64_t>XX_P2
    cdef uint64_t c = seed
    cdef uint64_t d = seed - <uint64_t>XX_P1
    cdef size_t _block
    for _block in range(blocks):
        a = xx_round(a, load64(p))
        b = xx_round(b, load64(p + 8))
        c = xx_round(c, load64(p + 16))
        d = xx_round(d, load64(p + 24))
        p += 32
    cdef uint64_t h = rotl64(a, 1) + rotl64(b, 7) + rotl64(c, 12) + rotl64(d, 18)
    return xx_merge(xx_merge(xx_merge(xx_merge(h, a), b), c), d)


cdef inline uint64_t xxh64_bytes(const uint8_t* p, size_t n, uint64_t seed) noexcept nogil:
    cdef uint64_t h = seed + <uint64_t>XX_P5
    cdef size_t rest = n
    if n >= 32:
        h = xx_lanes(p, n >> 5, seed)
        p += n & ~<size_t>31
        rest = n & 31
    h += n
    while rest >= 8:
        h = rotl64(h ^ xx_round(0, load64(p)), 27) * <uint64_t>XX_P1 + <uint64_t>XX_P4
        p += 8
        rest -= 8
    if rest >= 4:
        h = rotl64(h ^ (load32(p) * <uint64_t>XX_P1), 23) * <uint64_t>XX_P2 + <uint64_t>XX_P3
        p += 4
        rest -= 4
    while rest:
        h = rotl64(h ^ (p[0] * <uint64_t>XX_P5), 11) * <uint64_t>XX_P1
        p += 1
        rest -= 1
    h = (h ^ (h >> 33)) * <uint64_t>XX_P2
    h = (h ^ (h >> 29)) * <uint64_t>XX_P3
    return h ^ (h >> 32)


cdef inline void key_prefix(
    KeyPrefix* prefix, int kind, const uint8_t* field, size_t n
) noexcept nogil:
    """The part of the hash that every key of one field shares."""
    cdef uint64_t tail = 0
    cdef size_t whole = n & ~<size_t>7
    cdef size_t i
    prefix.kind = kind
    prefix.carry = 0
    prefix.carried = 0
    if kind == HASH_XXH64:
        prefix.state = xxh64_bytes(field, n, 0)
        return
    prefix.state = 0
    for i in range(0, whole, 8):
        prefix.state = fx_step(prefix.state, load64(field + i))
    for i in range(whole, n):
        tail |= <uint64_t>field[i] << (8 * (i - whole))
    tail |= <uint64_t>c':' << (8 * (n - whole))
    if n - whole == 7:
        prefix.state = fx_step(prefix.state, tail)
    else:
        prefix.carry = tail
        prefix.carried = <uint32_t>(n - whole) + 1


cdef inline uint64_t hash_value(
    const KeyPrefix* prefix, const uint8_t* value, size_t n
) noexcept nogil:
    """The hash of one key, given what its field contributes."""
    if prefix.kind == HASH_XXH64:
        return xxh64_bytes(value, n, prefix.state)
    if prefix.carried == 0:
        return fx_finish(prefix.state, value, n)
    return fx_after_carry(prefix.state, prefix.carry, prefix.carried, value, n)


cdef inline uint64_t hash_key(
    int kind, const uint8_t* field, size_t field_size, const uint8_t* value, size_t value_size
) noexcept nogil:
    """The hash of one key of a known kind."""
    cdef KeyPrefix prefix
    key_prefix(&prefix, kind, field, field_size)
    return hash_value(&prefix, value, value_size)


cdef int hash_kind_id(object kind) except -1
