"""Sorted byte strings, and lists of rows, of column indexes in memory.

``TextTable`` lies over one buffer and the ends of its strings. Single keys are found by bisection;
for lists of keys a hash table of positions is made once, with linear probing and at most half full.
``union_rows`` lists the rows of many values, ascending and once each: over a bitmap of the split
where they are many, else by sorting. ``merge_texts`` walks several sorted tables at once, the one
with the smallest key first, by a heap.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memset

import numpy as np

from indextables.native._bitlist cimport LIST_SLACK, can_press, list_plainly, list_pressed
from indextables.native._fuse cimport prefetch
from indextables.native._hash cimport xxh64_bytes
from indextables.native._memory cimport borrow, give_back

cdef enum:
    SPARSE = 64                 # below one row in so many, sorting beats a bitmap
    AHEAD = 3                   # values whose rows are on their way while others are marked
    LINE = 16                   # rows in a cache line
    LINES_AHEAD = 8
    WINDOW = 32                 # keys looked for at once

cdef bint CAN_PRESS = can_press() != 0
cdef const char* EMPTY = b""


cdef class TextTable:
    """Byte strings in ascending order: string ``i`` is ``data[ends[i]:ends[i + 1]]``."""

    def __cinit__(self, const uint8_t[::1] data, const int64_t[::1] ends):
        cdef Py_ssize_t i
        cdef bint bad
        if ends.shape[0] == 0:
            raise ValueError("a table without ends")
        bad = ends[0] < 0 or ends[ends.shape[0] - 1] > data.shape[0]
        for i in range(1, ends.shape[0]):
            bad |= ends[i] < ends[i - 1]
        if bad:
            raise ValueError("strings outside the buffer")
        if ends.shape[0] > <int64_t>1 << 31:
            raise ValueError("too many strings")
        self.data = data
        self.ends = ends
        self.base = &data[0] if data.shape[0] else <const uint8_t*>EMPTY
        self.count = <uint64_t>(ends.shape[0] - 1)

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.count

    cdef uint64_t _bound(self, object key, bint after) except? 18446744073709551615ULL:
        return text_bound(
            self.base, &self.ends[0], self.count,
            <const uint8_t*>PyBytes_AS_STRING(<bytes?>key), PyBytes_GET_SIZE(key), after,
        )

    def lower(self, key):
        """How many strings are smaller."""
        return self._bound(key, False)

    def upper(self, key):
        """How many strings are smaller or equal."""
        return self._bound(key, True)

    cdef uint32_t* _hashed(self, uint64_t mask) noexcept nogil:
        """Positions plus one by hash; 0 is an empty slot."""
        cdef uint32_t* slots = <uint32_t*>calloc(mask + 1, sizeof(uint32_t))
        cdef uint64_t i, at
        if slots == NULL:
            return NULL
        for i in range(self.count):
            at = xxh64_bytes(self.base + self.ends[i], self.ends[i + 1] - self.ends[i], 0) & mask
            while slots[at]:
                at = (at + 1) & mask
            slots[at] = <uint32_t>(i + 1)
        return slots

    cdef int64_t _find(self, uint64_t at, const uint8_t* text, uint64_t size) noexcept nogil:
        """The position of a string whose first slot is ``at``; -1: it is not there."""
        cdef uint64_t i
        while self.slots[at]:
            i = self.slots[at] - 1
            if compare_bytes(
                self.base + self.ends[i], self.ends[i + 1] - self.ends[i], text, size
            ) == 0:
                return <int64_t>i
            at = (at + 1) & self.mask
        return -1

    cdef int _require_slots(self) except -1:
        """Make the hash table unless it is there."""
        cdef uint64_t mask = 1
        cdef uint32_t* made
        if self.slots != NULL:
            return 0
        while mask < 2 * self.count:
            mask = 2 * mask + 1
        with nogil:
            made = self._hashed(mask)
        if made == NULL:
            raise MemoryError()
        if self.slots == NULL:
            self.mask = mask
            self.slots = made
        else:
            free(made)
        return 0

    cdef int _find_some(self, tuple keys, Py_ssize_t start, int64_t[::1] out) except -1:
        """The positions of the next few keys. All are asked for before the first is compared."""
        cdef uint64_t[WINDOW] slots
        cdef Py_ssize_t i, count = min(len(keys) - start, WINDOW)
        cdef uint32_t slot
        for i in range(count):
            key = <bytes?>keys[start + i]
            slots[i] = self.mask & xxh64_bytes(
                <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key), 0
            )
            prefetch(&self.slots[slots[i]])
        for i in range(count):
            slot = self.slots[slots[i]]
            if slot:
                prefetch(self.base + self.ends[slot - 1])
        for i in range(count):
            key = <bytes>keys[start + i]
            out[start + i] = self._find(
                slots[i], <const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)
            )
        return 0

    def positions(self, keys):
        """Positions of those keys that are there, ascending, once each."""
        cdef tuple asked = tuple(keys)
        cdef int64_t[::1] out
        cdef Py_ssize_t i, found = 0
        cdef bint ordered = True
        self._require_slots()
        places = np.empty(len(asked), np.int64)
        out = places
        for i in range(0, len(asked), WINDOW):
            self._find_some(asked, i, out)
        for i in range(len(asked)):
            if out[i] >= 0:
                ordered &= found == 0 or out[found - 1] < out[i]
                out[found] = out[i]
                found += 1
        return places[:found] if ordered else np.unique(places[:found])


cdef inline void _send_for(
    const uint32_t[::1] rows, const int64_t[::1] offsets, int64_t position
) noexcept nogil:
    """Ask for the first rows of a value before they are needed."""
    cdef int64_t at = offsets[position]
    cdef int64_t stop = min(offsets[position + 1], at + LINE * LINES_AHEAD)
    while at < stop:
        prefetch(&rows[at])
        at += LINE


cdef int _mark(
    const uint32_t[::1] rows, const int64_t[::1] offsets, const int64_t[::1] positions,
    uint64_t* words, uint64_t num_rows,
) noexcept nogil:
    """Set the bits of the rows of some values; -1: a row outside the split."""
    cdef Py_ssize_t i
    cdef int64_t at
    cdef uint64_t row
    for i in range(positions.shape[0]):
        if i + AHEAD < positions.shape[0]:
            _send_for(rows, offsets, positions[i + AHEAD])
        for at in range(offsets[positions[i]], offsets[positions[i] + 1]):
            row = rows[at]
            if row >= num_rows:
                return -1
            words[row >> 6] |= <uint64_t>1 << (row & 63)
    return 0


cdef uint64_t _total(
    const uint32_t[::1] rows, const int64_t[::1] offsets, const int64_t[::1] positions
) except? 18446744073709551615ULL:
    """How many rows the values have, after checking that all of them are inside."""
    cdef uint64_t total = 0
    cdef Py_ssize_t i
    cdef int64_t at
    for i in range(positions.shape[0]):
        at = positions[i]
        if at < 0 or at + 1 >= offsets.shape[0]:
            raise IndexError("a position outside the index")
        if offsets[at] < 0 or offsets[at + 1] < offsets[at] or offsets[at + 1] > rows.shape[0]:
            raise IndexError("rows outside the index")
        total += <uint64_t>(offsets[at + 1] - offsets[at])
    return total


def union_rows(
    const uint32_t[::1] rows, const int64_t[::1] offsets, const int64_t[::1] positions,
    uint64_t num_rows, make=None, bint plainly=False,
):
    """The rows of the values at some distinct positions, ascending.

    ``make`` gives the array for so many rows, where not numpy shall; ``plainly`` does without the
    instructions only some processors have.
    """
    cdef uint64_t total = _total(rows, offsets, positions)
    cdef uint64_t size = (num_rows + 63) >> 6
    cdef uint64_t* words
    cdef uint32_t[::1] out
    cdef Py_ssize_t i
    cdef int64_t row, at = 0
    cdef int state
    if total == 0:
        return np.empty(0, np.uint32)
    found = np.empty(total + LIST_SLACK, np.uint32) if make is None else make(total + LIST_SLACK)
    out = found
    if <uint64_t>out.shape[0] < total + LIST_SLACK:
        raise ValueError("too small an array")
    if total * SPARSE < num_rows:
        for i in range(positions.shape[0]):
            for row in range(offsets[positions[i]], offsets[positions[i] + 1]):
                out[at] = rows[row]
                at += 1
        found = found[:total]
        found.sort()
        if out[total - 1] >= num_rows:
            raise IndexError("rows outside the split")
        return found
    words = <uint64_t*>borrow(size * sizeof(uint64_t))
    if words == NULL:
        raise MemoryError()
    with nogil:
        memset(words, 0, size * sizeof(uint64_t))
        state = _mark(rows, offsets, positions, words, num_rows)
        if state == 0:
            if CAN_PRESS and not plainly:
                total = list_pressed(words, size, &out[0])
            else:
                total = list_plainly(words, size, &out[0])
    give_back(words)
    if state:
        raise IndexError("rows outside the split")
    return found[:total]


# -- merging --------------------------------------------------------------------------------------


cdef struct Head:
    const uint8_t* text
    uint64_t size
    uint64_t table
    uint64_t at


cdef inline bint _before(const Head* a, const Head* b) noexcept nogil:
    cdef int order = compare_bytes(a.text, a.size, b.text, b.size)
    return order < 0 or (order == 0 and a.table < b.table)


cdef void _sink(Head* heap, uint64_t size, uint64_t at) noexcept nogil:
    """Move an entry down until none below it comes before it."""
    cdef Head moving = heap[at]
    cdef uint64_t child = 2 * at + 1
    while child < size:
        if child + 1 < size and _before(&heap[child + 1], &heap[child]):
            child += 1
        if not _before(&heap[child], &moving):
            break
        heap[at] = heap[child]
        at = child
        child = 2 * at + 1
    heap[at] = moving


cdef inline void _show(Head* head, TextTable table) noexcept:
    head.text = table.base + table.ends[head.at]
    head.size = table.ends[head.at + 1] - table.ends[head.at]


cdef uint64_t _heads(list tables, Head* heap):
    """The first string of every table that has one, as a heap."""
    cdef uint64_t size = 0, i
    cdef TextTable table
    for i in range(<uint64_t>len(tables)):
        table = tables[i]
        if table.count:
            heap[size].table = i
            heap[size].at = 0
            _show(&heap[size], table)
            size += 1
    for i in range(size // 2, 0, -1):
        _sink(heap, size, i - 1)
    return size


def merge_texts(tables):
    """Merge sorted tables.

    Returns the order (positions in the tables laid end to end, equal strings by table), and where
    in that order each distinct string begins, with the end.
    """
    cdef list given = list(tables)
    cdef int64_t[::1] bases = np.cumsum([0, *map(len, given)], dtype=np.int64)
    order_of = np.empty(bases[len(given)], np.int64)
    starts_of = np.empty(bases[len(given)] + 1, np.int64)
    cdef int64_t[::1] order = order_of
    cdef int64_t[::1] starts = starts_of
    cdef uint64_t size, at = 0, groups = 0
    cdef Head last
    cdef TextTable table
    cdef Head* heap = <Head*>malloc((len(given) + 1) * sizeof(Head))
    if heap == NULL:
        raise MemoryError()
    size = _heads(given, heap)
    while size:
        if at == 0 or compare_bytes(heap.text, heap.size, last.text, last.size):
            starts[groups] = at
            groups += 1
        last = heap[0]
        order[at] = bases[last.table] + <int64_t>last.at
        at += 1
        table = given[last.table]
        heap.at += 1
        if heap.at < table.count:
            _show(heap, table)
        else:
            size -= 1
            heap[0] = heap[size]
        if size:
            _sink(heap, size, 0)
    free(heap)
    starts[groups] = at
    return order_of, starts_of[:groups + 1]
