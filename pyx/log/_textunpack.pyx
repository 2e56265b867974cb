"""Skeletons and slots back to texts, and the order of path hashes."""

from libc.stdlib cimport calloc, free

import numpy as np

from indextables.native._textpack cimport INTEGER_SLOT, NULL_LENGTH, UUID_SLOT
from indextables.native._textslots cimport decimal_length, put_integer, put_uuid
from indextables.native._typedefs cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

from indextables.errors import CorruptFileError


cdef int _measure(
    const uint8_t[::1] arena, const uint32_t[::1] bounds, const uint16_t[::1] codes,
    const uint8_t[::1] valid, const uint64_t[:, ::1] slots, int64_t[::1] offsets
) except -1 nogil:
    cdef size_t row
    cdef size_t i
    cdef uint32_t code
    cdef uint32_t j
    cdef int64_t total = 0
    cdef int64_t size
    cdef size_t n = valid.shape[0]
    for row in range(n):
        if valid[row]:
            code = codes[row]
            j = 0
            size = 0
            for i in range(bounds[code], bounds[code + 1]):
                if arena[i] == INTEGER_SLOT:
                    size += decimal_length(slots[j, row])
                    j += 1
                elif arena[i] == UUID_SLOT:
                    size += 36
                    j += 2
                else:
                    size += 1
            total += size
        offsets[row + 1] = total
    return 0


cdef int _render(
    const uint8_t[::1] arena, const uint32_t[::1] bounds, const uint16_t[::1] codes,
    const uint8_t[::1] valid, const uint64_t[:, ::1] slots, uint8_t* out
) except -1 nogil:
    cdef size_t row
    cdef size_t i
    cdef uint32_t code
    cdef uint32_t j
    cdef size_t n = valid.shape[0]
    for row in range(n):
        if not valid[row]:
            continue
        code = codes[row]
        j = 0
        for i in range(bounds[code], bounds[code + 1]):
            if arena[i] == INTEGER_SLOT:
                out += put_integer(out, slots[j, row])
                j += 1
            elif arena[i] == UUID_SLOT:
                out += put_uuid(out, slots[j, row], slots[j + 1, row])
                j += 2
            else:
                out[0] = arena[i]
                out += 1
    return 0


def unpack_texts(
    list skeletons not None,
    const uint16_t[::1] codes not None,
    const uint8_t[::1] valid not None,
    const uint64_t[:, ::1] slots not None,
):
    """The texts again: ``(bytes, offsets)``; slots are whole values, one row of ``slots`` each."""
    if codes.shape[0] != valid.shape[0] or (slots.shape[0] and slots.shape[1] != codes.shape[0]):
        raise ValueError("codes, validity and slots differ in length")
    _check_codes(skeletons, codes, slots.shape[0])
    joined = np.frombuffer(b"".join(skeletons) or b"\0", np.uint8)
    edges = np.zeros(len(skeletons) + 1, np.uint32)
    edges[1:] = np.cumsum([len(s) for s in skeletons], dtype=np.uint32)
    offsets = np.zeros(valid.shape[0] + 1, np.int64)
    cdef const uint8_t[::1] arena = joined
    cdef const uint32_t[::1] bounds = edges
    cdef int64_t[::1] ends = offsets
    with nogil:
        _measure(arena, bounds, codes, valid, slots, ends)
    out = np.empty(offsets[valid.shape[0]], np.uint8)
    cdef uint8_t[::1] target = out
    if target.shape[0]:
        with nogil:
            _render(arena, bounds, codes, valid, slots, &target[0])
    return out, offsets


cdef int _check_codes(list skeletons, const uint16_t[::1] codes, Py_ssize_t slots) except -1:
    """Every code has its skeleton, every skeleton its slots: a damaged cache must not read past."""
    cdef size_t row
    cdef uint16_t largest = 0
    for row in range(<size_t>codes.shape[0]):
        largest = max(largest, codes[row])
    if codes.shape[0] and largest >= len(skeletons):
        raise CorruptFileError("a packed text refers to a skeleton that is not there")
    for skeleton in skeletons:
        if skeleton.count(b"\xff") + 2 * skeleton.count(b"\xfe") > slots:
            raise CorruptFileError("a packed text refers to a slot that is not there")
    return 0


def sort_hashes(const uint64_t[::1] hashes not None):
    """Hashes in ascending order and the row of each; equal hashes keep the order of their rows."""
    cdef size_t n = hashes.shape[0]
    cdef uint32_t bits = 1
    while bits < 22 and (<size_t>1 << bits) < n:
        bits += 1
    cdef size_t row
    cdef size_t bucket
    cdef size_t at
    ordered = np.empty(n, np.uint64)
    rows = np.empty(n, np.uint32)
    begins = np.zeros((1 << bits) + 1, np.uint32)
    cdef uint64_t[::1] keys = ordered
    cdef uint32_t[::1] from_row = rows
    cdef uint32_t[::1] begin = begins
    cdef uint32_t shift = 64 - bits
    if n >= NULL_LENGTH:
        raise ValueError("too many rows for one sort")
    with nogil:
        for row in range(n):
            begin[(hashes[row] >> shift) + 1] += 1
        for bucket in range(<size_t>1 << bits):
            begin[bucket + 1] += begin[bucket]
        for row in range(n):
            bucket = hashes[row] >> shift
            at = begin[bucket]
            begin[bucket] += 1
            keys[at] = hashes[row]
            from_row[at] = <uint32_t>row
        _settle(keys, from_row, n)
    return ordered, rows


cdef void _settle(uint64_t[::1] keys, uint32_t[::1] rows, size_t n) noexcept nogil:
    """Insertion sort of nearly sorted keys."""
    cdef size_t i
    cdef size_t at
    cdef uint64_t key
    cdef uint32_t row
    for i in range(1, n):
        key = keys[i]
        if keys[i - 1] <= key:
            continue
        row = rows[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            rows[at] = rows[at - 1]
            at -= 1
        keys[at] = key
        rows[at] = row


# -- hashes that occur twice --------------------------------------------------------------------

cdef enum:
    SEEN = 4096             # places for the hashes of one bucket, of which there are about 1024
    MOST_SEEN = 3072

cdef struct Seen:
    uint64_t[SEEN] keys
    uint32_t[SEEN] bucket   # which bucket filled the place, counted from 1
    uint32_t used


cdef inline bint _see(Seen* seen, uint64_t key, uint32_t bucket) noexcept nogil:
    """Note a hash of a bucket; whether it had been noted before."""
    cdef uint32_t at = <uint32_t>key & (SEEN - 1)
    while seen.bucket[at] == bucket:
        if seen.keys[at] == key:
            return True
        at = (at + 1) & (SEEN - 1)
    seen.bucket[at] = bucket
    seen.keys[at] = key
    seen.used += 1
    return False


cdef int _repeats(
    const uint64_t[::1] keys, int64_t[::1] at, const int64_t[::1] ends, uint32_t bits, Seen* seen,
    list found,
) except -1:
    """Gather what occurs again; 1 when a bucket is too full or some part is not ascending."""
    cdef uint32_t shift = 64 - bits
    cdef uint32_t bucket
    cdef Py_ssize_t k
    for bucket in range(<uint32_t>1 << bits):
        seen.used = 0
        for k in range(at.shape[0]):
            while at[k] < ends[k] and keys[at[k]] >> shift == bucket:
                if seen.used >= MOST_SEEN:
                    return 1
                if _see(seen, keys[at[k]], bucket + 1):
                    found.append(keys[at[k]])
                at[k] += 1
    for k in range(at.shape[0]):
        if at[k] != ends[k]:
            return 1
    return 0


def repeated_hashes(list parts not None):
    """Hashes that occur more than once in some ascending arrays, each at least once.

    The arrays are walked together, one range of hashes after the other, so that the hashes of a
    range are looked up in a table that stays near.
    """
    lengths = np.array([len(part) for part in parts], np.int64)
    keys = np.concatenate([np.zeros(0, np.uint64), *parts])
    ends = np.cumsum(lengths)
    starts = ends - lengths
    cdef uint32_t bits = 1
    while bits < 20 and len(keys) >> bits > 1024:
        bits += 1
    cdef Seen* seen = <Seen*>calloc(1, sizeof(Seen))
    if seen == NULL:
        raise MemoryError()
    found = []
    try:
        if _repeats(keys, starts, ends, bits, seen, found):
            keys.sort()
            return keys[1:][np.diff(keys) == 0]
    finally:
        free(seen)
    return np.array(found, np.uint64)
