"""Construction of Binary Fuse filters; the rules are told in ``_fuse_build.pyx``."""

from indextables.native._fuse cimport Shape, slot_t
from indextables.native._typedefs cimport uint8_t, uint16_t, uint32_t, uint64_t

cdef Shape shape_for(uint64_t keys, bint round_segments) except *
cdef uint64_t seed_number(uint64_t index) noexcept nogil
cdef object construct(object keys, slot_t _width, Shape* shape, uint64_t sized_for,
                      uint64_t first_seed, bint round_segments)
