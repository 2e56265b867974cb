"""Avro data, walked by a compiled schema: file entries to columns, anything else to objects.

The program comes from ``indextables.log.checkpoint.avro_schema``: nodes ``(op, a, b)``, children
of records and unions, and for each top-level field of a file entry the kind of column it goes to.
Every byte is read through the checked cursor. Lengths and counts are compared with what is left
before anything is allocated for them, and a budget bounds the items that take no bytes at all.
"""

from libc.stdint cimport INT64_MIN

from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_need, read_u8, read_zigzag,
)
from indextables.native._hash cimport load64
from indextables.native._textslots cimport low_bytes, trailing_zeros
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    OP_NULL = 0
    OP_BOOLEAN = 1
    OP_INT = 2
    OP_LONG = 3
    OP_FLOAT = 4
    OP_DOUBLE = 5
    OP_BYTES = 6
    OP_STRING = 7
    OP_FIXED = 8
    OP_ENUM = 9
    OP_ARRAY = 10
    OP_MAP = 11
    OP_UNION = 12
    OP_RECORD = 13

cdef enum:
    SINK_SKIP = 0
    SINK_INT = 1
    SINK_TEXT = 2
    SINK_MAP = 3
    SINK_LIST = 4

cdef enum:
    QUICK_NOT = 0
    QUICK_INT = 1
    QUICK_BOOLEAN = 2
    QUICK_TEXT = 3
    QUICK_MAP = 4

cdef enum:
    DEEPEST = 64
    NEAR = 16               # bytes that can be read wherever the short way begins a field
    NEAR_KEY = 96           # and an item of a map: a key below 64 bytes, then as much again
    NO_BRANCH = 256

cdef struct Walk:
    const int32_t* nodes        # three per node: op, a, b
    const int32_t* children
    int64_t budget              # items that may still be walked over

cdef inline int32_t node_op(const Walk* w, int32_t node) noexcept nogil:
    return w.nodes[3 * node]

cdef inline int32_t node_a(const Walk* w, int32_t node) noexcept nogil:
    return w.nodes[3 * node + 1]

cdef inline int32_t node_b(const Walk* w, int32_t node) noexcept nogil:
    return w.nodes[3 * node + 2]

cdef int skip_value(Walk* w, Cursor* c, int32_t node, int depth) except -1 nogil


cdef inline int64_t read_number(Cursor* c) except? -1 nogil:
    """``read_zigzag`` with a short way for one byte."""
    cdef uint8_t b
    if c.pos < c.size:
        b = c.base[c.pos]
        if b < 128:
            c.pos += 1
            return <int64_t>(b >> 1) ^ -<int64_t>(b & 1)
    return read_zigzag(c)


cdef inline uint64_t read_length(Cursor* c) except? 18446744073709551615ULL nogil:
    """The length of a string or of bytes, all of which are there."""
    cdef int64_t n = read_number(c)
    if n < 0:
        cursor_fail(c, b"negative length")
        return 18446744073709551615ULL
    cursor_need(c, <uint64_t>n)
    return <uint64_t>n


cdef inline int read_boolean(Cursor* c) except -1 nogil:
    cdef uint8_t b = read_u8(c)
    if b > 1:
        return cursor_fail(c, b"a boolean is neither 0 nor 1")
    return b


cdef inline int32_t read_branch(Walk* w, Cursor* c, int32_t node) except -1 nogil:
    """The node of a union's branch."""
    cdef int64_t branch = read_number(c)
    if branch < 0 or branch >= node_b(w, node):
        return cursor_fail(c, b"a union has no such branch")
    return w.children[node_a(w, node) + branch]


cdef inline int64_t read_count(Walk* w, Cursor* c) except -1 nogil:
    """Items of the next block of an array or map, 0 at its end."""
    cdef int64_t count = read_number(c)
    if count < 0:
        if count == INT64_MIN:
            return cursor_fail(c, b"a block has too many items")
        count = -count
        read_zigzag(c)
    if count > w.budget:
        return cursor_fail(c, b"a block has too many items")
    w.budget -= count
    return count


cdef inline bint is_optional(const Walk* w, int32_t union_node) noexcept nogil:
    """Whether the first branch of a union is null."""
    cdef int32_t first = node_a(w, union_node)
    return node_b(w, union_node) > 0 and node_op(w, w.children[first]) == OP_NULL


cdef inline uint64_t near_varint(const uint8_t* base, uint64_t* pos) noexcept nogil:
    """A variable-length integer of at most eight bytes, eight of which can be read.

    A longer one is 2**64 - 1, and the position stays.
    """
    cdef uint64_t w = load64(base + pos[0])
    cdef uint64_t ends = ~w & 0x8080808080808080ULL
    cdef uint64_t n
    if w & 128 == 0:
        pos[0] += 1
        return w & 127
    if ends == 0:
        return 18446744073709551615ULL
    n = (<uint64_t>trailing_zeros(ends) >> 3) + 1
    pos[0] += n
    w &= low_bytes(n)
    w = (w & 0x007f007f007f007fULL) | ((w & 0x7f007f007f007f00ULL) >> 1)
    w = (w & 0x00003fff00003fffULL) | ((w & 0x3fff00003fff0000ULL) >> 2)
    return (w & 0x000000000fffffffULL) | ((w & 0x0fffffff00000000ULL) >> 4)


cdef inline uint64_t near_length(const uint8_t* base, uint64_t* pos) noexcept nogil:
    """A length, eight bytes of which can be read; 2**64 - 1 when it is negative or longer."""
    cdef uint64_t raw = near_varint(base, pos)
    return 18446744073709551615ULL if raw & 1 else raw >> 1
