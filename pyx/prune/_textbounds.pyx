"""Bounds of string columns, and what a ``stats`` document says about them.

Strings are compared by their UTF-8 bytes. Their keys are eight bytes behind the beginning that all
strings of a column share; what the keys leave open, the texts decide.
"""

import numpy as np

from libc.string cimport memchr, memcmp

from indextables.native._bounds cimport Text, check_lengths, ordered_prefix, text_at
from indextables.native._cursor cimport (
    Cursor, cursor_fail, cursor_over, cursor_seek, cursor_take,
)
from indextables.native._typedefs cimport int8_t, int64_t, uint8_t, uint64_t


cdef int64_t first_at_least(Text t, uint8_t low, uint8_t high) noexcept nogil:
    """Where the first byte in [low, high] is, or the size."""
    cdef int64_t i
    for i in range(t.size):
        if low <= t.at[i] <= high:
            return i
    return t.size


cdef int64_t without_replacement(Text t, int64_t size) noexcept nogil:
    """Drop a last character that may stand for half of a surrogate pair: ``?`` or U+FFFD."""
    if size >= 1 and t.at[size - 1] == c"?":
        return size - 1
    if size >= 3 and memcmp(t.at + size - 3, b"\xef\xbf\xbd", 3) == 0:
        return size - 3
    return size


def text_ends(
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
    const uint8_t[::1] whole not None,
    const uint8_t[::1] byte_ordered not None,
    int64_t[::1] sizes not None,
    int64_t[::1] keys not None,
    uint8_t[::1] known not None,
    uint8_t[::1] is_open not None,
    bint upper=False,
):
    """How much of each text is a bound in byte order, and its key.

    An upper text that is not ``whole`` is a prefix: the bound is open, above everything that
    starts with it. A writer that compared UTF-16 units puts U+E000..U+FFFF above the
    supplementary planes; where it may have been one, the text ends before the first character
    on which the two orders differ.
    """
    cdef int64_t n = valid.shape[0], i, size
    cdef Cursor c
    cdef Text t
    check_lengths(n, offsets.shape[0], sizes.shape[0], keys.shape[0])
    check_lengths(n, n + 1, known.shape[0], is_open.shape[0])
    check_lengths(n, n + 1, whole.shape[0], byte_ordered.shape[0])
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            known[i] = 0
            is_open[i] = 0
            if not valid[i]:
                continue
            text_at(&c, offsets, i, &t)
            size = t.size
            if upper:
                is_open[i] = not whole[i]
                if not byte_ordered[i]:
                    size = without_replacement(t, first_at_least(t, 0xEE, 0xEF))
                    is_open[i] = is_open[i] or size < t.size
                if is_open[i] and size == 0:
                    continue
            elif not byte_ordered[i]:
                size = first_at_least(t, 0xF0, 0xFF)
            known[i] = 1
            sizes[i] = size
            keys[i] = ordered_prefix(t.at, size, is_open[i])


def common_prefix(
    const uint8_t[::1] data not None,
    const int64_t[::1] starts not None,
    const int64_t[::1] sizes not None,
    const uint8_t[::1] known not None,
    const uint8_t[::1] seed not None,
):
    """How many bytes of ``seed`` every known text starts with."""
    cdef int64_t n = known.shape[0], i, k, shared = seed.shape[0]
    cdef Cursor c
    cdef const uint8_t* text
    check_lengths(n, n + 1, starts.shape[0], sizes.shape[0])
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            if not known[i] or shared == 0:
                continue
            if starts[i] < 0 or sizes[i] < 0:
                cursor_fail(&c, b"text offsets go backwards")
            shared = min(shared, sizes[i])
            cursor_seek(&c, <uint64_t>starts[i])
            text = cursor_take(&c, <uint64_t>shared)
            for k in range(shared):
                if text[k] != seed[k]:
                    shared = k
                    break
    return shared


def text_keys(
    const uint8_t[::1] data not None,
    const int64_t[::1] starts not None,
    const int64_t[::1] sizes not None,
    const uint8_t[::1] known not None,
    const uint8_t[::1] is_open not None,
    int64_t skip,
    int64_t[::1] keys not None,
):
    """Keys of the known texts without their first ``skip`` bytes, which all of them share."""
    cdef int64_t n = known.shape[0], i
    cdef Cursor c
    cdef const uint8_t* text
    check_lengths(n, n + 1, starts.shape[0], sizes.shape[0])
    check_lengths(n, n + 1, keys.shape[0], is_open.shape[0])
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            if not known[i]:
                continue
            if skip < 0 or starts[i] < 0 or sizes[i] < skip:
                cursor_fail(&c, b"a text is shorter than what all texts share")
            cursor_seek(&c, <uint64_t>starts[i])
            text = cursor_take(&c, <uint64_t>sizes[i])
            keys[i] = ordered_prefix(text + skip, sizes[i] - skip, is_open[i])


def prefix_key(const uint8_t[::1] text not None, bint to_end=False):
    """The key of one string; ``to_end`` is the place after everything that starts with it."""
    return ordered_prefix(&text[0] if text.shape[0] else NULL, text.shape[0], to_end)


# -- the stats document -------------------------------------------------------------------------

cdef int64_t find_after(Text t, int64_t start, const uint8_t* what, int64_t size) noexcept nogil:
    """The place behind the next ``what``, or -1."""
    cdef int64_t i = start
    cdef const uint8_t* found
    while i + size <= t.size:
        found = <const uint8_t*>memchr(t.at + i, what[0], t.size - i)
        if found == NULL:
            return -1
        i = found - t.at
        if i + size <= t.size and memcmp(t.at + i, what, size) == 0:
            return i + size
        i += 1
    return -1


cdef int64_t skip_blanks(Text t, int64_t i) noexcept nogil:
    while i < t.size and (t.at[i] == c" " or t.at[i] == c"\n" or t.at[i] == c"\t"):
        i += 1
    return i


cdef int64_t value_of(Text t, int64_t start, const uint8_t* key, int64_t size) noexcept nogil:
    """Where the value of the next ``"key" :`` begins, or -1."""
    cdef int64_t i = find_after(t, start, key, size)
    while i >= 0:
        i = skip_blanks(t, i)
        if i < t.size and t.at[i] == c":":
            return skip_blanks(t, i + 1)
        i = find_after(t, i, key, size)
    return -1


cdef int listed(Text t, int64_t i, const uint8_t* name, int64_t size) noexcept nogil:
    """Is the quoted ``name`` in the array at ``i``: 1 yes, 0 no, -1 not an array of plain texts."""
    cdef int64_t start
    if i >= t.size or t.at[i] != c"[":
        return -1
    i = skip_blanks(t, i + 1)
    if i < t.size and t.at[i] == c"]":
        return 0
    while i < t.size and t.at[i] == c'"':
        start = i
        i += 1
        while i < t.size and t.at[i] != c'"':
            if t.at[i] == c"\\":
                return -1
            i += 1
        if i >= t.size:
            return -1
        i += 1
        if i - start == size and memcmp(t.at + start, name, size) == 0:
            return 1
        i = skip_blanks(t, i)
        if i < t.size and t.at[i] == c"]":
            return 0
        if i >= t.size or t.at[i] != c",":
            return -1
        i = skip_blanks(t, i + 1)
    return -1


cdef int8_t truncation_in(Text t, const uint8_t* name, int64_t size) noexcept nogil:
    """``stats.truncated`` names the column: 1; leaves it out: 0; absent or unclear: -1."""
    cdef int64_t i = value_of(t, 0, b'"truncated"', 11)
    cdef int found
    while i >= 0:
        if i < t.size and t.at[i] == c"[":
            found = listed(t, i, name, size)
            return <int8_t>found
        i = value_of(t, i, b'"truncated"', 11)
    return -1


def scan_truncated(
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
    bytes name not None,
):
    """For each ``stats`` document: was the column's maximum cut? 1 yes, 0 no, -1 unknown."""
    cdef int64_t n = valid.shape[0], i
    cdef const uint8_t[::1] quoted = b'"' + name + b'"'
    cdef Cursor c
    cdef Text t
    result = np.full(n, -1, np.int8)
    cdef int8_t[::1] out = result
    check_lengths(n, offsets.shape[0], n, n)
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            if valid[i]:
                text_at(&c, offsets, i, &t)
                out[i] = truncation_in(t, &quoted[0], quoted.shape[0])
    return result


def scan_loose(
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
):
    """For each ``stats`` document: does it say ``"tightBounds": false``?"""
    cdef int64_t n = valid.shape[0], i, at
    cdef Cursor c
    cdef Text t
    result = np.zeros(n, np.uint8)
    cdef uint8_t[::1] out = result
    check_lengths(n, offsets.shape[0], n, n)
    cursor_over(&c, data, 0)
    with nogil:
        for i in range(n):
            if not valid[i]:
                continue
            text_at(&c, offsets, i, &t)
            at = value_of(t, 0, b'"tightBounds"', 13)
            out[i] = at >= 0 and at + 5 <= t.size and memcmp(t.at + at, b"false", 5) == 0
    return result
