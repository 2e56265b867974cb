"""Many filters held for probing one key against all of them."""

from indextables.native._fuse cimport Shape
from indextables.native._typedefs cimport uint8_t, uint32_t, uint64_t

cdef struct Group:
    Shape shape
    uint32_t width              # bytes of a slot
    uint32_t count              # filters side by side in a row
    uint64_t first              # index of its first filter in ``members``
    const uint8_t* rows         # row ``s`` holds slot ``s`` of every filter of the group

cdef struct Place:
    uint32_t group
    uint32_t column

cdef struct Sink:
    uint8_t* found              # set to 1 for each hit; or NULL, and then
    uint32_t* streak            # hits in a row, counted for filters that hit every time so far
    uint32_t probes             # keys probed before this one
    uint64_t survivors          # filters that hit on this key and on all before it


cdef class FilterSet:
    cdef readonly uint64_t nbytes
    cdef uint64_t size
    cdef uint64_t group_count
    cdef Group* table
    cdef Place* places          # of each filter, in the order given
    cdef uint32_t* members      # filters by group and column
    cdef uint8_t* arena

    cdef int _load(self, list filters, list grouped) except -1
    cdef void _probe_all_groups(self, uint64_t key, Sink* sink) noexcept nogil
    cdef bint _has(self, uint64_t index, uint64_t key) noexcept nogil
    cdef uint64_t _keep_hits(self, uint64_t key, uint8_t[::1] chosen) noexcept nogil
