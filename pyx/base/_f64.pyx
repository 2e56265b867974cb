"""Canonical text of doubles: the shortest digits that read back equal, never an exponent.

This is how Rust displays an f64 and how keys of double fields are written: ``1.0`` is ``1``,
``1e16`` is ``10000000000000000``, and ``NaN``, ``inf``, ``-inf``, ``-0`` keep their names.
Arrow finds the shortest digits; the kernel here only moves the decimal point.
"""

import numpy as np

from libc.string cimport memcpy, memset

from indextables.native._typedefs cimport int32_t, int64_t, uint8_t

cdef enum:
    DIGITS_MAX = 800


cdef struct Decimal:
    uint8_t digits[DIGITS_MAX]      # significant digits, no point
    int64_t count                   # how many
    int64_t point                   # digits before the decimal point; may be negative


cdef int _parse_exponent(const uint8_t* text, int64_t size, int64_t at) noexcept nogil:
    cdef int value = 0
    cdef bint negative = at < size and text[at] == c"-"
    if at < size and (text[at] == c"-" or text[at] == c"+"):
        at += 1
    while at < size and c"0" <= text[at] <= c"9" and value < 10000:
        value = 10 * value + (text[at] - c"0")
        at += 1
    return -value if negative else value


cdef void _parse_decimal(const uint8_t* text, int64_t size, Decimal* out) noexcept nogil:
    """Read ``digits[.digits][e[+-]digits]`` and drop the zeros at the end of the digits."""
    cdef int64_t i
    cdef bint in_fraction = False
    out.count = 0
    out.point = 0
    for i in range(size):
        if text[i] == c".":
            in_fraction = True
        elif text[i] == c"e":
            out.point += _parse_exponent(text, size, i + 1)
            break
        elif out.count < DIGITS_MAX:
            out.digits[out.count] = text[i]
            out.count += 1
            if not in_fraction:
                out.point += 1
    while out.count > 1 and out.digits[out.count - 1] == c"0":
        out.count -= 1


cdef int64_t _plain_size(const Decimal* d) noexcept nogil:
    if d.point <= 0:
        return 2 - d.point + d.count
    return d.point if d.point >= d.count else d.count + 1


cdef void _write_plain(const Decimal* d, uint8_t* out) noexcept nogil:
    if d.point <= 0:
        out[0] = c"0"
        out[1] = c"."
        memset(out + 2, c"0", <size_t>-d.point)
        memcpy(out + 2 - d.point, d.digits, <size_t>d.count)
    elif d.point >= d.count:
        memcpy(out, d.digits, <size_t>d.count)
        memset(out + d.count, c"0", <size_t>(d.point - d.count))
    else:
        memcpy(out, d.digits, <size_t>d.point)
        out[d.point] = c"."
        memcpy(out + d.point + 1, d.digits + d.point, <size_t>(d.count - d.point))


cdef int64_t _canonical(const uint8_t* text, int64_t size, uint8_t* out) noexcept nogil:
    """Write the canonical form of one number; with ``out`` NULL only measure it."""
    cdef Decimal d
    cdef int64_t sign = 1 if size and text[0] == c"-" else 0
    if size == 0:
        return 0
    if text[sign] == c"n":
        if out != NULL:
            memcpy(out, b"NaN", 3)
        return 3
    if text[sign] == c"i":
        if out != NULL:
            memcpy(out, text, <size_t>size)
        return size
    _parse_decimal(text + sign, size - sign, &d)
    if out != NULL:
        if sign:
            out[0] = c"-"
        _write_plain(&d, out + sign)
    return sign + _plain_size(&d)


cdef int64_t _canonical_all(
    const int32_t[::1] offsets, const uint8_t[::1] text, int64_t[::1] ends, uint8_t[::1] out
) noexcept nogil:
    """Fill ``ends``; where ``out`` is given write the text there too. Returns the total size."""
    cdef int64_t total = 0
    cdef int64_t row
    cdef uint8_t* at = &out[0] if out is not None and out.shape[0] else NULL
    cdef const uint8_t* base = &text[0] if text.shape[0] else NULL
    for row in range(ends.shape[0]):
        total += _canonical(
            base + offsets[row],
            offsets[row + 1] - offsets[row],
            at + total if at != NULL else NULL,
        )
        ends[row] = total
    return total


cdef bint _already_canonical(const uint8_t[::1] text) noexcept nogil:
    cdef int64_t i
    for i in range(text.shape[0]):
        if text[i] == c"e" or text[i] == c"a":
            return False
    return True


def format_f64(double value):
    """The canonical text of one double."""
    cdef uint8_t out[DIGITS_MAX]
    cdef bytes shortest = repr(value).encode("ascii")
    cdef int64_t size = _canonical(<const uint8_t*>shortest, len(shortest), out)
    return (<const char*>out)[:size].decode("ascii")


def format_f64_array(values):
    """The canonical texts of a float64 numpy or Arrow array, as an Arrow string array.

    Nulls stay null.
    """
    import pyarrow as pa

    array = values if isinstance(values, pa.Array) else pa.array(np.asarray(values, np.float64))
    texts = array.cast(pa.float64()).cast(pa.string())
    if texts.offset:
        texts = pa.concat_arrays([texts])
    if len(texts) == 0:
        return texts
    validity, offset_buffer, data = texts.buffers()
    cdef const uint8_t[::1] raw = np.frombuffer(data, np.uint8) if data else b""
    if _already_canonical(raw):
        return texts
    cdef const int32_t[::1] offsets = np.frombuffer(offset_buffer, np.int32, len(texts) + 1)
    ends_array = np.zeros(len(texts) + 1, np.int64)
    cdef int64_t[::1] ends = ends_array[1:]
    cdef int64_t total
    with nogil:
        total = _canonical_all(offsets, raw, ends, None)
    out_array = np.empty(total, np.uint8)
    cdef uint8_t[::1] out = out_array
    with nogil:
        _canonical_all(offsets, raw, ends, out)
    wide = total >= 2**31
    buffers = [
        validity,
        pa.py_buffer(ends_array if wide else ends_array.astype(np.int32)),
        pa.py_buffer(out_array),
    ]
    kind = pa.large_string() if wide else pa.string()
    return pa.Array.from_buffers(kind, len(texts), buffers, texts.null_count)
