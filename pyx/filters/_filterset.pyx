"""One key against thousands of filters: equal shapes side by side, one row read for all.

Probing filter after filter costs three cache misses each. Filters with the same segments and the
same seed look at the same three slot numbers, so a group of them is stored transposed: row ``s``
holds slot ``s`` of every filter. One key then reads three rows of neighbouring bytes, eight
filters to a machine word, and a group of any size costs little more than one filter. Almost all
filters succeed with the first seed, so groups are large where sizes are alike; a filter alone in
its shape is simply a group of one. Rows are not padded: the set takes the memory of its filters.

Answers are those of the single filters, in the order in which the filters were given.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._cursor cimport it_le64
from indextables.native._fuse cimport (
    BinaryFuse, Slots3, fingerprint, fmix64, prefetch, slots_of,
)
from indextables.native._hash cimport load64
from indextables.native._memory cimport arena_alloc
from indextables.native._typedefs cimport int64_t, uint16_t

cdef extern from *:
    int lowest_bit "__builtin_ctzll"(unsigned long long v) noexcept nogil

cdef enum:
    AHEAD = 32                  # groups whose rows are fetched before they are read
    SLACK = 8                   # readable bytes after the last row
    SPARSE = 64                 # below one in so many, chosen filters are probed one by one
    TILE = 64                   # rows written at a time while transposing

cdef struct Waiting:
    const uint8_t* a
    const uint8_t* b
    const uint8_t* c
    uint16_t print


cdef inline void _hit(Sink* sink, uint32_t member) noexcept nogil:
    if sink.found != NULL:
        sink.found[member] = 1
    elif sink.streak[member] == sink.probes:
        sink.streak[member] += 1
        sink.survivors += 1


cdef inline void _scan_rows(
    const Waiting* rows, const Group* group, const uint32_t* members, Sink* sink
) noexcept nogil:
    """Report the filters of one group whose three slots XOR to the fingerprint.

    Lanes of 8 (16) bits are compared in 64-bit words: a lane of the XOR is zero exactly where
    neither adding 0x7f.. to its low bits nor its top bit sets the top bit.
    """
    cdef uint32_t shift = 3 if group.width == 1 else 4
    cdef uint32_t lanes = 8 if group.width == 1 else 4
    cdef uint64_t low = <uint64_t>(0x7f7f7f7f7f7f7f7f if group.width == 1 else 0x7fff7fff7fff7fff)
    cdef uint64_t wanted = (
        <uint64_t>(rows.print & 0xff) * <uint64_t>0x0101010101010101 if group.width == 1
        else <uint64_t>rows.print * <uint64_t>0x0001000100010001
    )
    cdef uint32_t column = 0
    cdef uint64_t at = 0
    cdef uint64_t word, zero
    while column < group.count:
        word = load64(rows.a + at) ^ load64(rows.b + at) ^ load64(rows.c + at) ^ wanted
        zero = ~(((word & low) + low) | word | low)
        if zero:
            if group.count - column < lanes:
                zero &= (<uint64_t>1 << ((group.count - column) << shift)) - 1
            while zero:
                _hit(sink, members[column + (<uint32_t>lowest_bit(zero) >> shift)])
                zero &= zero - 1
        column += lanes
        at += 8


cdef inline void _fetch_rows(const Group* group, uint64_t key, Waiting* out) noexcept nogil:
    cdef uint64_t h = fmix64(key + group.shape.seed)
    cdef Slots3 at = slots_of(&group.shape, h)
    cdef uint64_t stride = <uint64_t>group.count * group.width
    out.a = group.rows + at.a * stride
    out.b = group.rows + at.b * stride
    out.c = group.rows + at.c * stride
    out.print = fingerprint(h)
    prefetch(out.a)
    prefetch(out.b)
    prefetch(out.c)


cdef inline void _swap_halves(
    uint64_t* x, uint64_t* y, uint32_t by, uint64_t mask
) noexcept nogil:
    cdef uint64_t moved = ((x[0] >> by) ^ y[0]) & mask
    y[0] ^= moved
    x[0] ^= moved << by


cdef inline void _transpose_8x8(
    const uint8_t** sources, uint64_t slot, uint8_t* rows, uint64_t stride
) noexcept nogil:
    """Eight slots of eight filters become eight bytes of eight rows."""
    cdef uint64_t x[8]
    cdef uint32_t i
    for i in range(8):
        x[i] = load64(sources[i] + slot)
    for i in range(4):
        _swap_halves(&x[i], &x[i + 4], 32, <uint64_t>0x00000000ffffffff)
    for i in range(8):
        if not i & 2:
            _swap_halves(&x[i], &x[i + 2], 16, <uint64_t>0x0000ffff0000ffff)
    for i in range(0, 8, 2):
        _swap_halves(&x[i], &x[i + 1], 8, <uint64_t>0x00ff00ff00ff00ff)
    for i in range(8):
        x[i] = it_le64(x[i])
        memcpy(rows + i * stride, &x[i], 8)


cdef void _copy_column(
    const uint8_t* source, uint32_t width, uint64_t start, uint64_t end, uint8_t* rows,
    uint64_t count
) noexcept nogil:
    """Slots ``start..end`` of one filter to the same column of as many rows."""
    cdef uint64_t slot
    if width == 1:
        for slot in range(start, end):
            rows[slot * count] = source[slot]
    else:
        for slot in range(start, end):
            (<uint16_t*>rows)[slot * count] = (<const uint16_t*>source)[slot]


cdef void _transpose(
    const uint8_t** sources, uint32_t width, uint64_t count, uint64_t slots, uint8_t* rows
) noexcept nogil:
    """Copy ``count`` arrays of slots side by side, ``TILE`` rows of all of them at a time."""
    cdef uint64_t start = 0
    cdef uint64_t end, slot, column
    while start < slots:
        end = min(start + TILE, slots)
        column = 0
        while column < count:
            if width == 1 and column + 8 <= count and end - start == TILE:
                for slot in range(8):
                    prefetch(sources[column + slot] + min(end, slots - 1))
                for slot in range(start, end, 8):
                    _transpose_8x8(
                        sources + column, slot, rows + slot * count + column, count
                    )
                column += 8
            else:
                _copy_column(sources[column], width, start, end, rows + column * width, count)
                column += 1
        start = end


cdef list _grouped(list filters):
    """Indices of the filters by equal shape, the largest groups first."""
    cdef BinaryFuse filter
    by_shape = {}
    for index, item in enumerate(filters):
        if not isinstance(item, BinaryFuse):
            raise TypeError(f"a FilterSet holds Binary Fuse filters, not {type(item).__name__}")
        filter = item
        shape = (
            filter.width,
            filter.shape.seed,
            filter.shape.segment_length,
            filter.shape.segment_count_length,
        )
        by_shape.setdefault(shape, []).append(index)
    return sorted(by_shape.values(), key=len, reverse=True)


cdef class FilterSet:
    """Filters of any number, sizes and widths, probed together."""

    def __cinit__(self, filters=()):
        self.table = NULL
        self.places = NULL
        self.members = NULL
        self.arena = NULL
        items = list(filters)
        grouped = _grouped(items)
        self.size = len(items)
        self.group_count = len(grouped)
        self.nbytes = 0
        for item in items:
            self.nbytes += (<BinaryFuse>item).nbytes
        self.table = <Group*>malloc(max(<uint64_t>1, self.group_count) * sizeof(Group))
        self.places = <Place*>malloc(max(<uint64_t>1, self.size) * sizeof(Place))
        self.members = <uint32_t*>malloc(max(<uint64_t>1, self.size) * sizeof(uint32_t))
        self.arena = <uint8_t*>arena_alloc(self.nbytes + self.group_count * SLACK + SLACK)
        if not (self.table and self.places and self.members and self.arena):
            raise MemoryError("no memory to hold the filters")
        self._load(items, grouped)

    def __dealloc__(self):
        free(self.table)
        free(self.places)
        free(self.members)
        free(self.arena)

    cdef int _load(self, list filters, list grouped) except -1:
        """Copy every group's filters into the arena."""
        cdef Group* group
        cdef BinaryFuse filter
        cdef uint64_t number, first = 0
        cdef uint32_t column
        cdef uint8_t* rows = self.arena
        cdef const uint8_t** sources = <const uint8_t**>malloc(
            max(<uint64_t>1, self.size) * sizeof(const uint8_t*)
        )
        if sources == NULL:
            raise MemoryError("no memory to hold the filters")
        try:
            for number, indices in enumerate(grouped):
                group = &self.table[number]
                for column, index in enumerate(indices):
                    filter = filters[index]
                    sources[column] = <const uint8_t*>filter.data
                    self.places[<uint64_t>index] = Place(<uint32_t>number, column)
                    self.members[first + column] = index
                group.shape = filter.shape
                group.width = filter.width
                group.count = <uint32_t>len(indices)
                group.first = first
                group.rows = rows
                with nogil:
                    _transpose(sources, group.width, group.count, group.shape.slots, rows)
                first += group.count
                rows += <uint64_t>group.shape.slots * group.count * group.width
                rows += SLACK - (<size_t>rows & 7)
            memset(rows, 0, SLACK)
        finally:
            free(sources)
        return 0

    cdef void _probe_all_groups(self, uint64_t key, Sink* sink) noexcept nogil:
        cdef Waiting waiting[AHEAD]
        cdef uint64_t number
        cdef Group* group
        for number in range(min(<uint64_t>AHEAD, self.group_count)):
            _fetch_rows(&self.table[number], key, &waiting[number])
        for number in range(self.group_count):
            group = &self.table[number]
            _scan_rows(&waiting[number % AHEAD], group, self.members + group.first, sink)
            if number + AHEAD < self.group_count:
                _fetch_rows(&self.table[number + AHEAD], key, &waiting[number % AHEAD])

    cdef bint _has(self, uint64_t index, uint64_t key) noexcept nogil:
        """The answer of one filter."""
        cdef Group* group = &self.table[self.places[index].group]
        cdef uint64_t column = self.places[index].column
        cdef uint64_t h = fmix64(key + group.shape.seed)
        cdef Slots3 at = slots_of(&group.shape, h)
        cdef const uint16_t* wide = <const uint16_t*>group.rows
        cdef uint64_t a = at.a * <uint64_t>group.count + column
        cdef uint64_t b = at.b * <uint64_t>group.count + column
        cdef uint64_t c = at.c * <uint64_t>group.count + column
        if group.width == 1:
            return <uint8_t>fingerprint(h) == group.rows[a] ^ group.rows[b] ^ group.rows[c]
        return fingerprint(h) == wide[a] ^ wide[b] ^ wide[c]

    cdef uint64_t _keep_hits(self, uint64_t key, uint8_t[::1] chosen) noexcept nogil:
        """Clear the chosen filters that do not hold ``key``; returns how many stay."""
        cdef uint64_t stay = 0
        cdef uint64_t index
        for index in range(self.size):
            if chosen[index]:
                chosen[index] = self._has(index, key)
                stay += chosen[index]
        return stay

    def __len__(self):
        return self.size

    @property
    def groups(self):
        """The sizes of the groups, largest first."""
        return [self.table[number].count for number in range(self.group_count)]

    def probe(self, uint64_t key, mask=None):
        """One bool for each filter: may it hold ``key``?

        With ``mask`` (a bool for each filter) only those filters are asked, others answer False.
        """
        if mask is not None:
            return self.probe_any(np.array([key], np.uint64), mask)
        cdef bytearray room = bytearray(self.size)
        cdef Sink sink
        sink.found = <uint8_t*>PyByteArray_AS_STRING(room)
        sink.streak = NULL
        sink.probes = 0
        with nogil:
            self._probe_all_groups(key, &sink)
        return np.frombuffer(room, np.bool_)

    def probe_any(self, keys, mask=None):
        """For each filter, whether it may hold at least one of the keys."""
        cdef const uint64_t[::1] view = np.ascontiguousarray(keys, np.uint64)
        cdef Sink sink
        cdef int64_t i
        cdef uint8_t[::1] found
        chosen, few = self._chosen(mask)
        if few:
            return self._any_of_few(view, chosen)
        out = np.zeros(self.size, np.bool_)
        found = out.view(np.uint8)
        sink.found = &found[0] if self.size else NULL
        sink.streak = NULL
        sink.probes = 0
        with nogil:
            for i in range(view.shape[0]):
                self._probe_all_groups(view[i], &sink)
        return out if chosen is None else out & chosen

    def probe_all(self, keys, mask=None):
        """For each filter, whether it may hold every one of the keys."""
        cdef const uint64_t[::1] view = np.ascontiguousarray(keys, np.uint64)
        cdef int64_t i = 0
        cdef uint64_t left
        cdef uint8_t[::1] stay
        out, few = self._chosen(mask)
        if not few:
            streaks, i = self._streaks(view)
            full = streaks == i
            out = full if out is None else full & out
        stay = out.view(np.uint8)
        with nogil:
            while i < view.shape[0]:
                left = self._keep_hits(view[i], stay)
                i = i + 1 if left else view.shape[0]
        return out

    def _chosen(self, mask):
        """The mask as a fresh bool array (or None), and whether it chooses few filters."""
        if mask is None:
            return None, False
        chosen = np.array(mask, np.bool_)
        if chosen.shape != (self.size,):
            raise ValueError(f"the mask needs one bool for each of {self.size} filters")
        return chosen, np.count_nonzero(chosen) * SPARSE < self.size

    def _any_of_few(self, const uint64_t[::1] keys, chosen):
        cdef uint8_t[::1] found = chosen.view(np.uint8)
        cdef uint64_t index
        cdef int64_t i
        cdef bint hit
        with nogil:
            for index in range(self.size):
                if found[index]:
                    hit = False
                    for i in range(keys.shape[0]):
                        hit = hit or self._has(index, keys[i])
                    found[index] = hit
        return chosen

    def _streaks(self, const uint64_t[::1] keys):
        """How many keys in a row each filter hit, and how many keys were probed.

        Stops when few filters are left that hit every time.
        """
        cdef Sink sink
        cdef uint32_t[::1] streaks
        cdef int64_t i = 0
        out = np.zeros(self.size, np.uint32)
        streaks = out
        sink.found = NULL
        sink.streak = &streaks[0] if self.size else NULL
        sink.survivors = self.size
        with nogil:
            while i < keys.shape[0] and sink.survivors * SPARSE >= self.size:
                sink.probes = <uint32_t>i
                sink.survivors = 0
                self._probe_all_groups(keys[i], &sink)
                i += 1
        return out, i
