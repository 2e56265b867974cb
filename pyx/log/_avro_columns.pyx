"""Columns of texts, and maps as a column per key, filled without the GIL."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy, memset

from indextables.native._cursor cimport corrupt_at, it_le64
from indextables.native._hash cimport xxh64_bytes
from indextables.native._textpack cimport reserve
from indextables.native._textslots cimport low_bytes, utf8_valid


cdef class Places:
    """See the declaration."""

    def __cinit__(self, size_t rows, bint is_raw=False):
        self.packer = TextPacker(rows, is_raw)
        self.clear()

    cdef int flush(self, const Cursor* c, size_t first, size_t rows) except -1 nogil:
        self.packer.put(c.base, c.size, self.starts, self.lengths, first, rows)
        self.clear()
        return 0


cdef class Keys:
    """See the declaration."""

    def __cinit__(self, size_t rows):
        self.rows = rows
        self.columns = []
        self.names = []
        memset(self.guess, 0xff, sizeof(self.guess))
        self.present = <uint8_t*>calloc(rows + 1, 1)
        if self.present == NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.present)
        free(self.places)
        free(self.arena.data)
        free(self.keys)
        free(self.table)

    cdef int64_t key_of(self, const uint8_t* p, uint64_t n, size_t place) except -1 nogil:
        """The number of a key; a new one gets the next number and a column."""
        if place >= GUESSES:
            return self.search(p, n)
        cdef Guess* g = &self.guess[place]
        if g.size != n or not self.is_key(g.key, p, n):
            g.key = <uint32_t>self.search(p, n)
            self.remember(g, p, n)
        return g.key

    cdef void remember(self, Guess* g, const uint8_t* p, uint64_t n) noexcept nogil:
        """Let the next row find the key ``g.key``, spelled at ``p``, at the same place."""
        g.size = <uint32_t>n
        g.mask = low_bytes(n)
        g.word = 0
        memcpy(&g.word, p, min(<uint64_t>8, n))
        g.word = it_le64(g.word)
        g.starts = (<Places>self.places[g.key]).starts
        g.lengths = (<Places>self.places[g.key]).lengths

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
        column = Places(self.rows)
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
            (<Places>self.places[key]).flush(c, first, rows)
        return 0
