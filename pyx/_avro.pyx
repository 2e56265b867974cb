"""File entries to columns."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_left, cursor_over, cursor_skip, cursor_take,
    read_zigzag,
)
from indextables.native._hash cimport xxh64_bytes
from indextables.native._textpack cimport NULL_LENGTH, Bytes, TextPacker, reserve
from indextables.native._textslots cimport same_bytes, utf8_valid
from indextables.native._typedefs cimport (
    int32_t, int64_t, uint8_t, uint32_t, uint64_t,
)

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

cdef class _Places:
    """Where the texts of one column lie, for the rows of the chunk at hand, and their packer."""

    cdef uint32_t[CHUNK] starts
    cdef uint32_t[CHUNK] lengths
    cdef TextPacker packer

    def __cinit__(self, size_t rows, bint is_raw=False):
        self.packer = TextPacker(rows, is_raw)
        self.clear()

    cdef inline void clear(self) noexcept nogil:
        memset(self.lengths, 0xff, CHUNK * sizeof(uint32_t))

    cdef inline void set(self, size_t i, uint64_t start, uint64_t n) noexcept nogil:
        self.starts[i] = <uint32_t>start
        self.lengths[i] = <uint32_t>n

    cdef int flush(self, const Cursor* c, size_t first, size_t rows) except -1 nogil:
        self.packer.put(c.base, c.size, self.starts, self.lengths, first, rows)
        self.clear()
        return 0


cdef class _Keys:
    """The keys of one map field, each with its column."""

    cdef size_t rows
    cdef list columns
    cdef list names
    cdef void** places              # the columns again, for use without the GIL
    cdef Bytes arena                # the keys' bytes
    cdef uint32_t* keys             # two per key: start and length in the arena
    cdef uint32_t count
    cdef uint32_t room              # keys that fit before everything grows
    cdef int32_t* table             # key number plus one by hash, four slots per key of room
    cdef uint32_t[256] guess        # the key that stood at each place of the row before
    cdef uint8_t* present

    def __cinit__(self, size_t rows):
        self.rows = rows
        self.columns = []
        self.names = []
        memset(self.guess, 0, sizeof(self.guess))
        self.present = <uint8_t*>calloc(rows + 1, 1)
        if self.present == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.present)
        free(self.places)
        free(self.arena.data)
        free(self.keys)
        free(self.table)

    cdef inline bint is_key(self, uint32_t key, const uint8_t* p, uint64_t n) noexcept nogil:
        return self.keys[2 * key + 1] == n and same_bytes(
            self.arena.data + self.keys[2 * key], p, n
        )

    cdef inline int64_t key_of(self, const uint8_t* p, uint64_t n, size_t place) except -1 nogil:
        """The number of a key; a new one gets the next number and a column."""
        if place < 256 and self.count and self.is_key(self.guess[place], p, n):
            return self.guess[place]
        cdef int64_t key = self.search(p, n)
        if place < 256:
            self.guess[place] = <uint32_t>key
        return key

    cdef int64_t search(self, const uint8_t* p, uint64_t n) except -1 nogil:
        cdef uint32_t slot
        if self.room:
            slot = <uint32_t>xxh64_bytes(p, n, 0) & (4 * self.room - 1)
            while self.table[slot]:
                if self.is_key(<uint32_t>(self.table[slot] - 1), p, n):
                    return self.table[slot] - 1
                slot = (slot + 1) & (4 * self.room - 1)
        if self.count >= MOST_KEYS:
            return corrupt_at(0, b"a map field has too many distinct keys")
        if not utf8_valid(p, n):
            return corrupt_at(0, b"a map key is not UTF-8")
        with gil:
            return self.make(p, n)

    cdef int64_t make(self, const uint8_t* p, uint64_t n) except -1:
        """A new key, with a column of its own."""
        if self.count == self.room:
            self.grow()
        reserve(&self.arena, n + 1)
        memcpy(self.arena.data + self.arena.used, p, n)
        self.keys[2 * self.count] = <uint32_t>self.arena.used
        self.keys[2 * self.count + 1] = <uint32_t>n
        self.arena.used += n
        self.names.append((<const char*>p)[:n].decode() if n else "")
        column = _Places(self.rows)
        self.columns.append(column)
        self.places[self.count] = <void*>column
        self.table[self.free_slot(self.count)] = <int32_t>self.count + 1
        self.count += 1
        return self.count - 1

    cdef int grow(self) except -1:
        """Room for twice as many keys, at least eight."""
        cdef uint32_t room = max(8, 2 * self.room)
        cdef uint32_t* keys = <uint32_t*>realloc(self.keys, 2 * room * sizeof(uint32_t))
        if keys != NULL:
            self.keys = keys
        cdef void** places = <void**>realloc(self.places, room * sizeof(void*))
        if places != NULL:
            self.places = places
        cdef int32_t* table = <int32_t*>calloc(4 * room, sizeof(int32_t))
        if keys == NULL or places == NULL or table == NULL:
            free(table)
            raise MemoryError()
        free(self.table)
        self.table = table
        self.room = room
        cdef uint32_t key
        for key in range(self.count):
            self.table[self.free_slot(key)] = <int32_t>key + 1
        return 0

    cdef uint32_t free_slot(self, uint32_t key) noexcept nogil:
        cdef uint32_t slot = <uint32_t>xxh64_bytes(
            self.arena.data + self.keys[2 * key], self.keys[2 * key + 1], 0
        ) & (4 * self.room - 1)
        while self.table[slot]:
            slot = (slot + 1) & (4 * self.room - 1)
        return slot

    cdef int flush(self, const Cursor* c, size_t first, size_t rows) except -1 nogil:
        cdef uint32_t key
        for key in range(self.count):
            (<_Places>self.places[key]).flush(c, first, rows)
        return 0


cdef struct Sink:
    int32_t kind
    int32_t node
    int64_t* ints
    void* target                    # _Places of a text or list, _Keys of a map


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
        return (<_Places>self._texts[field]).packer.finish()

    def lists(self, int field):
        """A list field: arrays of strings in their Avro form."""
        return (<_Places>self._lists[field]).packer.finish()

    def map_keys(self, int field):
        return list((<_Keys>self._maps[field]).names)

    def map_texts(self, int field, int key):
        """One key of a map field."""
        cdef _Keys keys = self._maps[field]
        return (<_Places>keys.columns[key]).packer.finish()

    def map_present(self, int field):
        """Which rows have the map, if only an empty one."""
        cdef _Keys keys = self._maps[field]
        return np.frombuffer((<const char*>keys.present)[:self.rows], np.uint8)


cdef inline int put_map(
    Walk* w, Cursor* c, int32_t node, _Keys keys, size_t i, size_t row
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
                (<_Places>keys.places[key]).set(i, 0, NULL_LENGTH)
                continue
            n = read_length(c)
            (<_Places>keys.places[key]).set(i, c.pos, n)
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
        (<_Places>s.target).set(i, c.pos, n)
        cursor_skip(c, n)
    elif s.kind == SINK_MAP:
        put_map(w, c, node, <_Keys>s.target, i, row)
    else:
        n = c.pos
        walk_list(w, c)
        (<_Places>s.target).set(i, n, c.pos - n)
    return 0


cdef int flush_chunk(
    const Cursor* c, const Sink* sinks, int32_t fields, size_t first, size_t rows
) except -1 nogil:
    cdef int32_t k
    for k in range(fields):
        if sinks[k].kind == SINK_TEXT or sinks[k].kind == SINK_LIST:
            (<_Places>sinks[k].target).flush(c, first, rows)
        elif sinks[k].kind == SINK_MAP:
            (<_Keys>sinks[k].target).flush(c, first, rows)
    return 0


cdef int hash_chunk(
    const Cursor* c, _Places paths, uint64_t* hashes, size_t first, size_t rows
) except -1 nogil:
    cdef size_t i
    for i in range(rows):
        if paths.lengths[i] == NULL_LENGTH:
            return cursor_fail(c, b"a file entry has no path")
        hashes[first + i] = xxh64_bytes(c.base + paths.starts[i], paths.lengths[i], 0)
    return 0


cdef int decode_block(
    Walk* w, Cursor* c, const Sink* sinks, int32_t fields, _Places paths, uint64_t* hashes,
    size_t first, size_t count,
) except -1 nogil:
    """One block: some rows are taken apart, then packed while their bytes are near."""
    cdef size_t done = 0
    cdef size_t rows
    cdef size_t i
    cdef int32_t k
    while done < count:
        rows = min(<size_t>CHUNK, count - done)
        for i in range(rows):
            for k in range(fields):
                put_value(w, c, &sinks[k], i, first + done + i)
        hash_chunk(c, paths, hashes, first + done, rows)
        flush_chunk(c, sinks, fields, first + done, rows)
        done += rows
    if cursor_left(c):
        return cursor_fail(c, b"a block is longer than its entries")
    return 0


def decode_entries(program, list blocks not None, list counts not None):
    """File entries of decompressed blocks; each must hold exactly as many as it says.

    ``program`` comes from ``avro_schema.compile_entries``. Nothing refers to the blocks afterwards.
    """
    cdef Py_ssize_t rows = _count_rows(blocks, counts)
    cdef EntryColumns out = _empty_columns(program, rows)
    cdef const int32_t[:, ::1] nodes = program.node_array()
    cdef const int32_t[::1] children = program.child_array()
    cdef uint64_t[::1] hashes = out.path_hashes
    cdef int32_t fields = len(program.sinks)
    cdef Sink* sinks = <Sink*>calloc(fields + 1, sizeof(Sink))
    cdef const uint8_t[::1] view
    cdef Walk w
    cdef Cursor c
    cdef size_t first = 0
    cdef size_t count
    if sinks == NULL:
        raise MemoryError()
    w.nodes = &nodes[0, 0]
    w.children = &children[0]
    cdef _Places paths = out._texts[program.columns["text"].index("path")]
    try:
        _bind(sinks, program, out, &w)
        for block, number in zip(blocks, counts, strict=True):
            view = block
            count = number
            w.budget = 8 * <int64_t>view.shape[0] + 4096
            cursor_over(&c, view, 0)
            with nogil:
                decode_block(&w, &c, sinks, fields, paths, &hashes[0], first, count)
            first += count
    finally:
        free(sinks)
    return out


cdef Py_ssize_t _count_rows(list blocks, list counts) except -1:
    """Total rows; a block cannot hold more entries than its bytes allow."""
    cdef Py_ssize_t total = 0
    for block, count in zip(blocks, counts, strict=True):
        if len(block) >= NULL_LENGTH:
            raise CorruptFileError("a block is too large")
        if count < 0 or 2 * count > len(block):
            raise CorruptFileError("a block is too short for its number of entries")
        total += count
    return total


cdef EntryColumns _empty_columns(program, Py_ssize_t rows):
    columns = program.columns
    cdef EntryColumns out = EntryColumns()
    out.rows = rows
    out.ints = np.full((len(columns["int"]), max(rows, 1)), MISSING, np.int64)[:, :rows]
    out.path_hashes = np.zeros(max(rows, 1), np.uint64)[:rows]
    out._texts = [_Places(rows) for _ in columns["text"]]
    out._lists = [_Places(rows, True) for _ in columns["list"]]
    out._maps = [_Keys(rows) for _ in columns["map"]]
    return out


cdef int _bind(Sink* sinks, program, EntryColumns out, const Walk* w) except -1:
    cdef int64_t[:, :] ints = out.ints
    cdef int32_t k
    for k, (kind, number) in enumerate(program.sinks):
        sinks[k].kind = kind
        sinks[k].node = w.children[node_a(w, 0) + k]
        if kind == SINK_INT:
            sinks[k].ints = &ints[number, 0] if out.rows else NULL
        elif kind == SINK_TEXT:
            sinks[k].target = <void*>out._texts[number]
        elif kind == SINK_LIST:
            sinks[k].target = <void*>out._lists[number]
        elif kind == SINK_MAP:
            sinks[k].target = <void*>out._maps[number]
    return 0
