"""Lists of rows in the form in which tantivy keeps them: who has a term, how often, and where.

A list of fewer than 128 rows is the gaps between them as variable-length integers (seven bits a
byte, the last one marked by its top bit), the first from zero; then, if the field keeps them, the
frequencies in the same form. A longer one begins with the length of a table of its full blocks:

    u32 last row | u8 bits of a gap, and 64 | u8 bits of a frequency
    | u32 sum of the frequencies | u8 u8 for ranking

Fields without frequencies have the first two, fields without positions not the sum. Each block is
128 gaps less one, packed, then 128 frequencies less one, packed; rows after the last full block
follow as in a short list. Positions of a term are: the number of full blocks, the bits of each, the
blocks, and the rest as variable-length integers, all as gaps inside their row.

Packed numbers lie in four lanes: number ``i`` is the ``i // 4``-th of lane ``i % 4``, and the
32-bit words of the lanes take turns.

Every byte is passed through the cursor; a list that does not ascend, names a row the split does not
have, or does not end with its bytes is a ``CorruptFileError``.
"""

import numpy as np

from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_left, cursor_over, cursor_skip, cursor_sub,
    cursor_take, it_le32, read_u8, read_u32,
)
from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef enum:
    BLOCK = 128
    LANES = 4
    BASIC = 0
    FREQUENCIES = 1
    POSITIONS = 2
    WIDTH = 31                  # bits that say how wide gaps are
    STRICT = 64                 # the bit that says that gaps are less one, as they always are


cdef inline uint64_t _read_stopped(Cursor* c) except? 18446744073709551615 nogil:
    """A variable-length integer whose last byte has its top bit set; at most 32 bits."""
    cdef uint64_t value = 0
    cdef uint32_t shift = 0
    cdef uint8_t byte
    while shift < 35:
        byte = read_u8(c)
        value |= <uint64_t>(byte & 127) << shift
        if byte & 128:
            if value >> 32:
                break
            return value
        shift += 7
    cursor_fail(c, b"variable-length integer does not fit in 32 bits")
    return 18446744073709551615ULL


cdef inline uint32_t _word(const uint8_t* packed, uint32_t number) noexcept nogil:
    cdef uint32_t value
    memcpy(&value, packed + 4 * number, 4)
    return it_le32(value)


cdef void _unpack(const uint8_t* packed, uint32_t bits, uint32_t* out) noexcept nogil:
    """128 numbers of ``bits`` (1 to 32) bits; ``packed`` has 16 bytes for each bit."""
    cdef uint32_t i, lane, at, shift, low, high
    cdef uint64_t mask = (<uint64_t>1 << bits) - 1
    for i in range(<uint32_t>(BLOCK // LANES)):
        at = (i * bits) >> 5
        shift = (i * bits) & 31
        for lane in range(<uint32_t>LANES):
            low = _word(packed, at * LANES + lane)
            high = 0
            if shift + bits > 32:
                high = _word(packed, (at + 1) * LANES + lane)
            out[i * LANES + lane] = <uint32_t>(
                ((<uint64_t>low | (<uint64_t>high << 32)) >> shift) & mask
            )


cdef int _read_block(Cursor* c, uint32_t bits, uint32_t* out) except -1 nogil:
    cdef uint32_t i
    if bits > 32:
        return cursor_fail(c, b"packed numbers are too wide")
    cdef const uint8_t* packed = cursor_take(c, 16 * bits)
    if bits == 0:
        for i in range(<uint32_t>BLOCK):
            out[i] = 0
    else:
        _unpack(packed, bits, out)
    return 0


cdef int _full_blocks(
    Cursor* c, uint32_t blocks, int record, uint32_t* docs, uint32_t* counts, int64_t* before
) except -1 nogil:
    """Decode the table of blocks and the blocks; ``before`` becomes the last row of them."""
    cdef Cursor table
    cdef uint32_t block, i, width, bits, last
    cdef int64_t row = -1
    cdef uint64_t size = _read_stopped(c)
    cursor_sub(c, size, &table)
    for block in range(blocks):
        last = read_u32(&table)
        width = read_u8(&table)
        if (width & ~<uint32_t>WIDTH) != STRICT:
            return cursor_fail(&table, b"a block of rows is in a form that is not known")
        bits = read_u8(&table) if record != BASIC else 0
        if record == POSITIONS:
            read_u32(&table)
        if record != BASIC:
            read_u8(&table)
            read_u8(&table)
        _read_block(c, width & WIDTH, docs + block * BLOCK)
        for i in range(block * BLOCK, (block + 1) * BLOCK):
            row += <int64_t>docs[i] + 1
            docs[i] = <uint32_t>row
        if row != last:
            return cursor_fail(c, b"a block of rows does not end with its last row")
        _read_frequencies(c, bits, counts, block * BLOCK)
    if cursor_left(&table):
        return cursor_fail(&table, b"the table of blocks of rows is too long")
    before[0] = row
    return 0


cdef int _read_frequencies(
    Cursor* c, uint32_t bits, uint32_t* counts, uint32_t start
) except -1 nogil:
    cdef uint32_t i
    if counts == NULL:
        cursor_take(c, 16 * bits)
        return 0
    _read_block(c, bits, counts + start)
    for i in range(start, start + BLOCK):
        counts[i] += 1
    return 0


cdef int _decode(
    Cursor* c, uint32_t frequency, int record, uint32_t num_rows, uint32_t* docs, uint32_t* counts
) except -1 nogil:
    cdef uint32_t blocks = frequency // BLOCK
    cdef uint32_t i
    cdef int64_t row = 0
    cdef int64_t before = -1
    if blocks:
        _full_blocks(c, blocks, record, docs, counts, &row)
    for i in range(blocks * BLOCK, frequency):
        row += <int64_t>_read_stopped(c)
        if row >> 32:
            return cursor_fail(c, b"a row number is too large")
        docs[i] = <uint32_t>row
    if record != BASIC:
        for i in range(blocks * BLOCK, frequency):
            if counts == NULL:
                _read_stopped(c)
            else:
                counts[i] = <uint32_t>_read_stopped(c)
    for i in range(frequency):
        if <int64_t>docs[i] <= before or docs[i] >= num_rows:
            return cursor_fail(c, b"rows of a term do not ascend inside the split")
        before = docs[i]
    if cursor_left(c):
        return cursor_fail(c, b"the rows of a term do not end with their bytes")
    return 0


def _checked(frequency, int record, num_rows, length):
    if record not in (BASIC, FREQUENCIES, POSITIONS):
        raise ValueError(f"unknown record {record}")
    if not 0 < frequency <= num_rows:
        corrupt_at(0, b"a term has more rows than the split, or none")
    # a full block has at least five bytes in the table, a row of the rest one
    if length < 5 * (frequency // BLOCK) + frequency % BLOCK:
        corrupt_at(0, b"a term has fewer bytes than rows")


def decode_rows(const uint8_t[::1] data not None, frequency, int record, num_rows):
    """The rows of a term that ``frequency`` rows have, ascending, as uint32."""
    _checked(frequency, record, num_rows, data.shape[0])
    cdef Cursor c
    cdef uint32_t[::1] docs = np.empty(frequency, np.uint32)
    cdef uint32_t count = frequency
    cdef uint32_t rows = min(num_rows, 0xffffffff)
    cursor_over(&c, data, 0)
    with nogil:
        _decode(&c, count, record, rows, &docs[0], NULL)
    return np.asarray(docs)


def decode_positions(
    const uint8_t[::1] data not None, const uint8_t[::1] places not None, frequency, num_rows
):
    """``(rows, starts, positions)`` of a term: those of row ``i`` are between two starts."""
    _checked(frequency, POSITIONS, num_rows, data.shape[0])
    cdef Cursor c, widths
    cdef uint32_t count = frequency
    cdef uint32_t rows = min(num_rows, 0xffffffff)
    cdef uint32_t[::1] docs = np.empty(frequency, np.uint32)
    counts = np.empty(frequency, np.uint32)
    cdef uint32_t[::1] often = counts
    cursor_over(&c, data, 0)
    with nogil:
        _decode(&c, count, POSITIONS, rows, &docs[0], &often[0])
    ends = np.zeros(frequency + 1, np.int64)
    np.cumsum(counts, out=ends[1:])
    cdef int64_t[::1] starts = ends
    cdef uint64_t total = ends[frequency]
    # a position takes at least a byte, or is one of 128 that share one
    if total > <uint64_t>places.shape[0] * BLOCK:
        corrupt_at(0, b"a term has fewer bytes than positions")
    cdef uint32_t[::1] found = np.empty(total + 1, np.uint32)
    cursor_over(&c, places, 0)
    with nogil:
        _open_places(&c, &widths)
        _read_places(&c, &widths, total, &found[0])
        _add_up(&starts[0], count, &found[0])
    return np.asarray(docs), ends, np.asarray(found)[:total]


def check_lists(
    const uint8_t[::1] postings not None,
    const uint64_t[::1] lists not None,
    const uint32_t[::1] rows not None,
    int record,
    uint32_t num_rows,
    const uint8_t[::1] positions=None,
    const uint64_t[::1] places=None,
):
    """Decode all lists of a field, and its positions if given; what is wrong is an error.

    The lists of term ``i``, which ``rows[i]`` rows have, are between two of the ends.
    """
    cdef Cursor c, widths, whole
    cdef uint32_t[::1] docs = np.empty(max(num_rows, 1), np.uint32)
    cdef uint32_t[::1] counts = np.empty(max(num_rows, 1), np.uint32)
    cdef uint32_t[::1] found = np.empty(1, np.uint32)
    cdef uint64_t i, total
    cdef uint32_t k
    for i in range(<uint64_t>rows.shape[0]):
        _checked(rows[i], record, num_rows, lists[i + 1] - lists[i])
        cursor_over(&whole, postings, 0)
        cursor_skip(&whole, lists[i])
        cursor_sub(&whole, lists[i + 1] - lists[i], &c)
        with nogil:
            _decode(&c, rows[i], record, num_rows, &docs[0], &counts[0])
        if positions is None:
            continue
        cursor_over(&whole, positions, 0)
        cursor_skip(&whole, places[i])
        cursor_sub(&whole, places[i + 1] - places[i], &c)
        total = 0
        for k in range(rows[i]):
            total += counts[k]
        if total > (places[i + 1] - places[i]) * BLOCK:
            cursor_fail(&c, b"a term has fewer bytes than positions")
        if total > <uint64_t>found.shape[0]:
            found = np.empty(2 * total, np.uint32)
        with nogil:
            _open_places(&c, &widths)
            _read_places(&c, &widths, total, &found[0])


cdef int _open_places(Cursor* c, Cursor* widths) except -1 nogil:
    cdef uint64_t blocks = _read_stopped(c)
    return cursor_sub(c, blocks, widths)


cdef int _read_places(Cursor* c, Cursor* widths, uint64_t total, uint32_t* out) except -1 nogil:
    cdef uint64_t i
    cdef uint64_t full = total // BLOCK
    if cursor_left(widths) != full:
        return cursor_fail(widths, b"a term has a wrong number of blocks of positions")
    for i in range(full):
        _read_block(c, read_u8(widths), out + i * BLOCK)
    for i in range(full * BLOCK, total):
        out[i] = <uint32_t>_read_stopped(c)
    if cursor_left(c):
        return cursor_fail(c, b"the positions of a term do not end with their bytes")
    return 0


cdef void _add_up(const int64_t* starts, uint32_t rows, uint32_t* places) noexcept nogil:
    """Gaps inside each row become positions."""
    cdef uint32_t row
    cdef int64_t i
    for row in range(rows):
        for i in range(starts[row] + 1, starts[row + 1]):
            places[i] += places[i - 1]


def rows_in_both(const uint32_t[::1] few not None, const uint32_t[::1] many not None):
    """Rows in both ascending lists; short steps in the longer one, then halving."""
    out = np.empty(min(few.shape[0], many.shape[0]), np.uint32)
    cdef uint32_t[::1] found = out
    cdef size_t n = few.shape[0], m = many.shape[0], i, kept = 0
    cdef size_t low = 0, high, middle, step
    cdef uint32_t row
    with nogil:
        for i in range(n):
            row = few[i]
            step = 1
            high = low
            while high < m and many[high] < row:
                low = high + 1
                high += step
                step <<= 1
            high = min(high, m)
            while low < high:
                middle = (low + high) >> 1
                if many[middle] < row:
                    low = middle + 1
                else:
                    high = middle
            if low == m:
                break
            if many[low] == row:
                found[kept] = row
                kept += 1
    return out[:kept]


def rows_in_order(list terms not None):
    """Rows in which terms follow each other; each is ``(rows, starts, positions)``."""
    common = terms[0][0]
    for rows, _, _ in terms[1:]:
        few, many = (common, rows) if len(common) <= len(rows) else (rows, common)
        common = rows_in_both(few, many)
    if len(common) == 0 or len(terms) == 1:
        return common
    places = [np.searchsorted(rows, common) for rows, _, _ in terms]
    keep = np.zeros(len(common), np.uint8)
    cdef uint8_t[::1] kept = keep
    cdef size_t i
    lists = [_Places(terms[k][1], terms[k][2], places[k]) for k in range(len(terms))]
    for i in range(<size_t>len(common)):
        kept[i] = _follows(lists, i)
    return common[keep.view(np.bool_)]


cdef class _Places:
    """The positions of one term in the rows that all terms share."""

    cdef const int64_t[::1] starts
    cdef const uint32_t[::1] positions
    cdef const int64_t[::1] at

    def __cinit__(self, starts, positions, at):
        self.starts = starts
        self.positions = positions
        self.at = at


cdef bint _follows(list lists, size_t row) except -1:
    """Does some position of the first term have the others right behind it?"""
    cdef _Places first = lists[0]
    cdef _Places other
    cdef int64_t i, j, start = first.at[row]
    cdef size_t k
    cdef uint64_t wanted
    cdef bint missing
    for i in range(first.starts[start], first.starts[start + 1]):
        missing = False
        for k in range(1, <size_t>len(lists)):
            other = lists[k]
            wanted = <uint64_t>first.positions[i] + k
            missing = True
            for j in range(other.starts[other.at[row]], other.starts[other.at[row] + 1]):
                if other.positions[j] == wanted:
                    missing = False
                    break
            if missing:
                break
        if not missing:
            return True
    return False
