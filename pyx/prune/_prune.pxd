"""Verdicts, the facts about a column in a split, and the order of cuts between strings."""

from libc.string cimport memcmp

from indextables.native._typedefs cimport int64_t, uint8_t

cdef enum Verdict:
    CANNOT_MATCH = 0
    MAY_MATCH = 1
    MUST_MATCH = 2

cdef enum Fact:
    NO_NULL = 1             # every row has a value
    ALL_NULL = 2            # no row has one
    EMPTY = 4               # the split has no rows
    HAS_LOW = 8             # strings only: there is a lower text
    HAS_HIGH = 16           # strings only: there is an upper text
    HIGH_OPEN = 32          # strings only: the upper text is a prefix
    NOTHING = 6             # ALL_NULL | EMPTY

cdef enum CutKind:
    BEFORE = 0              # just below the string
    AFTER = 1               # just above it
    END = 2                 # above everything that starts with it


cdef struct Cut:
    const uint8_t* text
    int64_t size
    int64_t key             # first eight bytes, filled up as the kind asks
    int kind


cdef inline int compare_cuts(const Cut* x, const Cut* y) noexcept nogil:
    """-1, 0 or 1 as cut ``x`` lies below, on or above cut ``y`` in byte order."""
    cdef int64_t shared
    cdef int order
    if x.key != y.key:
        return -1 if x.key < y.key else 1
    shared = x.size if x.size < y.size else y.size
    order = memcmp(x.text, y.text, <size_t>shared) if shared > 0 else 0
    if order != 0:
        return -1 if order < 0 else 1
    if x.size == y.size:
        return (x.kind > y.kind) - (x.kind < y.kind)
    if x.size < y.size:
        return 1 if x.kind == END else -1
    return -1 if y.kind == END else 1
