"""The bundle: many files in one, found through a footer."""

from indextables.native._cursor cimport Cursor
from indextables.native._typedefs cimport uint8_t, uint64_t

cdef struct Frame:
    uint64_t metadata_start     # offsets from the start of the file
    uint64_t metadata_end
    uint64_t hotcache_start
    uint64_t hotcache_end


cdef class Bundle:
    cdef readonly dict files
    cdef readonly str form
    cdef readonly uint64_t size
    cdef Frame frame
    cdef object tail            # memoryview of the last bytes of the file
    cdef uint64_t tail_start    # where in the file they begin

    cdef int _read(self, object tail, uint64_t size) except -1
