"""Word directories: blocks of a field's terms, and what tantivy's dictionary says of each term.

A block is the next terms of a field in the order of their bytes, as columns:

    varint bytes shared with the term before[n] | varint bytes after them[n]
    varint rows that have the term[n] | varint bytes of its list of rows[n]
    varint bytes of its positions[n]                   (fields with positions)
    pieces of the lists, pieces of the positions:
        varint pieces p | varint terms of each[p] | u32 CRC-32C of the bytes of each[p]
    the bytes that are not shared, of all terms

The lists of a block's terms lie one behind the other. A piece is the lists of neighbouring terms
that are fetched and checked together: as many as fit into ``PIECE`` bytes, or one that is longer.

``term_numbers`` reads the table at the end of tantivy's dictionary of a field: for every 256 terms
the numbers of the first, and packed differences to them of the others and of the end of the last.
"""

from libc.string cimport memcmp, memcpy

import numpy as np

from indextables.native._crc32c cimport crc32c_extend
from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_left, cursor_over, cursor_seek,
    cursor_sub, cursor_take, read_u8, read_u32, read_u64, read_varint,
)
from indextables.native._rows_bits cimport bits_at
from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PIECE = 4096
    FST = 1
    DICTIONARY_TAIL = 16        # length of the table, version, kind
    META = 39                   # bytes of the numbers of the first of 256 terms
    GROUP = 256


# -- tantivy's numbers ----------------------------------------------------------------------------


def term_numbers(const uint8_t[::1] dictionary not None):
    """``(rows, list ends, position ends)`` of the terms of a field, from its dictionary.

    The ends have one entry more than there are terms: the first is where the first term begins.
    """
    cdef Cursor c, table, metas, packed
    cdef uint64_t size = dictionary.shape[0], length, meta_bytes, count
    cursor_over(&c, dictionary, 0)
    cursor_seek(&c, size - min(size, <uint64_t>DICTIONARY_TAIL))
    length = read_u64(&c)
    if read_u32(&c) != 1 or read_u32(&c) != FST:
        cursor_fail(&c, b"a term dictionary of a kind that is not known")
    if length > size - DICTIONARY_TAIL:
        cursor_fail(&c, b"the table of a term dictionary is too long")
    cursor_seek(&c, size - DICTIONARY_TAIL - length)
    cursor_sub(&c, length, &table)
    meta_bytes = read_u64(&table)
    count = read_u64(&table)
    cursor_sub(&table, meta_bytes, &metas)
    cursor_sub(&table, cursor_left(&table), &packed)
    if meta_bytes % META or meta_bytes // META != (count + GROUP - 1) // GROUP:
        cursor_fail(&metas, b"a term dictionary has a wrong number of groups")
    rows = np.zeros(count, np.uint32)
    lists, places = np.zeros(count + 1, np.uint64), np.zeros(count + 1, np.uint64)
    cdef uint32_t[::1] often = rows
    cdef uint64_t[::1] list_ends = lists, place_ends = places
    cdef uint64_t first = 0
    while first < count:
        _read_group(
            &metas, &packed, min(<uint64_t>GROUP, count - first),
            &often[first], &list_ends[first], &place_ends[first],
        )
        first += GROUP
    return rows, lists, places


cdef int _read_group(
    Cursor* metas, Cursor* packed, uint64_t count,
    uint32_t* rows, uint64_t* lists, uint64_t* places,
) except -1 nogil:
    """The numbers of up to 256 terms, and the ends of the last."""
    cdef uint64_t offset = read_u64(metas), list_start, place_start, i, at, left
    cdef uint32_t row_bits, list_bits, place_bits, step
    cdef const uint8_t* base
    rows[0] = read_u32(metas)
    list_start = read_u64(metas)
    read_u32(metas)
    place_start = read_u64(metas)
    read_u32(metas)
    row_bits = read_u8(metas)
    list_bits = read_u8(metas)
    place_bits = read_u8(metas)
    if row_bits > 32 or list_bits > 56 or place_bits > 56:
        return cursor_fail(metas, b"numbers of a term dictionary are too wide")
    if list_start != lists[0] or place_start != places[0]:
        return cursor_fail(metas, b"groups of a term dictionary do not follow each other")
    step = row_bits + list_bits + place_bits
    cursor_seek(packed, offset)
    base = packed.base + packed.pos
    left = cursor_left(packed)
    if left * 8 < (count - 1) * step + list_bits + place_bits:
        return cursor_fail(packed, b"unexpected end of data")
    for i in range(count):
        at = i * step
        lists[i + 1] = list_start + bits_at(base, left, at, list_bits)
        places[i + 1] = place_start + bits_at(base, left, at + list_bits, place_bits)
        if i + 1 < count:
            rows[i + 1] = <uint32_t>bits_at(base, left, at + list_bits + place_bits, row_bits)
        if lists[i + 1] < lists[i] or places[i + 1] < places[i]:
            return cursor_fail(packed, b"lists of a term dictionary do not follow each other")
    return 0


# -- writing --------------------------------------------------------------------------------------


cdef void _put_varint(bytearray out, uint64_t value):
    while value >= 128:
        out.append(<uint8_t>(value & 127) | 128)
        value >>= 7
    out.append(<uint8_t>value)


cdef void _put_u32(bytearray out, uint32_t value):
    out += value.to_bytes(4, "little")


cdef uint64_t _shared(
    const uint8_t* one, uint64_t size, const uint8_t* other, uint64_t other_size
) noexcept nogil:
    cdef uint64_t i = 0
    while i < size and i < other_size and one[i] == other[i]:
        i += 1
    return i


cdef _put_pieces(
    bytearray out, const uint64_t[::1] ends, uint64_t first, uint64_t stop,
    const uint8_t[::1] payload,
):
    """The pieces of the lists of some terms; ``ends`` are offsets into ``payload``."""
    sizes, sums = bytearray(), bytearray()
    cdef uint64_t start = first, term = first, pieces = 0
    while start < stop:
        term = start + 1
        while term < stop and ends[term + 1] - ends[start] <= PIECE:
            term += 1
        _put_varint(sizes, term - start)
        _put_u32(sums, _sum(payload, ends[start], ends[term]))
        pieces += 1
        start = term
    _put_varint(out, pieces)
    out += sizes
    out += sums


cdef uint32_t _sum(const uint8_t[::1] payload, uint64_t start, uint64_t end) except? 0xffffffff:
    if start > end or end > <uint64_t>payload.shape[0]:
        raise ValueError("a list lies outside the index file")
    if start == end:
        return crc32c_extend(0, NULL, 0)
    return crc32c_extend(0, &payload[start], <size_t>(end - start))


def pack_block(
    const uint8_t[::1] texts not None,
    const int64_t[::1] ends not None,
    uint64_t first,
    uint64_t stop,
    const uint32_t[::1] rows not None,
    const uint64_t[::1] lists not None,
    const uint8_t[::1] postings not None,
    const uint64_t[::1] places,
    const uint8_t[::1] positions,
):
    """The block of the terms from ``first`` to ``stop``; term ``i`` is between two of ``ends``.

    ``lists`` and ``places`` are ends as ``term_numbers`` gives them, in ``postings`` and
    ``positions``; the latter two are ``None`` where the field has no positions.
    """
    cdef uint64_t i, shared
    cdef int64_t start, size
    if not first < stop or stop >= <uint64_t>ends.shape[0] or stop > <uint64_t>rows.shape[0]:
        raise ValueError("no such terms")
    heads, tails, often, lengths, widths, rest = (bytearray() for _ in range(6))
    for i in range(first, stop):
        start, size = ends[i], ends[i + 1] - ends[i]
        shared = 0
        if i > first and size > 0 and ends[i] > ends[i - 1]:
            shared = _shared(&texts[ends[i - 1]], ends[i] - ends[i - 1], &texts[start], size)
        _put_varint(heads, shared)
        _put_varint(tails, size - shared)
        if size > <int64_t>shared:
            rest += texts[start + shared:start + size]
        _put_varint(often, rows[i])
        _put_varint(lengths, lists[i + 1] - lists[i])
        if places is not None:
            _put_varint(widths, places[i + 1] - places[i])
    out = heads + tails + often + lengths + widths
    _put_pieces(out, lists, first, stop, postings)
    if places is not None:
        _put_pieces(out, places, first, stop, positions)
    return bytes(out + rest)


# -- reading --------------------------------------------------------------------------------------


cdef int _read_sizes(Cursor* c, uint64_t count, uint64_t* ends) except -1 nogil:
    """Sizes as ends, the first of which is 0."""
    cdef uint64_t i, size
    ends[0] = 0
    for i in range(count):
        size = read_varint(c)
        if size >> 40:
            return cursor_fail(c, b"a list of a block of words is too long")
        ends[i + 1] = ends[i] + size
    return 0


cdef _read_pieces(Cursor* c, uint64_t count):
    """``(first term of each piece and the number of terms, checksums)``."""
    cdef uint64_t pieces = read_varint(c), i, size, done = 0
    if pieces > count:
        cursor_fail(c, b"a block of words has more pieces than terms")
    firsts, sums = np.zeros(pieces + 1, np.int64), np.empty(pieces, np.uint32)
    cdef int64_t[::1] terms = firsts
    cdef uint32_t[::1] found = sums
    for i in range(pieces):
        size = read_varint(c)
        done += size
        if size == 0 or done > count:
            cursor_fail(c, b"pieces of a block of words do not fit its terms")
        terms[i + 1] = done
    if done != count:
        cursor_fail(c, b"pieces of a block of words do not fit its terms")
    for i in range(pieces):
        found[i] = read_u32(c)
    return firsts, sums


cdef int _join(
    Cursor* c, uint64_t count, const uint64_t* shared, const uint64_t* after, int64_t* ends,
    uint8_t* out,
) except -1 nogil:
    """Spell the terms out; each has to be greater than the one before."""
    cdef uint64_t i, head, tail, last = 0
    cdef uint8_t* term = out
    cdef uint8_t* before = out
    for i in range(count):
        head = shared[i]
        tail = after[i + 1] - after[i]
        memcpy(term, before, head)
        memcpy(term + head, cursor_take(c, tail), tail)
        if i and not _is_less(before, last, term, head + tail):
            return cursor_fail(c, b"the terms of a block of words do not ascend")
        before = term
        last = head + tail
        term += last
        ends[i + 1] = term - out
    return 0


cdef bint _is_less(
    const uint8_t* one, uint64_t size, const uint8_t* other, uint64_t other_size
) noexcept nogil:
    cdef int order = memcmp(one, other, min(size, other_size))
    return order < 0 or (order == 0 and size < other_size)


def unpack_block(const uint8_t[::1] raw not None, uint64_t count, bint has_positions, most):
    """The columns of a block of ``count`` terms that take ``most`` bytes at most:

    ``(texts, ends, rows, list ends, list pieces, list sums, place ends, place pieces, place
    sums)``; the last three are ``None`` without positions.
    """
    cdef Cursor c
    cdef uint64_t i, total = 0, size, before = 0
    cursor_over(&c, raw, 0)
    if count == 0 or count > <uint64_t>raw.shape[0] // 4:
        cursor_fail(&c, b"a block of words has too few bytes for its terms")
    cdef uint64_t[::1] shared = np.empty(count, np.uint64)
    cdef uint64_t[::1] after = np.empty(count + 1, np.uint64)
    for i in range(count):
        shared[i] = read_varint(&c)
    _read_sizes(&c, count, &after[0])
    for i in range(count):
        size = shared[i] + (after[i + 1] - after[i])
        if shared[i] > before:
            cursor_fail(&c, b"a term shares more bytes than the one before it has")
        before = size
        total += size
        if total > <uint64_t>most:
            cursor_fail(&c, b"the terms of a block of words are too long")
    often = np.empty(count, np.uint32)
    cdef uint32_t[::1] rows = often
    for i in range(count):
        size = read_varint(&c)
        if size == 0 or size >> 32:
            cursor_fail(&c, b"a term has no rows, or too many")
        rows[i] = <uint32_t>size
    list_ends = np.empty(count + 1, np.uint64)
    cdef uint64_t[::1] sizes = list_ends
    _read_sizes(&c, count, &sizes[0])
    place_ends = place_pieces = place_sums = None
    if has_positions:
        sizes = place_ends = np.empty(count + 1, np.uint64)
        _read_sizes(&c, count, &sizes[0])
    pieces, sums = _read_pieces(&c, count)
    if has_positions:
        place_pieces, place_sums = _read_pieces(&c, count)
    if cursor_left(&c) != after[count]:
        cursor_fail(&c, b"the terms of a block of words do not end with its bytes")
    texts, text_ends = np.empty(total + 1, np.uint8), np.zeros(count + 1, np.int64)
    cdef uint8_t[::1] out = texts
    cdef int64_t[::1] out_ends = text_ends
    with nogil:
        _join(&c, count, &shared[0], &after[0], &out_ends[0], &out[0])
    return (
        texts[:total].tobytes(), text_ends, often, list_ends, pieces, sums,
        place_ends, place_pieces, place_sums,
    )
