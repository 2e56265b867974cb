"""Verdicts over many splits at once.

A split's values of a column lie in an interval; a leaf of the predicate is a set of ranges. Two
relations decide everything: *disjoint* (no value of the split is in the ranges) and *inside*
(every value is). ``on_disjoint`` and ``on_inside`` say what they mean for the leaf at hand; a
``MUST_MATCH`` holds only where no row is NULL, and a split without any value cannot match.

Kernels look at the splits in ``selection`` (indices, ascending) or at all of them when it is
``None``; the verdict of ``selection[j]`` is ``result[j]``. Zones summarise runs of splits, so that
a selective plan over a million splits reads a thousand numbers first.

Where a miss excludes a split, a first pass without branches leaves those that touch the hull of
all ranges; only they are looked at closely. Where splits are in no order, this is the difference
between reading memory and guessing.
"""

import numpy as np

cimport cython
from libc.stdint cimport INT64_MAX, INT64_MIN
from libc.stdlib cimport calloc, free
from libc.string cimport memcpy

from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint64_t


cdef inline uint8_t weaken(uint8_t verdict, uint8_t facts) noexcept nogil:
    """A proof for every value is a proof for every row only where no row is NULL."""
    return MAY_MATCH if verdict == MUST_MATCH and not facts & NO_NULL else verdict


cdef int check_selection(const int32_t[::1] selection, int64_t n) except -1:
    """Every index is one of the ``n`` splits."""
    cdef int64_t j
    cdef int outside = 0
    with nogil:
        for j in range(selection.shape[0]):
            outside |= (selection[j] < 0) | (selection[j] >= n)
    if outside:
        raise IndexError("selection reaches outside the splits")
    return 0


cdef inline int64_t skip_excluded(const uint8_t[::1] verdicts, int64_t j) noexcept nogil:
    """The next position from ``j`` on that is not excluded, eight at a time."""
    cdef int64_t m = verdicts.shape[0]
    cdef uint64_t word = 0
    if j < m and verdicts[j] != CANNOT_MATCH:
        return j
    while j + 8 <= m:
        memcpy(&word, &verdicts[j], 8)
        if word:
            break
        j += 8
    while j < m and verdicts[j] == CANNOT_MATCH:
        j += 1
    return j


cdef void touch_hull(
    const int64_t[::1] lows, const int64_t[::1] highs, const int32_t[::1] selection,
    bint everything, int64_t first, int64_t last, uint8_t[::1] out,
) noexcept nogil:
    """``MAY_MATCH`` where an interval of keys touches [first, last], else ``CANNOT_MATCH``."""
    cdef int64_t j, i
    if everything:
        for i in range(out.shape[0]):
            out[i] = <uint8_t>((highs[i] >= first) & (lows[i] <= last))
    else:
        for j in range(out.shape[0]):
            i = selection[j]
            out[j] = <uint8_t>((highs[i] >= first) & (lows[i] <= last))


# -- intervals of keys --------------------------------------------------------------------------

cdef inline int64_t first_not_below(const int64_t[::1] ends, int64_t low) noexcept nogil:
    """The first range whose upper end is at least ``low``."""
    cdef int64_t start = 0, stop = ends.shape[0], middle
    while start < stop:
        middle = (start + stop) // 2
        if ends[middle] < low:
            start = middle + 1
        else:
            stop = middle
    return start


cdef inline uint8_t relate_many(
    int64_t low, int64_t high, uint8_t facts,
    const int64_t[::1] starts, const int64_t[::1] ends,
    uint8_t on_disjoint, uint8_t on_inside,
) noexcept nogil:
    cdef int64_t k, last = ends.shape[0] - 1
    if facts & NOTHING:
        return CANNOT_MATCH
    if last < 0 or high < starts[0] or low > ends[last]:
        return weaken(on_disjoint, facts)
    k = first_not_below(ends, low)
    if starts[k] > high:
        return weaken(on_disjoint, facts)
    if low >= starts[k] and high <= ends[k]:
        return weaken(on_inside, facts)
    return MAY_MATCH


def relate_ranges(
    const int64_t[::1] lows not None,
    const int64_t[::1] highs not None,
    const uint8_t[::1] facts not None,
    const int32_t[::1] selection,
    const int64_t[::1] starts not None,
    const int64_t[::1] ends not None,
    uint8_t on_disjoint,
    uint8_t on_inside,
):
    """Verdicts of ``value in [starts[0], ends[0]] or ...``; ranges ascend and do not touch."""
    cdef int64_t n = facts.shape[0], m, j, i
    cdef int64_t ranges = starts.shape[0]
    cdef bint everything = selection is None
    if lows.shape[0] != n or highs.shape[0] != n or ends.shape[0] != ranges:
        raise ValueError("columns differ in length")
    if not everything:
        check_selection(selection, n)
    m = n if everything else selection.shape[0]
    result = np.full(m, MAY_MATCH, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        if on_disjoint == CANNOT_MATCH and ranges > 0:
            touch_hull(lows, highs, selection, everything, starts[0], ends[ranges - 1], out)
        j = skip_excluded(out, 0)
        while j < m:
            i = j if everything else selection[j]
            out[j] = relate_many(
                lows[i], highs[i], facts[i], starts, ends, on_disjoint, on_inside
            )
            j = skip_excluded(out, j + 1)
    return result


# -- intervals of strings -----------------------------------------------------------------------

@cython.final
cdef class TextRanges:
    """Ranges between cuts, ascending and disjoint; ``None`` for a cut is an infinite end."""

    cdef Cut* cuts
    cdef list texts
    cdef readonly int64_t count
    cdef bint from_bottom
    cdef bint to_top
    cdef int64_t first_key          # keys of the outermost ends
    cdef int64_t last_key

    def __cinit__(self, list ends not None):
        self.cuts = NULL
        self.count = len(ends) // 2
        if len(ends) % 2 or self.count == 0:
            raise ValueError("ranges have two ends each, and there is at least one")
        self.cuts = <Cut*>calloc(len(ends), sizeof(Cut))
        if self.cuts == NULL:
            raise MemoryError

    def __init__(self, list ends not None):
        """``ends``: low, high, low, high, ..., each ``(text, kind, key)``; see ``CutKind``."""
        cdef int64_t i, last = len(ends) - 1
        cdef const uint8_t[::1] view
        self.from_bottom = ends[0] is None
        self.to_top = ends[last] is None
        self.texts = []
        for i in range(len(ends)):
            if ends[i] is None:
                if 0 < i < last:
                    raise ValueError("only the outermost ends can be infinite")
                continue
            text, kind, key = ends[i]
            view = text
            self.texts.append(text)
            self.cuts[i].size = view.shape[0]
            self.cuts[i].key = key
            self.cuts[i].kind = kind
            if view.shape[0] > 0:
                self.cuts[i].text = &view[0]
        self.first_key = INT64_MIN if self.from_bottom else self.cuts[0].key
        self.last_key = INT64_MAX if self.to_top else self.cuts[last].key

    def __dealloc__(self):
        free(self.cuts)


@cython.final
cdef class TextColumn:
    """Lower or upper texts: ``data[starts[i]:starts[i] + sizes[i]]``, and their keys.

    The key of a text that is not known is the lowest or the highest there is.
    """

    cdef const uint8_t[::1] data
    cdef const int64_t[::1] starts
    cdef const int64_t[::1] sizes
    cdef const int64_t[::1] keys

    def __init__(
        self,
        const uint8_t[::1] data not None,
        const int64_t[::1] starts not None,
        const int64_t[::1] sizes not None,
        const int64_t[::1] keys not None,
    ):
        cdef int64_t i, n = starts.shape[0]
        if sizes.shape[0] != n or keys.shape[0] != n:
            raise ValueError("columns differ in length")
        for i in range(n):
            if starts[i] < 0 or sizes[i] < 0 or sizes[i] > data.shape[0] - starts[i]:
                raise ValueError("a text lies outside its buffer")
        self.data, self.starts, self.sizes, self.keys = data, starts, sizes, keys

    cdef inline void cut_at(self, int64_t i, int kind, Cut* out) noexcept nogil:
        out.size = self.sizes[i]
        out.text = &self.data[self.starts[i]] if out.size > 0 else NULL
        out.key = self.keys[i]
        out.kind = kind


cdef inline bint below_high(const Cut* cut, TextRanges ranges, int64_t k) noexcept nogil:
    """Is the cut strictly below the upper end of range ``k``?"""
    if ranges.to_top and k == ranges.count - 1:
        return True
    return compare_cuts(cut, &ranges.cuts[2 * k + 1]) < 0


cdef int64_t range_above(const Cut* low, TextRanges ranges) noexcept nogil:
    """The first range whose upper end is above ``low``."""
    cdef int64_t start = 0, stop = ranges.count, middle
    while start < stop:
        middle = (start + stop) // 2
        if below_high(low, ranges, middle):
            stop = middle
        else:
            start = middle + 1
    return start


cdef uint8_t relate_text(
    TextColumn lows, TextColumn highs, uint8_t facts, int64_t i,
    TextRanges ranges, uint8_t on_disjoint, uint8_t on_inside,
) noexcept nogil:
    cdef Cut low, high
    cdef int64_t k = 0
    cdef bint starts_inside, ends_inside, unbounded
    if facts & NOTHING:
        return CANNOT_MATCH
    lows.cut_at(i, BEFORE, &low)
    highs.cut_at(i, END if facts & HIGH_OPEN else AFTER, &high)
    if facts & HAS_LOW:
        k = range_above(&low, ranges)
        if k == ranges.count:
            return weaken(on_disjoint, facts)
    unbounded = ranges.from_bottom and k == 0
    if not unbounded and facts & HAS_HIGH and compare_cuts(&high, &ranges.cuts[2 * k]) <= 0:
        return weaken(on_disjoint, facts)
    starts_inside = unbounded or (
        facts & HAS_LOW and compare_cuts(&ranges.cuts[2 * k], &low) <= 0
    )
    ends_inside = (ranges.to_top and k == ranges.count - 1) or (
        facts & HAS_HIGH and compare_cuts(&high, &ranges.cuts[2 * k + 1]) <= 0
    )
    return weaken(on_inside, facts) if starts_inside and ends_inside else MAY_MATCH


def relate_texts(
    TextColumn lows not None,
    TextColumn highs not None,
    const uint8_t[::1] facts not None,
    const int32_t[::1] selection,
    TextRanges ranges not None,
    uint8_t on_disjoint,
    uint8_t on_inside,
):
    """Verdicts of ``string in ranges``, all in UTF-8 byte order."""
    cdef int64_t n = facts.shape[0], m, j, i
    cdef bint everything = selection is None
    if lows.starts.shape[0] != n or highs.starts.shape[0] != n:
        raise ValueError("columns differ in length")
    if not everything:
        check_selection(selection, n)
    m = n if everything else selection.shape[0]
    result = np.full(m, MAY_MATCH, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        if on_disjoint == CANNOT_MATCH:
            touch_hull(
                lows.keys, highs.keys, selection, everything,
                ranges.first_key, ranges.last_key, out,
            )
        j = skip_excluded(out, 0)
        while j < m:
            i = j if everything else selection[j]
            out[j] = relate_text(lows, highs, facts[i], i, ranges, on_disjoint, on_inside)
            j = skip_excluded(out, j + 1)
    return result


# -- nulls and codes ----------------------------------------------------------------------------

cdef inline uint8_t null_verdict(uint8_t facts, bint is_null) noexcept nogil:
    if facts & EMPTY:
        return CANNOT_MATCH
    if facts & ALL_NULL:
        return MUST_MATCH if is_null else CANNOT_MATCH
    if facts & NO_NULL:
        return CANNOT_MATCH if is_null else MUST_MATCH
    return MAY_MATCH


def test_nulls(const uint8_t[::1] facts not None, const int32_t[::1] selection, bint is_null):
    """Verdicts of ``IS NULL`` or ``IS NOT NULL``."""
    cdef int64_t n = facts.shape[0], m, j
    cdef bint everything = selection is None
    if not everything:
        check_selection(selection, n)
    m = n if everything else selection.shape[0]
    result = np.empty(m, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        for j in range(m):
            out[j] = null_verdict(facts[j if everything else selection[j]], is_null)
    return result


def gather(
    const int32_t[::1] codes not None,
    const uint8_t[::1] table not None,
    const int32_t[::1] selection,
):
    """The verdict of each split's code; a code outside the table may match."""
    cdef int64_t n = codes.shape[0], m, j, size = table.shape[0]
    cdef int32_t code
    cdef bint everything = selection is None
    if not everything:
        check_selection(selection, n)
    m = n if everything else selection.shape[0]
    result = np.empty(m, np.uint8)
    cdef uint8_t[::1] out = result
    with nogil:
        for j in range(m):
            code = codes[j if everything else selection[j]]
            out[j] = table[code] if 0 <= code < size else MAY_MATCH
    return result


# -- selections ---------------------------------------------------------------------------------

def narrow(const int32_t[::1] selection, const uint8_t[::1] verdicts not None):
    """The indices that are left when what cannot match is dropped."""
    cdef int64_t m = verdicts.shape[0], j, kept = 0
    cdef bint everything = selection is None
    if not everything and selection.shape[0] != m:
        raise ValueError("columns differ in length")
    with nogil:
        for j in range(m):
            kept += verdicts[j] != CANNOT_MATCH
    result = np.empty(kept, np.int32)
    cdef int32_t[::1] out = result
    kept = 0
    with nogil:
        j = skip_excluded(verdicts, 0)
        while j < m:
            out[kept] = <int32_t>j if everything else selection[j]
            kept += 1
            j = skip_excluded(verdicts, j + 1)
    return result


# -- zones --------------------------------------------------------------------------------------

def zone_bounds(
    const int64_t[::1] lows not None,
    const int64_t[::1] highs not None,
    const uint8_t[::1] facts not None,
    int64_t size,
):
    """The interval and the shared facts of each run of ``size`` splits."""
    cdef int64_t n = facts.shape[0], zones, z, i
    cdef uint8_t no_null, nothing
    if size < 1 or lows.shape[0] != n or highs.shape[0] != n:
        raise ValueError("columns differ in length")
    zones = (n + size - 1) // size
    low_array = np.full(zones, INT64_MAX, np.int64)
    high_array = np.full(zones, INT64_MIN, np.int64)
    fact_array = np.zeros(zones, np.uint8)
    cdef int64_t[::1] low = low_array
    cdef int64_t[::1] high = high_array
    cdef uint8_t[::1] fact = fact_array
    with nogil:
        for z in range(zones):
            no_null, nothing = NO_NULL, ALL_NULL
            for i in range(z * size, min(n, (z + 1) * size)):
                if not facts[i] & (NO_NULL | EMPTY):
                    no_null = 0
                if facts[i] & NOTHING:
                    continue
                nothing = 0
                low[z] = min(low[z], lows[i])
                high[z] = max(high[z], highs[i])
            fact[z] = no_null if not nothing else nothing if not no_null else EMPTY
    return low_array, high_array, fact_array


def zone_codes(const int32_t[::1] codes not None, int64_t size):
    """The lowest and the highest code of each run of ``size`` splits."""
    cdef int64_t n = codes.shape[0], zones, i
    if size < 1:
        raise ValueError("a zone has at least one split")
    zones = (n + size - 1) // size
    low_array = np.full(zones, 2147483647, np.int32)
    high_array = np.full(zones, -1, np.int32)
    cdef int32_t[::1] low = low_array
    cdef int32_t[::1] high = high_array
    with nogil:
        for i in range(n):
            low[i // size] = min(low[i // size], codes[i])
            high[i // size] = max(high[i // size], codes[i])
    return low_array, high_array


def gather_zones(
    const int32_t[::1] lows not None,
    const int32_t[::1] highs not None,
    const uint8_t[::1] table not None,
):
    """``MAY_MATCH`` for each zone whose span of codes holds one that is not excluded."""
    cdef int64_t zones = lows.shape[0], size = table.shape[0], z, c
    before = np.zeros(size + 1, np.int64)
    cdef int64_t[::1] count = before
    result = np.empty(zones, np.uint8)
    cdef uint8_t[::1] out = result
    if highs.shape[0] != zones:
        raise ValueError("columns differ in length")
    with nogil:
        for c in range(size):
            count[c + 1] = count[c] + (table[c] != CANNOT_MATCH)
        for z in range(zones):
            out[z] = MAY_MATCH
            if 0 <= lows[z] <= highs[z] < size and count[highs[z] + 1] == count[lows[z]]:
                out[z] = CANNOT_MATCH
    return result


def expand_zones(const uint8_t[::1] verdicts not None, int64_t n, int64_t size):
    """The splits of the zones that are not excluded; ``None`` when that is all of them."""
    cdef int64_t zones = verdicts.shape[0], z, i, kept = 0
    if size < 1 or zones != (n + size - 1) // size:
        raise ValueError("zones do not cover the splits")
    for z in range(zones):
        if verdicts[z] != CANNOT_MATCH:
            kept += min(n, (z + 1) * size) - z * size
    if kept == n:
        return None
    result = np.empty(kept, np.int32)
    cdef int32_t[::1] out = result
    kept = 0
    with nogil:
        for z in range(zones):
            if verdicts[z] == CANNOT_MATCH:
                continue
            for i in range(z * size, min(n, (z + 1) * size)):
                out[kept] = <int32_t>i
                kept += 1
    return result
