"""Sets of row numbers as portable 64-bit Roaring bitmaps, the form Delta and Iceberg share.

A set is a number of 32-bit bitmaps, each after the high half of its rows. A 32-bit bitmap is a list
of containers, one for each 65,536 rows that hold any: an array of up to 4,096 low halves, 8 KiB of
bits, or runs. The bytes are walked twice: first to add up what the containers say they hold, which
is compared with what the caller allows before anything is allocated, then to list the rows. Rows
must ascend and counts must be right; whatever is not is ``CorruptFileError``.
"""

import numpy as np

from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_left, cursor_over, cursor_skip, cursor_take,
    it_le16, it_le32, it_le64, read_u16, read_u32, read_u64,
)
from indextables.native._typedefs cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

cdef extern from *:
    int trailing_zeros "__builtin_ctzll"(unsigned long long word) noexcept nogil
    int count_ones "__builtin_popcountll"(unsigned long long word) noexcept nogil

cdef uint32_t PLAIN = 12346
cdef uint32_t WITH_RUNS = 12347
cdef uint32_t LARGEST_ARRAY = 4096
cdef uint32_t BITMAP_BYTES = 8192
cdef uint32_t OFFSETS_FROM = 4


# -- reading --------------------------------------------------------------------------------------


cdef uint64_t _array(
    Cursor* c, uint64_t base, uint32_t count, uint64_t* out
) except? 18446744073709551615 nogil:
    cdef const uint8_t* raw = cursor_take(c, 2 * <uint64_t>count)
    cdef uint16_t low
    cdef int64_t last = -1
    cdef uint32_t i
    if out == NULL:
        return count
    for i in range(count):
        memcpy(&low, raw + 2 * i, 2)
        low = it_le16(low)
        if <int64_t>low <= last:
            cursor_fail(c, b"rows of a container do not ascend")
        last = low
        out[i] = base | low
    return count


cdef uint64_t _bits(
    Cursor* c, uint64_t base, uint32_t count, uint64_t* out
) except? 18446744073709551615 nogil:
    cdef const uint8_t* raw = cursor_take(c, BITMAP_BYTES)
    cdef uint64_t word
    cdef uint32_t i, n = 0
    if out == NULL:
        return count
    for i in range(BITMAP_BYTES // 8):
        memcpy(&word, raw + 8 * i, 8)
        word = it_le64(word)
        if n + <uint32_t>count_ones(word) > count:
            cursor_fail(c, b"a bitmap holds more rows than it says")
        while word:
            out[n] = base | (64 * <uint64_t>i + <uint64_t>trailing_zeros(word))
            n += 1
            word &= word - 1
    if n != count:
        cursor_fail(c, b"a bitmap holds fewer rows than it says")
    return count


cdef uint64_t _runs(
    Cursor* c, uint64_t base, uint32_t count, uint64_t* out
) except? 18446744073709551615 nogil:
    cdef uint32_t runs = read_u16(c)
    cdef const uint8_t* raw = cursor_take(c, 4 * <uint64_t>runs)
    cdef uint16_t low, more
    cdef uint64_t n = 0, k
    cdef uint32_t i
    cdef int64_t last = -1
    for i in range(runs):
        memcpy(&low, raw + 4 * i, 2)
        memcpy(&more, raw + 4 * i + 2, 2)
        low = it_le16(low)
        more = it_le16(more)
        if <int64_t>low <= last or <uint32_t>low + more > 65535:
            cursor_fail(c, b"runs of a container do not ascend")
        last = <int64_t>low + more
        if n + more + 1 > count:
            cursor_fail(c, b"runs hold more rows than they say")
        if out != NULL:
            for k in range(<uint64_t>more + 1):
                out[n + k] = base | (low + k)
        n += <uint64_t>more + 1
    if n != count:
        cursor_fail(c, b"runs hold fewer rows than they say")
    return count


cdef uint64_t _bitmap32(
    Cursor* c, uint64_t high, uint64_t* out
) except? 18446744073709551615 nogil:
    """One 32-bit bitmap; returns how many rows it holds."""
    cdef uint32_t cookie = read_u32(c)
    cdef uint32_t containers = 0, i, count
    cdef const uint8_t* has_runs = NULL
    cdef const uint8_t* header
    cdef uint16_t key, less
    cdef uint64_t n = 0, base, found
    cdef int64_t last = -1
    if cookie == PLAIN:
        containers = read_u32(c)
    elif cookie & 65535 == WITH_RUNS:
        containers = (cookie >> 16) + 1
        has_runs = cursor_take(c, (containers + 7) // 8)
    else:
        cursor_fail(c, b"not a Roaring bitmap in its portable form")
    if containers > 65536:
        cursor_fail(c, b"a Roaring bitmap of too many containers")
    header = cursor_take(c, 4 * <uint64_t>containers)
    if has_runs == NULL or containers >= OFFSETS_FROM:
        cursor_skip(c, 4 * <uint64_t>containers)
    for i in range(containers):
        memcpy(&key, header + 4 * i, 2)
        memcpy(&less, header + 4 * i + 2, 2)
        key = it_le16(key)
        count = <uint32_t>it_le16(less) + 1
        if <int64_t>key <= last:
            cursor_fail(c, b"containers do not ascend")
        last = key
        base = high | (<uint64_t>key << 16)
        if has_runs != NULL and (has_runs[i // 8] >> (i % 8)) & 1:
            found = _runs(c, base, count, NULL if out == NULL else out + n)
        elif count <= LARGEST_ARRAY:
            found = _array(c, base, count, NULL if out == NULL else out + n)
        else:
            found = _bits(c, base, count, NULL if out == NULL else out + n)
        n += found
    return n


cdef uint64_t _walk(
    Cursor* c, uint64_t* out, uint64_t most
) except? 18446744073709551615 nogil:
    """All bitmaps; returns how many rows they hold, at most ``most``."""
    cdef uint64_t bitmaps = read_u64(c)
    cdef uint64_t _i, n = 0, key
    cdef int64_t last = -1
    if bitmaps > cursor_left(c) // 12:
        cursor_fail(c, b"more bitmaps than there are bytes for")
    for _i in range(bitmaps):
        key = read_u32(c)
        if <int64_t>key <= last:
            cursor_fail(c, b"bitmaps do not ascend")
        last = <int64_t>key
        n += _bitmap32(c, key << 32, NULL if out == NULL else out + n)
        if n > most:
            cursor_fail(c, b"more rows than there can be")
    if cursor_left(c):
        cursor_fail(c, b"bytes after the last bitmap")
    return n


def decode_rows(const uint8_t[::1] data not None, uint64_t most):
    """The rows of a set, ascending; ``CorruptFileError`` where there are more than ``most``."""
    cdef Cursor c
    cdef uint64_t count
    cdef uint64_t[::1] view
    cursor_over(&c, data, 0)
    with nogil:
        count = _walk(&c, NULL, most)
    out = np.empty(count, np.uint64)
    if count:
        view = out
        cursor_over(&c, data, 0)
        with nogil:
            _walk(&c, &view[0], most)
    return out


# -- writing --------------------------------------------------------------------------------------


cdef struct Container:
    size_t first        # its rows in the input
    uint32_t count
    uint32_t runs
    uint64_t key        # the row's bits above the lowest sixteen


cdef inline uint64_t _array_or_bits(const Container* k) noexcept nogil:
    return 2 * <uint64_t>k.count if k.count <= LARGEST_ARRAY else BITMAP_BYTES


cdef inline bint _as_runs(const Container* k) noexcept nogil:
    return 2 + 4 * <uint64_t>k.runs < _array_or_bits(k)


cdef inline uint64_t _size(const Container* k) noexcept nogil:
    return 2 + 4 * <uint64_t>k.runs if _as_runs(k) else _array_or_bits(k)


cdef inline uint8_t* _put16(uint8_t* at, uint16_t value) noexcept nogil:
    value = it_le16(value)
    memcpy(at, &value, 2)
    return at + 2


cdef inline uint8_t* _put32(uint8_t* at, uint32_t value) noexcept nogil:
    value = it_le32(value)
    memcpy(at, &value, 4)
    return at + 4


cdef uint8_t* _put_container(
    uint8_t* at, const Container* k, const uint64_t* rows
) noexcept nogil:
    cdef uint32_t i, start
    cdef uint16_t low
    rows += k.first
    if _as_runs(k):
        at = _put16(at, <uint16_t>k.runs)
        start = 0
        for i in range(1, k.count + 1):
            if i == k.count or rows[i] != rows[i - 1] + 1:
                at = _put16(at, <uint16_t>rows[start])
                at = _put16(at, <uint16_t>(i - 1 - start))
                start = i
        return at
    if k.count <= LARGEST_ARRAY:
        for i in range(k.count):
            at = _put16(at, <uint16_t>rows[i])
        return at
    memset(at, 0, BITMAP_BYTES)
    for i in range(k.count):
        low = <uint16_t>rows[i]
        at[low >> 3] |= <uint8_t>(1 << (low & 7))
    return at + BITMAP_BYTES


cdef list _containers(const uint64_t[::1] rows):
    """``(first, count, runs, key)`` of each container; rows must ascend."""
    cdef size_t i, n = rows.shape[0], first = 0
    cdef uint32_t runs = 1
    found = []
    for i in range(1, n + 1):
        if i < n and rows[i] <= rows[i - 1]:
            raise ValueError("rows do not ascend")
        if i == n or rows[i] >> 16 != rows[i - 1] >> 16:
            found.append((first, i - first, runs, rows[i - 1] >> 16))
            first = i
            runs = 1
        elif rows[i] != rows[i - 1] + 1:
            runs += 1
    return found


cdef bytes _bitmap_bytes(list members, const uint64_t[::1] rows):
    """One 32-bit bitmap of containers that share their high half."""
    cdef uint32_t n = len(members), i
    cdef Container k
    cdef bint with_runs = False
    cdef uint64_t size = 0
    for first, count, runs, key in members:
        k = Container(first, count, runs, key)
        with_runs = with_runs or _as_runs(&k)
        size += _size(&k)
    cdef uint64_t head = 4 + (n + 7) // 8 if with_runs else 8
    cdef bint with_offsets = not with_runs or n >= OFFSETS_FROM
    cdef uint64_t body = head + 4 * n + (4 * n if with_offsets else 0)
    out = bytearray(body + size)
    cdef uint8_t[::1] view = out
    cdef uint8_t* start = &view[0]
    cdef uint8_t* at = start
    if with_runs:
        _put32(at, WITH_RUNS | ((n - 1) << 16))
    else:
        _put32(_put32(at, PLAIN), n)
    cdef uint64_t offset = body
    for i in range(n):
        first, count, runs, key = members[i]
        k = Container(first, count, runs, key)
        if _as_runs(&k):
            start[4 + i // 8] |= <uint8_t>(1 << (i % 8))
        _put16(_put16(start + head + 4 * i, <uint16_t>(k.key & 65535)), <uint16_t>(k.count - 1))
        if with_offsets:
            _put32(start + head + 4 * n + 4 * i, <uint32_t>offset)
        _put_container(start + offset, &k, &rows[0])
        offset += _size(&k)
    return bytes(out)


def encode_rows(const uint64_t[::1] rows not None):
    """The portable form of ascending rows, each container in its smallest form."""
    by_high = {}
    if rows.shape[0]:
        for member in _containers(rows):
            by_high.setdefault(member[3] >> 16, []).append(member)
    parts = [len(by_high).to_bytes(8, "little")]
    for high, members in by_high.items():
        parts += [int(high).to_bytes(4, "little"), _bitmap_bytes(members, rows)]
    return b"".join(parts)
