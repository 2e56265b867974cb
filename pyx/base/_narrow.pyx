"""Columns of numbers in as few bytes as they need, each in two passes."""

import numpy as np

from indextables.native._typedefs cimport int64_t, uint8_t, uint16_t, uint32_t, uint64_t

ctypedef fused Unsigned:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


cdef void _differences(
    const uint64_t* source, size_t n, uint64_t low, Unsigned* out
) noexcept nogil:
    cdef size_t i
    for i in range(n):
        out[i] = <Unsigned>(source[i] - low)


cdef object narrowed(const uint64_t* source, size_t n, uint64_t low, uint64_t high):
    """``source - low`` in the narrowest unsigned type that holds ``high - low``; ``n`` > 0."""
    cdef uint64_t largest = high - low
    cdef uint8_t[::1] b8
    cdef uint16_t[::1] b16
    cdef uint32_t[::1] b32
    cdef uint64_t[::1] b64
    if largest < 1 << 8:
        b8 = out = np.empty(n, np.uint8)
        _differences(source, n, low, &b8[0])
    elif largest < 1 << 16:
        b16 = out = np.empty(n, np.uint16)
        _differences(source, n, low, &b16[0])
    elif largest < 1ULL << 32:
        b32 = out = np.empty(n, np.uint32)
        _differences(source, n, low, &b32[0])
    else:
        b64 = out = np.empty(n, np.uint64)
        _differences(source, n, low, &b64[0])
    return out


def pack_ints(const int64_t[::1] values not None, int64_t missing):
    """``(least, differences, present)``, ``None`` when no row has a value.

    The differences are ``None`` when all values are the same, ``present`` is ``None`` when every
    row has one. Rows that are ``missing`` have difference 0.
    """
    cdef size_t n = values.shape[0]
    if n == 0:
        return None
    whole = np.asarray(values)
    cdef int64_t low = whole.min()
    cdef int64_t high = whole.max()
    present = None
    if low == high:
        return None if low == missing else (low, None, None)
    if low <= missing <= high:
        present = whole != missing
        if present.all():
            present = None
        else:
            shown = whole[present]
            low, high = shown.min(), shown.max()
            if low == high:
                return low, None, present
            whole = np.where(present, whole, low)
    cdef const int64_t[::1] filled = whole
    return low, narrowed(<const uint64_t*>&filled[0], n, <uint64_t>low, <uint64_t>high), present
