"""Checked blocks of one stream, and the spans of slots that a read wants from them."""

from indextables.native._cursor cimport Cursor
from indextables.native._rows_bits cimport rank_from
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    ALL_NULL = 0
    INTEGERS = 1
    DECIMAL_FLOATS = 2
    CODES = 3
    WIDE_INTEGERS = 4
    PLAIN = 5
    PAIRS = 6
    TEMPLATE = 7
    ZSTD = 8
    LISTS = 9
    VALIDITY = 10

cdef enum:
    HAS_NULLS = 1
    EXPANSION = 128
    ROW_ALLOWANCE = 256


cdef struct Head:
    uint8_t kind
    uint64_t count              # slots in the block
    uint64_t valid              # slots that hold a value
    const uint8_t* bitmap       # NULL where every slot holds a value
    uint64_t allowance          # bytes of output this block may stand for
    Cursor body


cdef struct Block:
    const uint8_t* data
    uint64_t length
    uint64_t origin
    uint32_t rows


cdef struct Run:
    Py_ssize_t first            # spans first .. end of one block
    Py_ssize_t end
    uint64_t start              # slots start .. stop: all of the spans but the first and the last
    uint64_t stop
    uint64_t slot               # a slot of the block, and how many before it hold a value
    uint64_t rank


cdef class BlockSet:
    cdef list owners
    cdef Block* blocks
    cdef uint32_t kinds
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t bad
    cdef readonly bint any_nulls
    cdef int check(self, const int64_t[:, ::1] table) except -1
    cdef int open_head(self, int64_t block, Head* head) except -1 nogil


cdef class Spans:
    cdef readonly object block, start, stop
    cdef readonly int64_t total
    cdef const int32_t[::1] b
    cdef const uint32_t[::1] lo
    cdef const uint32_t[::1] hi
    cdef bint next_run(self, Run* run, uint32_t most, bint join) noexcept nogil
    cdef void whole_block(self, Run* run, uint64_t* slots) noexcept nogil


cdef inline uint64_t part_start(Spans spans, const Run* run, Py_ssize_t i) noexcept nogil:
    """The first slot of span ``i`` that belongs to a run."""
    return max(<uint64_t>spans.lo[i], run.start)


cdef inline uint64_t part_stop(Spans spans, const Run* run, Py_ssize_t i) noexcept nogil:
    """The end of the slots of span ``i`` that belong to a run."""
    return min(<uint64_t>spans.hi[i], run.stop)


cdef inline void rank_run(Run* run, const uint8_t* bitmap) noexcept nogil:
    """Make ``run.rank`` that of the run's start."""
    run.rank = rank_from(bitmap, run.slot, run.rank, run.start)
    run.slot = run.start
