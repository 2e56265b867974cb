"""Hashes of keys ``field ":" value``, for single keys and for whole Arrow arrays.

``hash_terms`` walks the offsets and bytes of an Arrow array in place; no key is ever joined.
Nulls have no key: the result holds one hash for each value that is not null, in order.
Numbers and bools are hashed by their canonical text (see ``format_f64_array`` for doubles).
"""

import numpy as np

from indextables.native._typedefs cimport int32_t, int64_t

ctypedef fused offset_t:
    int32_t
    int64_t

HASH_KINDS = {"fxhash64": HASH_FXHASH64, "xxh64": HASH_XXH64}
HASH_NAMES = {number: name for name, number in HASH_KINDS.items()}


cdef int hash_kind_id(object kind) except -1:
    """The number a hash kind has in files; accepts its name or that number."""
    if kind in HASH_NAMES:
        return kind
    if kind in HASH_KINDS:
        return HASH_KINDS[kind]
    raise ValueError(f"unknown hash kind {kind!r}; known: {', '.join(HASH_KINDS)}")


cdef bytes _as_bytes(object text):
    if isinstance(text, str):
        return (<str>text).encode("utf-8")
    if isinstance(text, bytes):
        return text
    return bytes(memoryview(text))


def fxhash64(data):
    """fxhash of a text's UTF-8 bytes (or of bytes), closed by ``0xff`` as Rust does for a str."""
    cdef bytes raw = _as_bytes(data)
    return fx_finish(0, <const uint8_t*>raw, len(raw))


def xxh64(data, uint64_t seed=0):
    """XXH64 of a text's UTF-8 bytes (or of bytes)."""
    cdef bytes raw = _as_bytes(data)
    return xxh64_bytes(<const uint8_t*>raw, len(raw), seed)


def hash_term(field, value, kind="fxhash64"):
    """The hash of one key; ``value`` is the canonical text (or bytes) that the index holds."""
    cdef bytes name = _as_bytes(field)
    cdef bytes raw = _as_bytes(value)
    return hash_key(
        hash_kind_id(kind), <const uint8_t*>name, len(name), <const uint8_t*>raw, len(raw)
    )


def hash_terms(field, values, kind="fxhash64"):
    """One uint64 hash for each value that is not null.

    ``values``: an Arrow array or chunked array (text, binary, dictionary, integer, bool, float),
    a numpy array, or a sequence of str, bytes, numbers and None.
    """
    cdef KeyPrefix prefix
    cdef bytes name = _as_bytes(field)
    key_prefix(&prefix, hash_kind_id(kind), <const uint8_t*>name, len(name))
    parts = [_hash_array(&prefix, array) for array in _arrow_arrays(values)]
    if len(parts) == 1:
        return parts[0]
    return np.concatenate(parts) if parts else np.empty(0, np.uint64)


cdef list _arrow_arrays(object values):
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values.chunks
    if isinstance(values, pa.Array):
        return [values]
    made = pa.array(values)
    return made.chunks if isinstance(made, pa.ChunkedArray) else [made]


cdef object _hash_array(KeyPrefix* prefix, object array):
    import pyarrow as pa

    kind = array.type
    if pa.types.is_null(kind):
        return np.empty(0, np.uint64)
    if pa.types.is_dictionary(kind):
        return _hash_dictionary(prefix, array)
    array = canonical_text(array)
    if pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type):
        return _hash_buffers[int64_t](prefix, array, 0)
    return _hash_buffers[int32_t](prefix, array, 0)


cdef object _hash_dictionary(KeyPrefix* prefix, object array):
    """Hash each distinct value once, then repeat the hashes by the indices."""
    dictionary = array.dictionary
    if dictionary.null_count:
        return _hash_array(prefix, array.dictionary_decode())
    hashes = _hash_array(prefix, dictionary)
    indices = array.indices.drop_null().to_numpy(zero_copy_only=False)
    return hashes[indices]


def canonical_text(array):
    """The text (or bytes) of an Arrow array by which its values are keyed."""
    import pyarrow as pa

    kind = array.type
    types = pa.types
    if (
        types.is_string(kind) or types.is_large_string(kind)
        or types.is_binary(kind) or types.is_large_binary(kind)
    ):
        return array
    if types.is_floating(kind):
        from indextables.native._f64 import format_f64_array

        return format_f64_array(array)
    if types.is_integer(kind) or types.is_boolean(kind):
        return array.cast(pa.string())
    if types.is_string_view(kind):
        return array.cast(pa.large_string())
    if types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return array.cast(pa.large_binary())
    raise TypeError(f"no canonical key text for Arrow type {kind}")


cdef object _hash_buffers(KeyPrefix* prefix, object array, offset_t _width):
    """Hash an Arrow array of the layout validity, offsets, data."""
    cdef int64_t first = array.offset
    cdef int64_t rows = len(array)
    cdef int64_t count
    cdef const uint8_t[::1] valid = None
    validity, offset_buffer, data = array.buffers()
    if rows == 0:
        return np.empty(0, np.uint64)
    cdef const offset_t[::1] offsets = np.frombuffer(
        offset_buffer, np.int32 if offset_t is int32_t else np.int64
    )
    cdef const uint8_t[::1] text = np.frombuffer(data, np.uint8) if data else b""
    if offsets.shape[0] < first + rows + 1:
        raise ValueError("the Arrow array's offsets are shorter than its length")
    if validity is not None and array.null_count:
        valid = np.frombuffer(validity, np.uint8)
        if valid.shape[0] * 8 < first + rows:
            raise ValueError("the Arrow array's validity bitmap is shorter than its length")
    out = np.empty(rows - array.null_count, np.uint64)
    cdef uint64_t[::1] hashes = out
    with nogil:
        count = _hash_rows(prefix, offsets, text, valid, first, rows, hashes)
    if count != out.shape[0]:
        raise ValueError("the Arrow array's offsets or null count contradict its buffers")
    return out


cdef int64_t _hash_rows(
    const KeyPrefix* prefix,
    const offset_t[::1] offsets,
    const uint8_t[::1] text,
    const uint8_t[::1] valid,
    int64_t first,
    int64_t rows,
    uint64_t[::1] hashes,
) noexcept nogil:
    """Hash ``rows`` values; returns how many were hashed, or -1 for offsets outside the data."""
    cdef const uint8_t* base = &text[0] if text.shape[0] else NULL
    cdef bint all_valid = valid is None
    cdef int64_t row, start, end
    cdef int64_t count = 0
    cdef int64_t room = hashes.shape[0]
    for row in range(first, first + rows):
        if not all_valid and not (valid[row >> 3] >> (row & 7)) & 1:
            continue
        start = offsets[row]
        end = offsets[row + 1]
        if start < 0 or end < start or end > text.shape[0] or count == room:
            return -1
        hashes[count] = hash_value(prefix, base + start, <size_t>(end - start))
        count += 1
    return count
