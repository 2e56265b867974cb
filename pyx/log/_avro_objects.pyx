"""Containers and small values: what is read once per file, as Python objects."""

from libc.string cimport memcmp

import numpy as np

from indextables.native._avro cimport (
    DEEPEST, OP_ARRAY, OP_BOOLEAN, OP_BYTES, OP_DOUBLE, OP_ENUM, OP_FLOAT, OP_INT, OP_LONG, OP_MAP,
    OP_NULL, OP_RECORD, OP_STRING, OP_UNION, Walk, node_a, node_b, node_op, read_boolean,
    read_branch, read_count, read_length,
)
from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_left, cursor_over, cursor_skip, cursor_take, read_f64, read_i32,
    read_zigzag,
)
from indextables.native._textslots cimport utf8_valid
from indextables.native._typedefs cimport float32_t, int32_t, int64_t, uint8_t, uint64_t

from indextables.errors import CorruptFileError


def scan_container(const uint8_t[::1] data not None):
    """Header and block table of an object container file.

    Returns ``(metadata, counts, starts, sizes)``: metadata maps names to bytes, the arrays give
    for each block its number of values and where its bytes lie. Every sync marker is compared.
    """
    cdef Cursor c
    cursor_over(&c, data, 0)
    if cursor_left(&c) < 4 or memcmp(cursor_take(&c, 4), b"Obj\x01", 4) != 0:
        raise CorruptFileError("not an Avro container file", offset=0)
    metadata = _read_metadata(&c)
    cdef const uint8_t* sync = cursor_take(&c, 16)
    counts, starts, sizes = [], [], []
    cdef int64_t count
    cdef uint64_t size
    while cursor_left(&c):
        count = read_zigzag(&c)
        if count < 0:
            cursor_fail(&c, b"a block has a negative number of values")
        size = read_length(&c)
        counts.append(count)
        starts.append(c.pos)
        sizes.append(size)
        cursor_skip(&c, size)
        if memcmp(cursor_take(&c, 16), sync, 16) != 0:
            cursor_fail(&c, b"a sync marker does not match")
    return (
        metadata,
        np.array(counts, np.int64),
        np.array(starts, np.int64),
        np.array(sizes, np.int64),
    )


cdef dict _read_metadata(Cursor* c):
    cdef Walk w
    w.budget = <int64_t>cursor_left(c) + 1
    cdef int64_t count = read_count(&w, c)
    found = {}
    while count:
        while count:
            key = _take_bytes(c)
            found[key.decode("utf-8", "replace")] = _take_bytes(c)
            count -= 1
        count = read_count(&w, c)
    return found


cdef bytes _take_bytes(Cursor* c):
    cdef uint64_t n = read_length(c)
    cdef const uint8_t* p = cursor_take(c, n)
    return (<const char*>p)[:n] if n else b""


def decode_objects(program, const uint8_t[::1] data not None, Py_ssize_t count):
    """``count`` values of the program's root as Python objects; all bytes must be used."""
    cdef const int32_t[:, ::1] nodes = program.node_array()
    cdef const int32_t[::1] children = program.child_array()
    cdef Walk w
    cdef Cursor c
    w.nodes = &nodes[0, 0]
    w.children = &children[0] if children.shape[0] else NULL
    w.budget = 8 * <int64_t>data.shape[0] + 4096
    cursor_over(&c, data, 0)
    if count > data.shape[0] + 1:
        raise CorruptFileError("a block is too short for its number of values")
    found = [_object(&w, &c, 0, program.names, 0) for _ in range(count)]
    if cursor_left(&c):
        cursor_fail(&c, b"a block is longer than its values")
    return found


cdef object _object(Walk* w, Cursor* c, int32_t node, list names, int depth):
    cdef int32_t op = node_op(w, node)
    cdef int32_t first = node_a(w, node)
    cdef int32_t k
    if depth > DEEPEST:
        cursor_fail(c, b"values are nested too deeply")
    if op == OP_RECORD:
        return {
            names[first + k]: _object(w, c, w.children[first + k], names, depth + 1)
            for k in range(node_b(w, node))
        }
    if op == OP_UNION:
        return _object(w, c, read_branch(w, c, node), names, depth + 1)
    if op == OP_ARRAY or op == OP_MAP:
        return _collection(w, c, node, names, depth)
    return _scalar(w, c, node)


cdef object _collection(Walk* w, Cursor* c, int32_t node, list names, int depth):
    cdef int64_t count = read_count(w, c)
    cdef bint is_map = node_op(w, node) == OP_MAP
    cdef int32_t item = node_a(w, node)
    cdef object found = {} if is_map else []
    while count:
        while count:
            if is_map:
                key = _text(c)
                found[key] = _object(w, c, item, names, depth + 1)
            else:
                found.append(_object(w, c, item, names, depth + 1))
            count -= 1
        count = read_count(w, c)
    return found


cdef object _scalar(Walk* w, Cursor* c, int32_t node):
    cdef int32_t op = node_op(w, node)
    cdef int32_t bits
    cdef uint64_t n
    cdef const uint8_t* p
    if op == OP_NULL:
        return None
    if op == OP_BOOLEAN:
        return read_boolean(c) == 1
    if op == OP_INT or op == OP_LONG or op == OP_ENUM:
        return read_zigzag(c)
    if op == OP_STRING:
        return _text(c)
    if op == OP_BYTES:
        return _take_bytes(c)
    if op == OP_DOUBLE:
        return read_f64(c)
    if op == OP_FLOAT:
        bits = read_i32(c)
        return float((<float32_t*>&bits)[0])
    n = <uint64_t>node_a(w, node)
    p = cursor_take(c, n)
    return (<const char*>p)[:n] if n else b""


cdef str _text(Cursor* c):
    cdef uint64_t n = read_length(c)
    cdef const uint8_t* p = cursor_take(c, n)
    if not utf8_valid(p, n):
        cursor_fail(c, b"a text is not UTF-8")
    return (<const char*>p)[:n].decode() if n else ""
