"""Binary Fuse filters: the index functions, and the filter classes as other kernels see them.

For a key, ``h = fmix64(key + seed)``. Its three slots lie in three consecutive segments of
``segment_length`` (a power of two) slots; the key is present when the XOR of the three slots is
its fingerprint. A shape that passed ``check_shape`` keeps every slot inside the filter.
"""

from indextables.native._cursor cimport Cursor
from indextables.native._typedefs cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef extern from *:
    """
    static inline uint64_t it_scale(uint64_t h, uint32_t range) {
    #ifdef __SIZEOF_INT128__
        return (uint64_t)(((unsigned __int128)h * range) >> 64);
    #else
        uint64_t low = ((h & 0xffffffffu) * range) >> 32;
        return ((h >> 32) * range + low) >> 32;
    #endif
    }
    """
    uint64_t scale "it_scale"(uint64_t h, uint32_t range) noexcept nogil
    void prefetch "__builtin_prefetch"(const void* at) noexcept nogil

ctypedef fused slot_t:
    uint8_t
    uint16_t

cdef struct Shape:
    uint64_t seed
    uint32_t segment_length
    uint32_t segment_count_length
    uint32_t slots              # segment_count_length + 2 * segment_length

cdef struct Slots3:
    uint32_t a
    uint32_t b
    uint32_t c


cdef inline uint64_t fmix64(uint64_t h) noexcept nogil:
    h = (h ^ (h >> 33)) * <uint64_t>0xff51afd7ed558ccd
    h = (h ^ (h >> 33)) * <uint64_t>0xc4ceb9fe1a85ec53
    return h ^ (h >> 33)


cdef inline uint16_t fingerprint(uint64_t h) noexcept nogil:
    return <uint16_t>(h ^ (h >> 32))


cdef inline Slots3 slots_of(const Shape* shape, uint64_t h) noexcept nogil:
    cdef Slots3 at
    cdef uint32_t mask = shape.segment_length - 1
    at.a = <uint32_t>scale(h, shape.segment_count_length)
    at.b = (at.a + shape.segment_length) ^ (<uint32_t>(h >> 18) & mask)
    at.c = (at.a + 2 * shape.segment_length) ^ (<uint32_t>h & mask)
    return at


cdef inline bint holds(const Shape* shape, const slot_t* slots, uint64_t key) noexcept nogil:
    """Whether one key may be in the filter."""
    cdef uint64_t h = fmix64(key + shape.seed)
    cdef Slots3 at = slots_of(shape, h)
    return <slot_t>fingerprint(h) == <slot_t>(slots[at.a] ^ slots[at.b] ^ slots[at.c])


cdef class BinaryFuse:
    cdef Shape shape
    cdef readonly uint32_t width        # bytes a slot takes in memory: 1 or 2
    cdef const void* data               # shape.slots slots inside ``owner``
    cdef object owner                   # a memoryview, which pins the memory
    cdef uint64_t offset                # of the slots in ``owner``
    cdef int64_t keys                   # -1 where a file does not say

    cdef bint has(self, uint64_t key) noexcept nogil


cdef class BinaryFuse8(BinaryFuse):
    pass


cdef class BinaryFuse16(BinaryFuse):
    pass


cdef int check_shape(const Shape* shape, uint64_t mask, uint64_t slots, uint64_t offset) except -1
cdef BinaryFuse read_filter(type cls, object owner, Cursor* c, bint raw16)
