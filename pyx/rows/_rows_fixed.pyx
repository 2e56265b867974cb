"""Values of fixed width, lists and null bitmaps, from blocks into Arrow buffers.

Nulls take no room in a block: a slot's value is the one whose number is the rank of the slot in
the bitmap. A span is decoded in pieces of at most ``PIECE`` slots: values of the piece into a small
array, spread over the slots where there are nulls, then narrowed into the output.

Floats are integers too: their bits, or (``DECIMAL_FLOATS``) ``digits / 10**exponent`` with a list
of the positions where that is not the very same float.
"""

from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_take, it_le32, read_u8, read_u32,
)
from indextables.native._rows_bits cimport (
    IntVec, load_le64, rank_between, rank_bits, vec_get, vec_open, vec_run,
)
from indextables.native._rows_blocks cimport (
    ALL_NULL, CODES, DECIMAL_FLOATS, INTEGERS, LISTS, VALIDITY, WIDE_INTEGERS, BlockSet, Head,
    Run, Spans, part_start, part_stop, rank_run,
)
from indextables.native._typedefs cimport (
    float32_t, float64_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

cdef enum:
    PIECE = 512
    MAX_EXPONENT = 22

cdef float64_t POWERS[MAX_EXPONENT + 1]
cdef int _k
for _k in range(MAX_EXPONENT + 1):
    POWERS[_k] = float(10 ** _k)


cdef struct Fixed:
    uint8_t kind
    IntVec vec
    IntVec high
    float64_t power
    uint64_t exceptions
    const uint8_t* places       # u32 positions, ascending
    const uint8_t* patches      # u64 float bits
    const uint64_t* words       # dictionary
    uint64_t nwords


cdef class Dictionaries:
    """The dictionaries of a stream's chunks, and which of them each block uses."""
    cdef list owners
    cdef const int32_t[::1] which

    def __init__(self, list owners, which):
        self.owners = owners
        self.which = which

    cdef int pick(self, int64_t block, const uint64_t** words, uint64_t* count) except -1:
        cdef const uint64_t[::1] view
        cdef int32_t at
        words[0] = NULL
        count[0] = 0
        if block >= self.which.shape[0]:
            return 0
        at = self.which[block]
        if at < 0 or at >= len(self.owners) or self.owners[at] is None:
            return 0
        view = self.owners[at]
        if view.shape[0]:
            words[0] = &view[0]
            count[0] = view.shape[0]
        return 0


cdef int fixed_open(Head* head, Fixed* f, uint32_t item_bits) except -1 nogil:
    cdef Cursor* c = &head.body
    f.kind = head.kind
    if head.count * item_bits > head.allowance * 8:
        return cursor_fail(c, b"block claims more values than its size allows")
    if head.kind == ALL_NULL or head.kind == VALIDITY:
        if head.valid:
            return cursor_fail(c, b"block of values without values")
        return 0
    if head.kind == DECIMAL_FLOATS:
        f.power = POWERS[min(read_u8(c), MAX_EXPONENT)]
        f.exceptions = read_u32(c)
        if f.exceptions > head.valid:
            return cursor_fail(c, b"more exceptions than values")
        f.places = cursor_take(c, 4 * f.exceptions)
        f.patches = cursor_take(c, 8 * f.exceptions)
    elif head.kind != INTEGERS and head.kind != CODES and head.kind != WIDE_INTEGERS:
        return cursor_fail(c, b"unexpected kind of block")
    vec_open(c, head.valid, &f.vec)
    if head.kind == WIDE_INTEGERS:
        vec_open(c, head.valid, &f.high)
    return 0


cdef inline uint32_t place_at(const Fixed* f, uint64_t i) noexcept nogil:
    cdef uint32_t v
    memcpy(&v, f.places + 4 * i, 4)
    return it_le32(v)


cdef void floats_of(
    const Fixed* f, uint64_t first, uint64_t n, uint32_t item_bits, uint64_t* out
) noexcept nogil:
    """Turn digits into float bits and patch the exceptions among ``first .. first + n``."""
    cdef uint64_t i, low = 0, high = f.exceptions, middle
    cdef float64_t wide
    cdef float32_t narrow
    cdef uint32_t bits
    for i in range(n):
        wide = <float64_t><int64_t>out[i] / f.power
        if item_bits == 64:
            memcpy(&out[i], &wide, 8)
        else:
            narrow = <float32_t>wide
            memcpy(&bits, &narrow, 4)
            out[i] = bits
    while low < high:
        middle = (low + high) >> 1
        if place_at(f, middle) < first:
            low = middle + 1
        else:
            high = middle
    while low < f.exceptions and place_at(f, low) < first + n:
        if place_at(f, low) >= first:
            out[place_at(f, low) - first] = load_le64(f.patches + 8 * low)
        low += 1


cdef int values_of(
    const Fixed* f, uint64_t first, uint64_t n, uint32_t item_bits, uint64_t* out, uint64_t* high
) except -1 nogil:
    """Stored values ``first .. first + n`` as 64-bit words (``high``: upper half of 128)."""
    cdef uint64_t i
    if n == 0:
        return 0
    vec_run(&f.vec, first, n, out)
    if f.kind == DECIMAL_FLOATS:
        floats_of(f, first, n, item_bits, out)
    elif f.kind == CODES:
        for i in range(n):
            if out[i] >= f.nwords:
                return corrupt_at(0, b"dictionary code beyond the dictionary")
            out[i] = f.words[out[i]]
    if item_bits == 128:
        if f.kind == WIDE_INTEGERS:
            vec_run(&f.high, first, n, high)
        else:
            for i in range(n):
                high[i] = <uint64_t>(<int64_t>out[i] >> 63)
    return 0


cdef uint64_t mark_valid(
    const Head* head, uint64_t start, uint64_t n, uint8_t* validity, uint64_t at
) noexcept nogil:
    """Copy validity of slots ``start .. start + n`` to bit ``at`` on; the number of valid slots."""
    cdef uint64_t i, slot, count = 0
    if head.kind == ALL_NULL:
        return 0
    if head.bitmap == NULL:
        if validity != NULL:
            for i in range(at, at + n):
                validity[i >> 3] |= 1 << (i & 7)
        return n
    for i in range(n):
        slot = start + i
        if head.bitmap[slot >> 3] >> (slot & 7) & 1:
            count += 1
            if validity != NULL:
                validity[(at + i) >> 3] |= 1 << ((at + i) & 7)
    return count


cdef void spread(
    const Head* head, uint64_t start, uint64_t n, uint64_t valid, uint64_t* v
) noexcept nogil:
    """Move ``valid`` leading values of ``v`` to the valid ones of ``n`` slots, zero elsewhere."""
    cdef uint64_t i = n, left = valid, slot
    while i > 0:
        i -= 1
        slot = start + i
        if left and (head.bitmap == NULL or head.bitmap[slot >> 3] >> (slot & 7) & 1):
            left -= 1
            v[i] = v[left]
        else:
            v[i] = 0


cdef void store(
    const uint64_t* v, const uint64_t* high, uint64_t n, uint32_t item_bits, uint8_t* out,
    uint64_t at,
) noexcept nogil:
    cdef uint64_t i
    if item_bits == 64:
        memcpy(out + 8 * at, v, 8 * n)
    elif item_bits == 32:
        for i in range(n):
            (<uint32_t*>out)[at + i] = <uint32_t>v[i]
    elif item_bits == 16:
        for i in range(n):
            (<uint16_t*>out)[at + i] = <uint16_t>v[i]
    elif item_bits == 8:
        for i in range(n):
            out[at + i] = <uint8_t>v[i]
    elif item_bits == 128:
        for i in range(n):
            (<uint64_t*>out)[2 * (at + i)] = v[i]
            (<uint64_t*>out)[2 * (at + i) + 1] = high[i]
    else:
        for i in range(n):
            out[(at + i) >> 3] |= <uint8_t>(v[i] & 1) << ((at + i) & 7)


cdef int plain_block(
    Head* head, const Fixed* f, Spans spans, Py_ssize_t first, Py_ssize_t end, uint8_t* out,
    uint8_t* validity, uint64_t at,
) except -1 nogil:
    """Spans of one block of 64-bit values without nulls, which go straight to their place."""
    cdef uint64_t* values = <uint64_t*>out
    cdef uint64_t start, stop, n
    cdef Py_ssize_t i
    for i in range(first, end):
        start = spans.lo[i]
        stop = spans.hi[i]
        if stop > head.count:
            return cursor_fail(&head.body, b"block holds fewer slots than rows")
        if validity != NULL:
            mark_valid(head, start, stop - start, validity, at)
        while start < stop:
            n = min(stop - start, <uint64_t>PIECE)
            values_of(f, start, n, 64, values + at, NULL)
            start += n
            at += n
    return 0


cdef int64_t fixed_run(
    const Head* head, const Fixed* f, Spans spans, const Run* run, uint32_t item_bits,
    uint8_t* out, uint8_t* validity, uint64_t* at,
) except -1 nogil:
    """Decode one run to item ``at`` of the output, and move that; the number of valid slots."""
    cdef uint64_t values[PIECE]
    cdef uint64_t high[PIECE]
    cdef uint64_t n = run.stop - run.start, valid = n, start, slots, skip, total = 0
    cdef Py_ssize_t i
    if head.kind == ALL_NULL:
        valid = 0
    elif head.bitmap != NULL:
        valid = rank_between(head.bitmap, run.start, run.stop)
    values_of(f, run.rank, valid, item_bits, values, high)
    if valid < n:
        spread(head, run.start, n, valid, values)
        if item_bits == 128:
            spread(head, run.start, n, valid, high)
    for i in range(run.first, run.end):
        start = part_start(spans, run, i)
        slots = part_stop(spans, run, i) - start
        skip = start - run.start
        total += mark_valid(head, start, slots, validity, at[0])
        store(values + skip, high + skip, slots, item_bits, out, at[0])
        at[0] += slots
    return total


def decode_fixed(
    BlockSet blocks, Spans spans, uint32_t item_bits, Dictionaries dictionaries,
    uint8_t[::1] out, uint8_t[::1] validity,
):
    """Fill ``out`` (and ``validity`` unless empty, both zeroed for bits); the number of nulls."""
    cdef Head head
    cdef Fixed f
    cdef Run run
    cdef int64_t current = -1, valid = 0
    cdef uint64_t at = 0, slots = 0
    cdef uint8_t* marks = &validity[0] if validity.shape[0] else NULL
    if (<uint64_t>spans.total * item_bits + 7) // 8 > <uint64_t>out.shape[0] or (
        marks != NULL and (spans.total + 7) // 8 > validity.shape[0]
    ):
        raise ValueError("output is too small for the spans")
    if spans.total == 0:
        return 0
    memset(&f, 0, sizeof(Fixed))
    memset(&run, 0, sizeof(Run))
    with nogil:
        while spans.next_run(&run, PIECE, True):
            if spans.b[run.first] != current:
                current = spans.b[run.first]
                blocks.open_head(current, &head)
                fixed_open(&head, &f, item_bits)
                if head.kind == CODES:
                    with gil:
                        dictionaries.pick(current, &f.words, &f.nwords)
                run.slot = run.rank = 0
                if item_bits == 64 and head.bitmap == NULL and head.valid:
                    spans.whole_block(&run, &slots)
                    plain_block(&head, &f, spans, run.first, run.end, &out[0], marks, at)
                    at += slots
                    valid += slots
                    continue
            if run.stop > head.count:
                cursor_fail(&head.body, b"block holds fewer slots than rows")
            rank_run(&run, head.bitmap)
            valid += fixed_run(&head, &f, spans, &run, item_bits, &out[0], marks, &at)
    return spans.total - valid


def decode_validity(BlockSet blocks, Spans spans, uint8_t[::1] validity):
    """Null bitmap of a struct; the number of nulls."""
    cdef Head head
    cdef int64_t current = -1, valid = 0
    cdef uint64_t at = 0, n
    cdef Py_ssize_t i
    if (spans.total + 7) // 8 > validity.shape[0]:
        raise ValueError("output is too small for the spans")
    if spans.total == 0:
        return 0
    with nogil:
        for i in range(spans.b.shape[0]):
            if spans.b[i] != current:
                current = spans.b[i]
                blocks.open_head(current, &head)
                if head.kind != VALIDITY and head.kind != ALL_NULL:
                    cursor_fail(&head.body, b"unexpected kind of block")
            if head.body.size and spans.hi[i] > head.count:
                cursor_fail(&head.body, b"block holds fewer slots than rows")
            n = spans.hi[i] - spans.lo[i]
            valid += mark_valid(&head, spans.lo[i], n, &validity[0], at)
            at += n
    return spans.total - valid


cdef int list_span(
    const Head* head, const IntVec* ends, uint64_t start, uint64_t stop,
    int32_t* offsets, uint8_t* validity, uint64_t at, uint64_t* child_lo, uint64_t* child_hi,
) except -1 nogil:
    """Offsets of one span's lists, continuing at ``offsets[at]``; the children they span."""
    cdef uint64_t rank = rank_bits(head.bitmap, start) if head.bitmap != NULL else start
    cdef uint64_t i, slot, end, begin = 0
    cdef int64_t running = offsets[at]
    if head.kind == ALL_NULL:
        rank = 0
    if rank > 0:
        begin = vec_get(ends, rank - 1)
    child_lo[0] = begin
    for i in range(stop - start):
        slot = start + i
        if head.kind != ALL_NULL and (
            head.bitmap == NULL or head.bitmap[slot >> 3] >> (slot & 7) & 1
        ):
            end = vec_get(ends, rank)
            rank += 1
            if end < begin or end > 0xFFFFFFFFULL or running + <int64_t>(end - begin) > 0x7FFFFFFF:
                return cursor_fail(&head.body, b"list ends before it starts")
            running += end - begin
            begin = end
            if validity != NULL:
                validity[(at + i) >> 3] |= 1 << ((at + i) & 7)
        offsets[at + i + 1] = <int32_t>running
    child_hi[0] = begin
    return 0


def decode_lists(BlockSet blocks, Spans spans, int32_t[::1] offsets, uint8_t[::1] validity):
    """Offsets of the wanted lists; the spans of their children in the child stream's blocks."""
    cdef Head head
    cdef IntVec ends
    cdef int64_t current = -1
    cdef uint64_t at = 0, low = 0, high = 0
    cdef Py_ssize_t i, n = spans.b.shape[0], kept = 0
    cdef uint8_t* marks = &validity[0] if validity.shape[0] else NULL
    out_b, out_lo, out_hi = (np.empty(n, t) for t in (np.int32, np.uint32, np.uint32))
    cdef int32_t[::1] b = out_b
    cdef uint32_t[::1] lo = out_lo
    cdef uint32_t[::1] hi = out_hi
    if offsets.shape[0] != spans.total + 1 or (
        marks != NULL and (spans.total + 7) // 8 > validity.shape[0]
    ):
        raise ValueError("output does not fit the spans")
    offsets[0] = 0
    with nogil:
        for i in range(n):
            if spans.b[i] != current:
                current = spans.b[i]
                blocks.open_head(current, &head)
                if head.kind == LISTS:
                    vec_open(&head.body, head.valid, &ends)
                elif head.kind != ALL_NULL:
                    cursor_fail(&head.body, b"unexpected kind of block")
            if spans.hi[i] > head.count:
                cursor_fail(&head.body, b"block holds fewer slots than rows")
            list_span(
                &head, &ends, spans.lo[i], spans.hi[i], &offsets[0], marks, at, &low, &high
            )
            at += spans.hi[i] - spans.lo[i]
            if high > low:
                b[kept] = <int32_t>current
                lo[kept] = <uint32_t>low
                hi[kept] = <uint32_t>high
                kept += 1
    return Spans(out_b[:kept], out_lo[:kept], out_hi[:kept])
