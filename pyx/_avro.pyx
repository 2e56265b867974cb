"""Containers, file entries and objects of Avro files."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memset

import numpy as np

from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_init, cursor_left, cursor_need, cursor_over, cursor_skip,
    cursor_take, read_f64, read_i32, read_u8, read_zigzag,
)
from indextables.native._hash cimport xxh64_bytes
from indextables.native._textpack cimport NULL_LENGTH, same_bytes, utf8_valid
from indextables.native._typedefs cimport (
    float32_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t,
)

from indextables.errors import CorruptFileError

MISSING = -(1 << 63)
_ABSENT = (1 << 32) - 1
cdef int64_t _MISSING = <int64_t>(<uint64_t>1 << 63)


# -- primitives ---------------------------------------------------------------------------------

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
        if count == _MISSING:
            return cursor_fail(c, b"a block has too many items")
        count = -count
        read_zigzag(c)
    if count > w.budget:
        return cursor_fail(c, b"a block has too many items")
    w.budget -= count
    return count


cdef int skip_value(Walk* w, Cursor* c, int32_t node, int depth) except -1 nogil:
    """Pass over one value of any type."""
    cdef int32_t op = node_op(w, node)
    cdef int64_t count
    cdef int32_t k
    if depth > DEEPEST:
        return cursor_fail(c, b"values are nested too deeply")
    if op == OP_NULL:
        return 0
    if op == OP_BOOLEAN:
        return 0 if read_boolean(c) >= 0 else -1
    if op == OP_INT or op == OP_LONG or op == OP_ENUM:
        read_zigzag(c)
        return 0
    if op == OP_FLOAT:
        return cursor_skip(c, 4)
    if op == OP_DOUBLE:
        return cursor_skip(c, 8)
    if op == OP_BYTES or op == OP_STRING:
        return cursor_skip(c, read_length(c))
    if op == OP_FIXED:
        return cursor_skip(c, <uint64_t>node_a(w, node))
    if op == OP_UNION:
        return skip_value(w, c, read_branch(w, c, node), depth + 1)
    if op == OP_RECORD:
        for k in range(node_b(w, node)):
            skip_value(w, c, w.children[node_a(w, node) + k], depth + 1)
        return 0
    count = read_count(w, c)
    while count:
        while count:
            if op == OP_MAP:
                cursor_skip(c, read_length(c))
            skip_value(w, c, node_a(w, node), depth + 1)
            count -= 1
        count = read_count(w, c)
    return 0


# -- the container ------------------------------------------------------------------------------

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


# -- file entries to columns --------------------------------------------------------------------

cdef class _Maps:
    """Values of one map field by key: two columns a key, starts and lengths.

    The columns come zeroed from ``calloc``, so a key that few rows have costs few pages. Lengths
    are stored plus one; zero is absent.
    """

    cdef size_t rows
    cdef uint32_t** columns         # starts and lengths of each key, one after the other
    cdef uint32_t* keys             # two per key: start, length
    cdef uint32_t key_count
    cdef uint32_t room              # keys that fit before everything grows
    cdef int32_t* table             # key number plus one by hash, four slots per key of room
    cdef uint32_t[256] guess        # the key that stood at each place of the row before

    def __cinit__(self, size_t rows):
        self.rows = rows
        memset(self.guess, 0, sizeof(self.guess))

    def __dealloc__(self):
        cdef uint32_t key
        for key in range(self.key_count):
            free(self.columns[key])
        free(self.columns)
        free(self.keys)
        free(self.table)

    cdef int grow(self, const Cursor* c) except -1 nogil:
        """Room for twice as many keys, at least eight."""
        cdef uint32_t room = max(8, 2 * self.room)
        cdef uint32_t* keys = <uint32_t*>realloc(self.keys, 2 * room * sizeof(uint32_t))
        if keys != NULL:
            self.keys = keys
        cdef uint32_t** columns = <uint32_t**>realloc(self.columns, room * sizeof(uint32_t*))
        if columns != NULL:
            self.columns = columns
        cdef int32_t* table = <int32_t*>calloc(4 * room, sizeof(int32_t))
        if keys == NULL or columns == NULL or table == NULL:
            free(table)
            with gil:
                raise MemoryError()
        free(self.table)
        self.table = table
        self.room = room
        cdef uint32_t key
        for key in range(self.key_count):
            self.table[self.free_slot(c, keys[2 * key], keys[2 * key + 1])] = <int32_t>key + 1
        return 0

    cdef uint32_t free_slot(self, const Cursor* c, uint64_t at, uint64_t n) noexcept nogil:
        cdef uint32_t slot = <uint32_t>xxh64_bytes(c.base + at, n, 0) & (4 * self.room - 1)
        while self.table[slot]:
            slot = (slot + 1) & (4 * self.room - 1)
        return slot

    cdef inline bint is_key(
        self, uint32_t key, const Cursor* c, uint64_t at, uint64_t n
    ) noexcept nogil:
        return self.keys[2 * key + 1] == n and same_bytes(
            c.base + self.keys[2 * key], c.base + at, n
        )

    cdef inline int64_t key_of(
        self, Cursor* c, uint64_t at, uint64_t n, size_t place
    ) except -1 nogil:
        """The number of the key of ``n`` bytes at ``at``; new keys get the next number."""
        if place < 256 and self.key_count and self.is_key(self.guess[place], c, at, n):
            return self.guess[place]
        cdef int64_t key = self.search(c, at, n)
        if place < 256:
            self.guess[place] = <uint32_t>key
        return key

    cdef int64_t search(self, Cursor* c, uint64_t at, uint64_t n) except -1 nogil:
        cdef uint32_t slot
        cdef uint32_t key
        if self.room:
            slot = <uint32_t>xxh64_bytes(c.base + at, n, 0) & (4 * self.room - 1)
            while self.table[slot]:
                key = <uint32_t>(self.table[slot] - 1)
                if self.is_key(key, c, at, n):
                    return key
                slot = (slot + 1) & (4 * self.room - 1)
        if self.key_count >= MOST_KEYS:
            return cursor_fail(c, b"a map field has too many distinct keys")
        if not utf8_valid(c.base + at, n):
            return cursor_fail(c, b"a map key is not UTF-8")
        if self.key_count == self.room:
            self.grow(c)
        key = self.key_count
        self.columns[key] = <uint32_t*>calloc(2 * self.rows + 1, sizeof(uint32_t))
        if self.columns[key] == NULL:
            with gil:
                raise MemoryError()
        self.keys[2 * key] = <uint32_t>at
        self.keys[2 * key + 1] = <uint32_t>n
        self.table[self.free_slot(c, at, n)] = <int32_t>key + 1
        self.key_count += 1
        return key

    cdef inline void put(self, int64_t key, size_t row, uint64_t start, uint64_t n) noexcept nogil:
        self.columns[key][row] = <uint32_t>start
        self.columns[key][self.rows + row] = <uint32_t>n + 1

    cdef inline void put_null(self, int64_t key, size_t row) noexcept nogil:
        self.columns[key][self.rows + row] = 0

    cdef tuple column(self, uint32_t key, const uint8_t[::1] data):
        """A key's name and, for every row, where its value lies."""
        cdef size_t row
        cdef const uint32_t* source = self.columns[key]
        starts = np.empty(self.rows, np.uint32)
        lengths = np.empty(self.rows, np.uint32)
        cdef uint32_t[::1] to_starts = starts
        cdef uint32_t[::1] to_lengths = lengths
        with nogil:
            for row in range(self.rows):
                to_starts[row] = source[row]
                to_lengths[row] = source[self.rows + row] - 1
        cdef size_t at = self.keys[2 * key]
        name = bytes(data[at:at + self.keys[2 * key + 1]]).decode()
        return name, starts, lengths


cdef class EntryColumns:
    """File entries taken apart: integers as values, everything else as places in ``data``."""

    cdef readonly object data
    cdef readonly Py_ssize_t rows
    cdef readonly object ints           # int64[field, row], MISSING where absent
    cdef readonly object text_starts    # uint32[field, row]
    cdef readonly object text_lengths   # uint32[field, row], 2**32 - 1 where absent
    cdef readonly object list_starts
    cdef readonly object list_lengths
    cdef readonly object map_present    # uint8[field, row]
    cdef list _maps
    cdef const uint8_t[::1] _view

    def __init__(self, data, Py_ssize_t rows, Py_ssize_t ints, Py_ssize_t texts,
                 Py_ssize_t maps, Py_ssize_t lists):
        self.data = data
        self._view = data
        self.rows = rows
        self.ints = np.full((ints, rows), MISSING, np.int64)
        self.text_starts = np.zeros((texts, rows), np.uint32)
        self.text_lengths = np.full((texts, rows), _ABSENT, np.uint32)
        self.list_starts = np.zeros((lists, rows), np.uint32)
        self.list_lengths = np.full((lists, rows), _ABSENT, np.uint32)
        self.map_present = np.zeros((maps, rows), np.uint8)
        self._maps = [_Maps(rows) for _ in range(maps)]

    def map_columns(self, int field):
        """``(key, starts, lengths)`` of each key of a map field in turn, lengths as for texts."""
        cdef _Maps maps = self._maps[field]
        cdef uint32_t key
        for key in range(maps.key_count):
            yield maps.column(key, self._view)


cdef struct Sinks:
    int64_t* ints
    uint32_t* text_starts
    uint32_t* text_lengths
    uint32_t* list_starts
    uint32_t* list_lengths
    uint8_t* map_present
    size_t rows


cdef inline int put_map(
    Walk* w, Cursor* c, int32_t node, _Maps maps, size_t row
) except -1 nogil:
    cdef int64_t count = read_count(w, c)
    cdef size_t place = 0
    cdef int64_t key
    cdef uint64_t n
    cdef uint64_t at
    cdef int32_t value
    while count:
        while count:
            n = read_length(c)
            at = c.pos
            cursor_skip(c, n)
            key = maps.key_of(c, at, n, place)
            place += 1
            count -= 1
            value = node_a(w, node)
            if node_op(w, value) == OP_UNION:
                value = read_branch(w, c, value)
            if node_op(w, value) == OP_NULL:
                maps.put_null(key, row)
                continue
            n = read_length(c)
            maps.put(key, row, c.pos, n)
            cursor_skip(c, n)
        count = read_count(w, c)
    return 0


cdef int walk_list(Walk* w, Cursor* c) except -1 nogil:
    """Pass over an array of strings, checking them."""
    cdef int64_t count = read_count(w, c)
    cdef uint64_t n
    cdef const uint8_t* p
    while count:
        while count:
            n = read_length(c)
            p = cursor_take(c, n)
            if not utf8_valid(p, n):
                return cursor_fail(c, b"a text is not UTF-8")
            count -= 1
        count = read_count(w, c)
    return 0


cdef inline int put_value(
    Walk* w, Cursor* c, int32_t node, int32_t sink, int32_t number, const Sinks* s, _Maps maps,
    size_t row,
) except -1 nogil:
    """Read one field of a file entry into its column."""
    cdef int32_t op
    cdef uint64_t n
    cdef size_t cell = <size_t>number * s.rows + row
    if node_op(w, node) == OP_UNION:
        node = read_branch(w, c, node)
    op = node_op(w, node)
    if op == OP_NULL:
        return 0
    if sink == SINK_INT:
        s.ints[cell] = read_boolean(c) if op == OP_BOOLEAN else read_zigzag(c)
    elif sink == SINK_TEXT:
        n = read_length(c)
        s.text_starts[cell] = <uint32_t>c.pos
        s.text_lengths[cell] = <uint32_t>n
        cursor_skip(c, n)
    elif sink == SINK_MAP:
        s.map_present[cell] = 1
        put_map(w, c, node, maps, row)
    else:
        n = c.pos
        walk_list(w, c)
        s.list_starts[cell] = <uint32_t>n
        s.list_lengths[cell] = <uint32_t>(c.pos - n)
    return 0


cdef int _bind(Sinks* s, EntryColumns out) except -1:
    cdef int64_t[:, ::1] ints = out.ints
    cdef uint32_t[:, ::1] text_starts = out.text_starts
    cdef uint32_t[:, ::1] text_lengths = out.text_lengths
    cdef uint32_t[:, ::1] list_starts = out.list_starts
    cdef uint32_t[:, ::1] list_lengths = out.list_lengths
    cdef uint8_t[:, ::1] map_present = out.map_present
    s.rows = out.rows
    s.ints = &ints[0, 0] if ints.size else NULL
    s.text_starts = &text_starts[0, 0] if text_starts.size else NULL
    s.text_lengths = &text_lengths[0, 0] if text_lengths.size else NULL
    s.list_starts = &list_starts[0, 0] if list_starts.size else NULL
    s.list_lengths = &list_lengths[0, 0] if list_lengths.size else NULL
    s.map_present = &map_present[0, 0] if map_present.size else NULL
    return 0


def decode_entries(program, const uint8_t[::1] data not None, ends, counts):
    """File entries of one or more decompressed blocks, laid end to end in ``data``.

    ``ends[i]`` is where block i ends and ``counts[i]`` how many entries it holds; a block must
    hold exactly so many. ``program`` comes from ``avro_schema.compile_entries``.
    """
    cdef const int64_t[::1] block_ends = np.ascontiguousarray(ends, np.int64)
    cdef const int64_t[::1] block_counts = np.ascontiguousarray(counts, np.int64)
    cdef const int32_t[:, ::1] nodes = program.node_array()
    cdef const int32_t[::1] children = program.child_array()
    cdef const int32_t[:, ::1] sinks = program.sink_array()
    cdef Walk w
    cdef Sinks s
    cdef size_t block
    w.nodes = &nodes[0, 0]
    w.children = &children[0]
    w.budget = 8 * <int64_t>data.shape[0] + 4096
    columns = program.columns
    cdef EntryColumns out = EntryColumns(
        data.base, _check_blocks(data, block_ends, block_counts),
        len(columns["int"]), len(columns["text"]), len(columns["map"]), len(columns["list"]),
    )
    out._view = data
    _bind(&s, out)
    cdef list maps = [
        out._maps[number] if sink == SINK_MAP else None for sink, number in program.sinks
    ]
    cdef size_t row = 0
    cdef uint64_t start = 0
    for block in range(<size_t>block_ends.shape[0]):
        _decode_block(&w, &s, data, start, block_ends[block], block_counts[block], sinks, maps, row)
        row += <size_t>block_counts[block]
        start = <uint64_t>block_ends[block]
    return out


cdef Py_ssize_t _check_blocks(
    const uint8_t[::1] data, const int64_t[::1] ends, const int64_t[::1] counts
) except -1:
    """Total rows; a block cannot hold more entries than its bytes allow."""
    cdef int64_t start = 0
    cdef int64_t total = 0
    cdef size_t block
    if ends.shape[0] != counts.shape[0] or data.shape[0] >= NULL_LENGTH:
        raise ValueError("blocks do not fit their data")
    for block in range(<size_t>ends.shape[0]):
        if ends[block] < start or ends[block] > data.shape[0]:
            raise ValueError("blocks do not fit their data")
        if counts[block] < 0 or counts[block] * 2 > ends[block] - start:
            raise CorruptFileError("a block is too short for its number of entries")
        total += counts[block]
        start = ends[block]
    return total


cdef int _decode_block(
    Walk* w, const Sinks* s, const uint8_t[::1] data, uint64_t start, uint64_t end,
    int64_t count, const int32_t[:, ::1] sinks, list maps, size_t row,
) except -1:
    cdef Cursor c
    cdef int32_t first = node_a(w, 0)
    cdef int32_t fields = node_b(w, 0)
    cdef int32_t k
    cdef int64_t i
    cdef object empty = _Maps(0)
    cdef list bound = [m if m is not None else empty for m in maps]
    cdef void** targets = <void**>calloc(fields + 1, sizeof(void*))
    if targets == NULL:
        raise MemoryError()
    for k in range(fields):
        targets[k] = <void*>bound[k]
    cursor_init(&c, &data[0] if data.shape[0] else NULL, end, 0)
    c.pos = start
    try:
        with nogil:
            for i in range(count):
                for k in range(fields):
                    if sinks[k, 0] == SINK_SKIP:
                        skip_value(w, &c, w.children[first + k], 1)
                    else:
                        put_value(
                            w, &c, w.children[first + k], sinks[k, 0], sinks[k, 1], s,
                            <_Maps>targets[k], row + i,
                        )
            if cursor_left(&c):
                cursor_fail(&c, b"a block is longer than its entries")
    finally:
        free(targets)
    return 0


# -- objects ------------------------------------------------------------------------------------

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
