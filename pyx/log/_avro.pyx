"""File entries to columns."""

from libc.stdlib cimport calloc, free

import numpy as np

from indextables.native._avro_columns cimport CHUNK, Guess, Keys, Places
from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_left, cursor_over, cursor_skip, cursor_take, read_zigzag,
)
from indextables.native._hash cimport load64, xxh64_bytes
from indextables.native._textpack cimport NULL_LENGTH
from indextables.native._textslots cimport utf8_valid, zero_bytes
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

from indextables.errors import CorruptFileError

MISSING = -(1 << 63)


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


# -- file entries to columns --------------------------------------------------------------------

cdef struct Sink:
    int32_t kind
    int32_t node
    int32_t quick                   # what the short way may take it for, ``QUICK_NOT`` else
    int32_t value                   # node of the value, behind the union if there is one
    uint32_t branch                 # first byte of a value, ``NO_BRANCH`` without a union
    uint32_t item_branch            # the same of a map's values
    size_t nulls                    # optional fields from this one on that a zero byte leaves out
    int64_t* ints
    void* target                    # Places of a text or list, Keys of a map


cdef class EntryColumns:
    """File entries taken apart, in the order of the program's columns."""

    cdef readonly Py_ssize_t rows
    cdef readonly object ints           # int64[field, row], MISSING where absent
    cdef readonly object path_hashes    # XXH64 of each path
    cdef list _texts
    cdef list _lists
    cdef list _maps

    def texts(self, int field):
        """A text field, as ``TextPacker.finish`` gives it."""
        return (<Places>self._texts[field]).packer.finish()

    def lists(self, int field):
        """A list field: arrays of strings in their Avro form."""
        return (<Places>self._lists[field]).packer.finish()

    def map_keys(self, int field):
        return list((<Keys>self._maps[field]).names)

    def map_texts(self, int field, int key):
        """One key of a map field."""
        cdef Keys keys = self._maps[field]
        return (<Places>keys.columns[key]).packer.finish()

    def map_present(self, int field):
        """Which rows have the map, if only an empty one."""
        cdef Keys keys = self._maps[field]
        return np.frombuffer((<const char*>keys.present)[:self.rows], np.uint8)


cdef inline int put_map(
    Walk* w, Cursor* c, int32_t node, Keys keys, size_t i, size_t row
) except -1 nogil:
    cdef int64_t count = read_count(w, c)
    cdef size_t place = 0
    cdef int64_t key
    cdef uint64_t n
    cdef const uint8_t* p
    cdef int32_t value
    keys.present[row] = 1
    while count:
        while count:
            n = read_length(c)
            p = cursor_take(c, n)
            key = keys.key_of(p, n, place)
            place += 1
            count -= 1
            value = node_a(w, node)
            if node_op(w, value) == OP_UNION:
                value = read_branch(w, c, value)
            if node_op(w, value) == OP_NULL:
                (<Places>keys.places[key]).set(i, 0, NULL_LENGTH)
                continue
            n = read_length(c)
            (<Places>keys.places[key]).set(i, c.pos, n)
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


cdef inline int put_value(Walk* w, Cursor* c, const Sink* s, size_t i, size_t row) except -1 nogil:
    """Read one field of a file entry, row ``i`` of its chunk, into its column."""
    cdef int32_t node = s.node
    cdef uint64_t n
    if s.kind == SINK_SKIP:
        return skip_value(w, c, node, 1)
    if node_op(w, node) == OP_UNION:
        node = read_branch(w, c, node)
    if node_op(w, node) == OP_NULL:
        return 0
    if s.kind == SINK_INT:
        s.ints[row] = read_boolean(c) if node_op(w, node) == OP_BOOLEAN else read_number(c)
    elif s.kind == SINK_TEXT:
        n = read_length(c)
        (<Places>s.target).set(i, c.pos, n)
        cursor_skip(c, n)
    elif s.kind == SINK_MAP:
        put_map(w, c, node, <Keys>s.target, i, row)
    else:
        n = c.pos
        walk_list(w, c)
        (<Places>s.target).set(i, n, c.pos - n)
    return 0


cdef inline uint64_t quick_map(
    Walk* w, const Cursor* c, const Sink* s, Keys keys, uint64_t pos, size_t i, size_t row
) except? 18446744073709551615ULL nogil:
    """The position after a map of one block, 0 when it has to be read the long way.

    Reading it again the long way notes the same places again.
    """
    cdef const uint8_t* base = c.base
    cdef uint64_t count = base[pos] >> 1
    cdef uint64_t place
    cdef uint64_t n
    cdef Guess* g
    if base[pos] & 129 or <int64_t>count > w.budget:
        return 0
    pos += 1
    for place in range(count):
        if c.size - pos < NEAR_KEY:
            return 0
        n = base[pos]
        g = &keys.guess[place]
        if n & 129:
            return 0
        n >>= 1
        pos += 1
        if g.size != n or (load64(base + pos) & g.mask) != g.word or n > 8:
            keys.key_of(base + pos, n, place)
        pos += n
        if s.item_branch != NO_BRANCH:
            if base[pos] != s.item_branch:
                return 0
            pos += 1
        n = near_length(base, &pos)
        if n > c.size - pos:
            return 0
        g.starts[i] = <uint32_t>pos
        g.lengths[i] = <uint32_t>n
        pos += n
    if count and (pos >= c.size or base[pos]):
        return 0
    keys.present[row] = 1
    w.budget -= count
    return pos + (count > 0)


cdef inline uint64_t quick_value(
    Walk* w, const Cursor* c, const Sink* s, uint64_t pos, size_t i, size_t row
) except? 18446744073709551615ULL nogil:
    """The position after a field, noted in its column; 0 when it has to be read the long way."""
    cdef uint64_t n
    if s.branch != NO_BRANCH:
        if c.base[pos] != s.branch:
            return 0
        pos += 1
    if s.quick == QUICK_INT:
        n = near_varint(c.base, &pos)
        if n == 18446744073709551615ULL:
            return 0
        s.ints[row] = <int64_t>(n >> 1) ^ -<int64_t>(n & 1)
        return pos
    if s.quick == QUICK_TEXT:
        n = near_length(c.base, &pos)
        if n > c.size - pos:
            return 0
        (<Places>s.target).set(i, pos, n)
        return pos + n
    if s.quick == QUICK_BOOLEAN:
        s.ints[row] = c.base[pos]
        return pos + 1 if c.base[pos] < 2 else 0
    return quick_map(w, c, s, <Keys>s.target, pos, i, row) if s.quick == QUICK_MAP else 0


cdef int put_entry(
    Walk* w, Cursor* c, const Sink* sinks, int32_t fields, size_t i, size_t row
) except -1 nogil:
    """Read one file entry, row ``i`` of its chunk, into its columns.

    Fields of the usual shapes take a short way while ``NEAR`` bytes can be read; anything else
    goes through ``put_value`` from the field's first byte on, errors included.
    """
    cdef int32_t k = 0
    cdef uint64_t pos = c.pos
    cdef uint64_t after
    cdef uint64_t word
    while k < fields:
        after = 0
        if c.size - pos >= NEAR:
            word = load64(c.base + pos)
            if sinks[k].nulls and word & 255 == 0:
                after = min(sinks[k].nulls, zero_bytes(word))
                pos += after
                k += <int32_t>after
                continue
            after = quick_value(w, c, &sinks[k], pos, i, row)
        if after == 0:
            c.pos = pos
            put_value(w, c, &sinks[k], i, row)
            after = c.pos
        pos = after
        k += 1
    c.pos = pos
    return 0


cdef int flush_chunk(
    const Cursor* c, const Sink* sinks, int32_t fields, size_t first, size_t rows
) except -1 nogil:
    cdef int32_t k
    for k in range(fields):
        if sinks[k].kind == SINK_TEXT or sinks[k].kind == SINK_LIST:
            (<Places>sinks[k].target).flush(c, first, rows)
        elif sinks[k].kind == SINK_MAP:
            (<Keys>sinks[k].target).flush(c, first, rows)
    return 0


cdef int hash_chunk(
    const Cursor* c, Places paths, uint64_t* hashes, size_t first, size_t rows
) except -1 nogil:
    cdef size_t i
    for i in range(rows):
        if paths.lengths[i] == NULL_LENGTH:
            return cursor_fail(c, b"a file entry has no path")
        hashes[first + i] = xxh64_bytes(c.base + paths.starts[i], paths.lengths[i], 0)
    return 0


cdef int decode_block(
    Walk* w, Cursor* c, const Sink* sinks, int32_t fields, Places paths, uint64_t* hashes,
    size_t first, size_t count,
) except -1 nogil:
    """One block: some rows are taken apart, then packed while their bytes are near."""
    cdef size_t done = 0
    cdef size_t rows
    cdef size_t i
    while done < count:
        rows = min(<size_t>CHUNK, count - done)
        for i in range(rows):
            put_entry(w, c, sinks, fields, i, first + done + i)
        hash_chunk(c, paths, hashes, first + done, rows)
        flush_chunk(c, sinks, fields, first + done, rows)
        done += rows
    if cursor_left(c):
        return cursor_fail(c, b"a block is longer than its entries")
    return 0


def decode_entries(program, blocks not None, list counts not None, list sizes=None):
    """File entries of decompressed blocks; each must hold exactly as many as it says.

    ``program`` comes from ``avro_schema.compile_entries``. ``blocks`` may be made one at a time,
    each when the one before it is done with; ``sizes`` then says how long each of them is.
    Nothing refers to the blocks afterwards.
    """
    if sizes is None:
        sizes = [len(block) for block in blocks]
    cdef const int32_t[:, ::1] nodes = program.node_array()
    cdef const int32_t[::1] children = program.child_array()
    cdef Walk w
    w.nodes = &nodes[0, 0]
    w.children = &children[0]
    cdef EntryColumns out = _empty_columns(program, _count_rows(&w, sizes, counts))
    cdef Sink* sinks = <Sink*>calloc(len(program.sinks) + 1, sizeof(Sink))
    if sinks == NULL:
        raise MemoryError()
    try:
        _bind(sinks, program, out, &w)
        _decode(program, out, &w, sinks, iter(blocks), counts, sizes)
    finally:
        free(sinks)
    return out


cdef int _decode(
    program, EntryColumns out, Walk* w, const Sink* sinks, blocks, list counts, list sizes
) except -1:
    cdef uint64_t[::1] hashes = out.path_hashes
    cdef int32_t fields = len(program.sinks)
    cdef Places paths = out._texts[program.columns["text"].index("path")]
    cdef const uint8_t[::1] view
    cdef Cursor c
    cdef size_t first = 0
    cdef size_t count
    for number, size in zip(counts, sizes, strict=True):
        view = None
        view = next(blocks)
        if view.shape[0] != size:
            raise CorruptFileError("a block is not as long as it says")
        count = number
        w.budget = 8 * <int64_t>view.shape[0] + 4096
        cursor_over(&c, view, 0)
        with nogil:
            decode_block(w, &c, sinks, fields, paths, &hashes[0], first, count)
        first += count
    return 0


cdef Py_ssize_t _count_rows(const Walk* w, list sizes, list counts) except -1:
    """Total rows; a block cannot hold more entries than its bytes allow."""
    cdef Py_ssize_t total = 0
    cdef int64_t least = max(<int64_t>2, _least_bytes(w))
    cdef int64_t size
    for size, count in zip(sizes, counts, strict=True):
        if size >= <int64_t>NULL_LENGTH:
            raise CorruptFileError("a block is too large")
        if count < 0 or count > size // least:
            raise CorruptFileError("a block is too short for its number of entries")
        total += count
    return total


cdef int64_t _least_bytes(const Walk* w) except -1:
    """Bytes that every entry has: one for each field that is not surely empty."""
    cdef int64_t total = 0
    cdef int32_t k
    cdef int32_t op
    for k in range(node_b(w, 0)):
        op = node_op(w, w.children[node_a(w, 0) + k])
        total += op != OP_NULL and op != OP_FIXED and op != OP_RECORD
    return total


cdef EntryColumns _empty_columns(program, Py_ssize_t rows):
    columns = program.columns
    cdef EntryColumns out = EntryColumns()
    out.rows = rows
    out.ints = np.full((len(columns["int"]), max(rows, 1)), MISSING, np.int64)[:, :rows]
    out.path_hashes = np.zeros(max(rows, 1), np.uint64)[:rows]
    out._texts = [Places(rows) for _ in columns["text"]]
    out._lists = [Places(rows, True) for _ in columns["list"]]
    out._maps = [Keys(rows) for _ in columns["map"]]
    return out


cdef int _bind(Sink* sinks, program, EntryColumns out, const Walk* w) except -1:
    cdef int64_t[:, :] ints = out.ints
    cdef int32_t k
    for k, (kind, number) in enumerate(program.sinks):
        sinks[k].kind = kind
        sinks[k].node = w.children[node_a(w, 0) + k]
        _shorten(&sinks[k], w)
        if kind == SINK_INT:
            sinks[k].ints = &ints[number, 0] if out.rows else NULL
        elif kind == SINK_TEXT:
            sinks[k].target = <void*>out._texts[number]
        elif kind == SINK_LIST:
            sinks[k].target = <void*>out._lists[number]
        elif kind == SINK_MAP:
            sinks[k].target = <void*>out._maps[number]
    for k in reversed(range(len(program.sinks) - 1)):
        if sinks[k].nulls:
            sinks[k].nulls += sinks[k + 1].nulls
    return 0


cdef int _shorten(Sink* s, const Walk* w) except -1:
    """Find out whether a field has a shape that the short way takes."""
    s.value = s.node
    s.branch = s.item_branch = NO_BRANCH
    if node_op(w, s.node) == OP_UNION:
        s.nulls = is_optional(w, s.node)
        if node_b(w, s.node) != 2 or not s.nulls:
            return 0
        s.branch = 2
        s.value = w.children[node_a(w, s.node) + 1]
    cdef int32_t op = node_op(w, s.value)
    if s.kind == SINK_INT:
        s.quick = QUICK_BOOLEAN if op == OP_BOOLEAN else QUICK_INT
    elif s.kind == SINK_TEXT and op == OP_STRING:
        s.quick = QUICK_TEXT
    elif s.kind == SINK_MAP and op == OP_MAP:
        s.quick = _quick_items(s, w, node_a(w, s.value))
    return 0


cdef int _quick_items(Sink* s, const Walk* w, int32_t item) except -1:
    if node_op(w, item) == OP_UNION:
        if node_b(w, item) != 2 or not is_optional(w, item):
            return QUICK_NOT
        s.item_branch = 2
        item = w.children[node_a(w, item) + 1]
    return QUICK_MAP if node_op(w, item) == OP_STRING else QUICK_NOT
