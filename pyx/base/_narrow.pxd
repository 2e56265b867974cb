"""Whole numbers as their least value and the narrowest differences from it."""

from indextables.native._typedefs cimport uint64_t

cdef object narrowed(const uint64_t* source, size_t n, uint64_t low, uint64_t high)
