"""Buckets of a key map: the key hashes of one range, and for each the splits that hold it.

A bucket covers the hashes that share their top bits; what is stored of a hash are its lower
``bits`` bits, the remainder. Remainders are ascending and distinct. Integers are little-endian,
packed numbers lowest bit first, and every array of bits is filled up to a whole byte.

    u32 number of keys n | u8 low bits l | u8 bits of a row block | u16 0
    u32 single keys s | u32 plain keys p | u32 bytes of the lists
    n + 2**(bits - l) bits   upper parts: the bit at (remainder >> l) + i is set for key i
    n * l bits               lower parts
    n * 2 bits               class of each key
    s * w bits               split of each single key; w bits hold the highest split number
    p * row-block bits       row block of each plain key; all ones: unknown
    n - p bytes              document frequency, coded by the caller, of all but plain keys
    lists                    of each listed key: varint (bytes * 2 + is bitmap), then the bytes
    u32 CRC-32C of all bytes before it

Classes: 0 plain (one split, one document), 1 single (one split), 2 listed, 3 everywhere (so many
splits that naming them does not pay; the reader must take all). A list holds the first split and
then the gaps less one as varints, or a bitmap of all splits where that is shorter.

A number that does not fit raises ``CorruptFileError``: counts are compared with the bits they
count before anything is looked up by them, so no read leaves the bucket.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_Resize
from libc.string cimport memcpy

import numpy as np

from indextables.native._crc32c cimport crc32c_extend
from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_init, cursor_left, cursor_over, cursor_sub,
    cursor_take, it_le64, read_u8, read_u16, read_u32, read_varint,
)
from indextables.native._rows_bits cimport (
    bits_at, load_le64, load_upto, packed_bytes, popcount64, rank_bits, width_mask, width_of,
)
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PLAIN = 0
    SINGLE = 1
    LISTED = 2
    EVERYWHERE = 3
    HEAD = 20
    CRC = 4
    SLACK = 16                  # writable bytes after a bucket under construction
    BITS_MAX = 56
    UPPER_MAX = 40
    SPLITS_MAX = 1 << 30

cdef struct Bucket:
    uint64_t keys
    uint64_t singles
    uint64_t plain
    uint64_t splits
    uint32_t low
    uint32_t split_bits
    uint32_t block_bits
    uint64_t upper_bits
    const uint8_t* upper
    uint64_t upper_bytes
    const uint8_t* lows
    uint64_t lows_bytes
    const uint8_t* classes
    uint64_t classes_bytes
    const uint8_t* ids
    uint64_t ids_bytes
    const uint8_t* blocks
    uint64_t blocks_bytes
    const uint8_t* codes
    Cursor lists

cdef struct Ranks:
    uint64_t plain
    uint64_t single
    uint64_t listed


cdef Ranks _ranks(const Bucket* b, uint64_t upto) noexcept nogil:
    """How many of the first ``upto`` keys are of each class."""
    cdef Ranks out
    cdef uint64_t done = 0, word, low, high, valid, size
    cdef uint64_t even = <uint64_t>0x5555555555555555
    out.plain = out.single = out.listed = 0
    while done < upto:
        size = min(<uint64_t>32, upto - done)
        word = load_upto(b.classes + (done >> 2), b.classes_bytes - (done >> 2))
        valid = even & width_mask(<uint32_t>(2 * size))
        low = word & valid
        high = (word >> 1) & valid
        out.plain += popcount64(valid & ~low & ~high)
        out.single += popcount64(low & ~high)
        out.listed += popcount64(high & ~low)
        done += size
    return out


cdef int _check_arguments(uint32_t bits, uint64_t splits) except -1:
    if bits > BITS_MAX or splits < 1 or splits > SPLITS_MAX:
        raise ValueError(f"no bucket of {bits} bits over {splits} splits")
    return 0


cdef int _open(
    const uint8_t[::1] raw, uint32_t bits, uint64_t splits, uint64_t origin, Bucket* b
) except -1 nogil:
    """Find the parts of a bucket; afterwards every count fits the bits it counts."""
    cdef Cursor c, tail
    cdef Ranks ranks
    cdef uint64_t lists
    cursor_over(&c, raw, origin)
    if cursor_left(&c) < HEAD + CRC:
        return cursor_fail(&c, b"bucket of a key map is cut off")
    cursor_init(&tail, c.base + c.size - CRC, CRC, origin + c.size - CRC)
    if crc32c_extend(0, c.base, <size_t>(c.size - CRC)) != read_u32(&tail):
        return cursor_fail(&c, b"checksum does not fit the bucket of a key map")
    c.size -= CRC
    b.splits = splits
    b.keys = read_u32(&c)
    b.low = read_u8(&c)
    b.block_bits = read_u8(&c)
    if b.low > bits or b.block_bits > 32 or bits - b.low > UPPER_MAX or read_u16(&c):
        return cursor_fail(&c, b"impossible bucket of a key map")
    b.singles = read_u32(&c)
    b.plain = read_u32(&c)
    lists = read_u32(&c)
    if b.plain > b.singles or b.singles > b.keys:
        return cursor_fail(&c, b"impossible counts in a bucket of a key map")
    b.split_bits = width_of(splits - 1)
    b.upper_bits = b.keys + (<uint64_t>1 << (bits - b.low))
    b.upper_bytes = packed_bytes(b.upper_bits, 1)
    b.upper = cursor_take(&c, b.upper_bytes)
    b.lows_bytes = packed_bytes(b.keys, b.low)
    b.lows = cursor_take(&c, b.lows_bytes)
    b.classes_bytes = packed_bytes(b.keys, 2)
    b.classes = cursor_take(&c, b.classes_bytes)
    b.ids_bytes = packed_bytes(b.singles, b.split_bits)
    b.ids = cursor_take(&c, b.ids_bytes)
    b.blocks_bytes = packed_bytes(b.plain, b.block_bits)
    b.blocks = cursor_take(&c, b.blocks_bytes)
    b.codes = cursor_take(&c, b.keys - b.plain)
    cursor_sub(&c, lists, &b.lists)
    ranks = _ranks(b, b.keys)
    if ranks.plain != b.plain or ranks.plain + ranks.single != b.singles or cursor_left(&c):
        return cursor_fail(&c, b"classes of a bucket do not fit its counts")
    if rank_bits(b.upper, b.upper_bits) != b.keys:
        return cursor_fail(&c, b"upper parts of a bucket do not fit its count")
    return 0


cdef inline uint64_t _low_of(const Bucket* b, uint64_t key) noexcept nogil:
    return bits_at(b.lows, b.lows_bytes, key * b.low, b.low) if b.low else 0


cdef inline uint32_t _class_of(const Bucket* b, uint64_t key) noexcept nogil:
    return (b.classes[key >> 2] >> (2 * (key & 3))) & 3


cdef inline int _split_of(const Bucket* b, uint64_t single, uint32_t* out) except -1 nogil:
    out[0] = 0
    if b.split_bits:
        out[0] = <uint32_t>bits_at(b.ids, b.ids_bytes, single * b.split_bits, b.split_bits)
    if out[0] >= b.splits:
        return corrupt_at(b.lists.origin, b"a key names a split that is not there")
    return 0


cdef inline int32_t _block_of(const Bucket* b, uint64_t plain) noexcept nogil:
    """The row block of a plain key, -1 where it is unknown."""
    cdef uint64_t value
    if not b.block_bits:
        return -1
    value = bits_at(b.blocks, b.blocks_bytes, plain * b.block_bits, b.block_bits)
    return -1 if value == width_mask(b.block_bits) else <int32_t>value


cdef int64_t _find(const Bucket* b, uint64_t remainder) noexcept nogil:
    """The number of the key with this remainder, -1 if there is none."""
    cdef uint64_t wanted = remainder >> b.low
    cdef uint64_t low = remainder & width_mask(b.low) if b.low else 0
    cdef uint64_t pos = 0, zeros = 0, word, here
    while pos + 64 <= b.upper_bits:
        word = load_le64(b.upper + (pos >> 3))
        here = 64 - popcount64(word)
        if zeros + here >= wanted:
            break
        zeros += here
        pos += 64
    while zeros < wanted and pos < b.upper_bits:
        zeros += not (b.upper[pos >> 3] >> (pos & 7)) & 1
        pos += 1
    while pos < b.upper_bits and (b.upper[pos >> 3] >> (pos & 7)) & 1:
        here = pos - wanted
        if _low_of(b, here) == low:
            return <int64_t>here
        pos += 1
    return -1


cdef inline int _next_list(Cursor* lists, Cursor* one, bint* is_bitmap) except -1 nogil:
    cdef uint64_t head = read_varint(lists)
    is_bitmap[0] = head & 1
    return cursor_sub(lists, head >> 1, one)


cdef int64_t _count(const Cursor* one, bint is_bitmap, uint64_t splits) except -1 nogil:
    """How many splits a list names."""
    cdef uint64_t i
    cdef int64_t found = 0
    if is_bitmap:
        if one.size != packed_bytes(splits, 1):
            cursor_fail(one, b"a bitmap of splits has the wrong length")
            return -1
        return <int64_t>rank_bits(one.base, splits)
    for i in range(one.size):
        found += one.base[i] < 128
    return found


cdef int _fill(
    Cursor* one, bint is_bitmap, uint64_t splits, uint32_t* out, int64_t count
) except -1 nogil:
    """Write the splits of a list, ascending."""
    cdef uint64_t split = 0, gap
    cdef int64_t at = 0
    if is_bitmap:
        for split in range(splits):
            if (one.base[split >> 3] >> (split & 7)) & 1:
                out[at] = <uint32_t>split
                at += 1
        return 0
    for at in range(count):
        gap = read_varint(one)
        if gap >= splits or split + gap >= splits:
            return cursor_fail(one, b"a key names a split that is not there")
        split += gap
        out[at] = <uint32_t>split
        split += 1
    if cursor_left(one):
        return cursor_fail(one, b"a list of splits is too long")
    return 0


def probe_bucket(
    const uint8_t[::1] raw, uint64_t remainder, uint32_t bits, uint64_t splits, uint64_t origin=0
):
    """``(code, splits, row block)`` of one key, ``None`` if the bucket does not hold it.

    ``splits`` is ``None`` for a key that is everywhere; the row block is -1 where it is unknown.
    """
    cdef Bucket b
    cdef Ranks ranks
    cdef Cursor one
    cdef bint is_bitmap = False
    cdef int64_t key, count
    cdef uint64_t _skip
    cdef uint32_t kind, split = 0
    cdef uint32_t[::1] ids
    _check_arguments(bits, splits)
    if remainder >> bits:
        raise ValueError("the remainder has more bits than the bucket")
    with nogil:
        _open(raw, bits, splits, origin, &b)
        key = _find(&b, remainder)
    if key < 0:
        return None
    kind = _class_of(&b, key)
    ranks = _ranks(&b, key)
    if kind == PLAIN or kind == SINGLE:
        _split_of(&b, ranks.plain + ranks.single, &split)
        found = np.array([split], np.uint32)
        if kind == PLAIN:
            return 1, found, _block_of(&b, ranks.plain)
        return b.codes[key - ranks.plain], found, -1
    if kind == EVERYWHERE:
        return b.codes[key - ranks.plain], None, -1
    for _skip in range(ranks.listed + 1):
        _next_list(&b.lists, &one, &is_bitmap)
    count = _count(&one, is_bitmap, splits)
    found = np.empty(count, np.uint32)
    ids = found
    if count:
        _fill(&one, is_bitmap, splits, &ids[0], count)
    return b.codes[key - ranks.plain], found, -1


cdef int _remainders(const Bucket* b, uint64_t[::1] out) except -1 nogil:
    cdef uint64_t pos, zeros = 0, key = 0
    for pos in range(b.upper_bits):
        if (b.upper[pos >> 3] >> (pos & 7)) & 1:
            out[key] = (zeros << b.low) | _low_of(b, key)
            if key and out[key] <= out[key - 1]:
                return corrupt_at(b.lists.origin, b"keys of a bucket are not in order")
            key += 1
        else:
            zeros += 1
    return 0


cdef int _offsets(const Bucket* b, int64_t[::1] out) except -1 nogil:
    """Where the splits of each key begin among all of the bucket."""
    cdef Cursor lists = b.lists
    cdef Cursor one
    cdef bint is_bitmap = False
    cdef uint64_t key
    cdef uint32_t kind
    out[0] = 0
    for key in range(b.keys):
        kind = _class_of(b, key)
        if kind == LISTED:
            _next_list(&lists, &one, &is_bitmap)
            out[key + 1] = out[key] + _count(&one, is_bitmap, b.splits)
        else:
            out[key + 1] = out[key] + (kind != EVERYWHERE)
    if cursor_left(&lists):
        return cursor_fail(&lists, b"lists of a bucket are too long")
    return 0


cdef int _contents(
    const Bucket* b, const int64_t[::1] offsets, uint8_t[::1] codes, uint32_t[::1] ids,
    int32_t[::1] blocks
) except -1 nogil:
    cdef Cursor lists = b.lists
    cdef Cursor one
    cdef bint is_bitmap = False
    cdef uint64_t key, plain = 0, single = 0
    cdef int64_t count
    cdef uint32_t kind
    for key in range(b.keys):
        kind = _class_of(b, key)
        blocks[key] = -1
        if kind == PLAIN:
            codes[key] = 1
            blocks[key] = _block_of(b, plain)
            plain += 1
        else:
            codes[key] = b.codes[key - plain]
        if kind == PLAIN or kind == SINGLE:
            _split_of(b, single, &ids[offsets[key]])
            single += 1
        elif kind == LISTED:
            _next_list(&lists, &one, &is_bitmap)
            count = offsets[key + 1] - offsets[key]
            if count:
                _fill(&one, is_bitmap, b.splits, &ids[offsets[key]], count)
    return 0


def decode_bucket(const uint8_t[::1] raw, uint32_t bits, uint64_t splits, uint64_t origin=0):
    """``(remainders, codes, offsets, splits, row blocks)``: all that a bucket holds.

    The splits of key ``i`` are ``splits[offsets[i]:offsets[i + 1]]``; none of them: everywhere.
    """
    cdef Bucket b
    cdef int64_t[::1] starts
    _check_arguments(bits, splits)
    with nogil:
        _open(raw, bits, splits, origin, &b)
    remainders = np.empty(b.keys, np.uint64)
    codes = np.empty(b.keys, np.uint8)
    blocks = np.empty(b.keys, np.int32)
    offsets = np.empty(b.keys + 1, np.int64)
    _remainders(&b, remainders)
    starts = offsets
    _offsets(&b, starts)
    ids = np.empty(starts[b.keys], np.uint32)
    _contents(&b, starts, codes, ids, blocks)
    return remainders, codes, offsets, ids, blocks


# -- writing ---------------------------------------------------------------------------------------

cdef struct Draft:
    const uint64_t* remainders
    const uint8_t* codes
    const int64_t* offsets
    const uint32_t* ids
    const int32_t* blocks
    uint64_t keys
    uint64_t splits
    uint64_t most               # a key in more splits than this is everywhere
    uint64_t singles
    uint64_t plain
    uint64_t list_bytes
    uint32_t low
    uint32_t split_bits
    uint32_t block_bits
    uint32_t bits


cdef inline uint32_t _kind(const Draft* d, uint64_t key) noexcept nogil:
    cdef uint64_t count = <uint64_t>(d.offsets[key + 1] - d.offsets[key])
    if count == 0 or count > d.most:
        return EVERYWHERE
    if count > 1:
        return LISTED
    return PLAIN if d.codes[key] == 1 else SINGLE


cdef inline uint64_t _varint_size(uint64_t value) noexcept nogil:
    return 1 if value < 128 else (width_of(value) + 6) // 7


cdef uint64_t _gaps_size(const Draft* d, uint64_t key) noexcept nogil:
    cdef uint64_t size = 0, last = 0
    cdef int64_t i
    for i in range(d.offsets[key], d.offsets[key + 1]):
        size += _varint_size(d.ids[i] - last)
        last = <uint64_t>d.ids[i] + 1
    return size


cdef inline uint64_t _list_size(const Draft* d, uint64_t key, bint* is_bitmap) noexcept nogil:
    cdef uint64_t gaps = _gaps_size(d, key)
    cdef uint64_t bitmap = packed_bytes(d.splits, 1)
    is_bitmap[0] = bitmap < gaps
    return min(gaps, bitmap)


cdef int _measure(Draft* d) except -1 nogil:
    """Check the order of everything and count what decides the sizes."""
    cdef uint64_t key, size
    cdef int64_t i
    cdef uint32_t kind
    cdef int32_t highest = -1
    cdef bint is_bitmap = False
    d.singles = d.plain = d.list_bytes = 0
    for key in range(d.keys):
        if d.remainders[key] >> d.bits or (key and d.remainders[key] <= d.remainders[key - 1]):
            with gil:
                raise ValueError("remainders must be ascending and fit the bucket")
        for i in range(d.offsets[key], d.offsets[key + 1]):
            if d.ids[i] >= d.splits or (i > d.offsets[key] and d.ids[i] <= d.ids[i - 1]):
                with gil:
                    raise ValueError("the splits of a key must be ascending and exist")
        kind = _kind(d, key)
        d.singles += kind == PLAIN or kind == SINGLE
        if kind == PLAIN:
            d.plain += 1
            highest = max(highest, d.blocks[key])
        elif kind == LISTED:
            size = _list_size(d, key, &is_bitmap)
            d.list_bytes += size + _varint_size(2 * size + is_bitmap)
    d.block_bits = width_of(<uint64_t>highest + 1) if highest >= 0 else 0
    d.split_bits = width_of(d.splits - 1)
    d.low = d.bits - min(d.bits, width_of(d.keys) - 1 if d.keys else 0)
    return 0


cdef inline void _put(uint8_t* out, uint64_t bitpos, uint64_t value) noexcept nogil:
    """OR a number of at most 57 bits into zeroed memory with eight bytes to spare."""
    cdef uint64_t word = load_le64(out + (bitpos >> 3)) | value << (bitpos & 7)
    word = it_le64(word)
    memcpy(out + (bitpos >> 3), &word, 8)


cdef inline uint8_t* _put_varint(uint8_t* out, uint64_t value) noexcept nogil:
    while value >= 128:
        out[0] = <uint8_t>(value & 127 | 128)
        value >>= 7
        out += 1
    out[0] = <uint8_t>value
    return out + 1


cdef uint8_t* _put_list(const Draft* d, uint64_t key, uint8_t* out) noexcept nogil:
    cdef bint is_bitmap = False
    cdef uint64_t size = _list_size(d, key, &is_bitmap)
    cdef uint64_t last = 0
    cdef int64_t i
    out = _put_varint(out, 2 * size + is_bitmap)
    for i in range(d.offsets[key], d.offsets[key + 1]):
        if is_bitmap:
            out[d.ids[i] >> 3] |= <uint8_t>(1 << (d.ids[i] & 7))
        else:
            out = _put_varint(out, d.ids[i] - last)
            last = <uint64_t>d.ids[i] + 1
    return out + size if is_bitmap else out


cdef uint64_t _size(const Draft* d) noexcept nogil:
    return (
        HEAD + packed_bytes(d.keys + (<uint64_t>1 << (d.bits - d.low)), 1)
        + packed_bytes(d.keys, d.low) + packed_bytes(d.keys, 2)
        + packed_bytes(d.singles, d.split_bits) + packed_bytes(d.plain, d.block_bits)
        + d.keys - d.plain + d.list_bytes
    )


cdef void _write(const Draft* d, uint8_t* out) noexcept nogil:
    """Everything but the checksum, into zeroed memory."""
    cdef uint8_t* upper = out + HEAD
    cdef uint8_t* lows = upper + packed_bytes(d.keys + (<uint64_t>1 << (d.bits - d.low)), 1)
    cdef uint8_t* classes = lows + packed_bytes(d.keys, d.low)
    cdef uint8_t* ids = classes + packed_bytes(d.keys, 2)
    cdef uint8_t* blocks = ids + packed_bytes(d.singles, d.split_bits)
    cdef uint8_t* codes = blocks + packed_bytes(d.plain, d.block_bits)
    cdef uint8_t* lists = codes + d.keys - d.plain
    cdef uint64_t key, at, plain = 0, single = 0
    cdef uint64_t unknown = width_mask(d.block_bits) if d.block_bits else 0
    cdef uint32_t kind
    _put(out, 0, d.keys)
    out[4] = <uint8_t>d.low
    out[5] = <uint8_t>d.block_bits
    _put(out, 64, d.singles)
    _put(out, 96, d.plain)
    _put(out, 128, d.list_bytes)
    for key in range(d.keys):
        at = (d.remainders[key] >> d.low) + key
        upper[at >> 3] |= <uint8_t>(1 << (at & 7))
        if d.low:
            _put(lows, key * d.low, d.remainders[key] & width_mask(d.low))
        kind = _kind(d, key)
        classes[key >> 2] |= <uint8_t>(kind << (2 * (key & 3)))
        if kind == PLAIN or kind == SINGLE:
            if d.split_bits:
                _put(ids, single * d.split_bits, d.ids[d.offsets[key]])
            single += 1
        if kind == PLAIN:
            if d.block_bits:
                at = unknown if d.blocks[key] < 0 else <uint64_t>d.blocks[key]
                _put(blocks, plain * d.block_bits, at)
            plain += 1
        else:
            codes[key - plain] = d.codes[key]
        if kind == LISTED:
            lists = _put_list(d, key, lists)


def encode_bucket(
    const uint64_t[::1] remainders, const uint8_t[::1] codes, const int64_t[::1] offsets,
    const uint32_t[::1] ids, const int32_t[::1] blocks, uint32_t bits, uint64_t splits,
    uint64_t most
):
    """The bytes of a bucket; arguments as ``decode_bucket`` gives them.

    A key in more than ``most`` splits, or in none, is written as being everywhere.
    """
    cdef Draft d
    cdef uint64_t size
    cdef uint32_t crc
    cdef bytearray room
    cdef uint8_t* out
    cdef int64_t n = remainders.shape[0]
    _check_arguments(bits, splits)
    if codes.shape[0] != n or offsets.shape[0] != n + 1 or blocks.shape[0] != n:
        raise ValueError("a bucket needs one code and one row block for each key")
    if n >> 31 or offsets[0] != 0 or offsets[n] != ids.shape[0]:
        raise ValueError("offsets do not fit the splits")
    if n and np.any(np.diff(np.asarray(offsets)) < 0):
        raise ValueError("offsets must not fall")
    d.keys = n
    d.splits = splits
    d.bits = bits
    d.most = most
    d.offsets = &offsets[0]
    d.remainders = &remainders[0] if n else NULL
    d.codes = &codes[0] if n else NULL
    d.blocks = &blocks[0] if n else NULL
    d.ids = &ids[0] if ids.shape[0] else NULL
    with nogil:
        _measure(&d)
    if d.bits - d.low > UPPER_MAX or d.list_bytes >> 32:
        raise ValueError("too much for one bucket")
    size = _size(&d)
    room = bytearray(size + CRC + SLACK)
    out = <uint8_t*>PyByteArray_AS_STRING(room)
    with nogil:
        _write(&d, out)
        crc = crc32c_extend(0, out, <size_t>size)
        _put(out, 8 * size, crc)
    PyByteArray_Resize(room, <Py_ssize_t>(size + CRC))
    return room
