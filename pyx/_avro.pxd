"""Avro data, walked by a compiled schema: file entries to columns, anything else to objects.

The program comes from ``indextables.log.avro_schema``: nodes ``(op, a, b)``, children of records
and unions, and for each top-level field of a file entry the kind of column it goes to. Every byte
is read through the checked cursor. Lengths and counts are compared with what is left before
anything is allocated for them, and a budget bounds the items that take no bytes at all.
"""

from indextables.native._cursor cimport Cursor
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
    DEEPEST = 64
    MOST_KEYS = 10000
    CHUNK = 512             # rows that are taken apart before they are packed

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
