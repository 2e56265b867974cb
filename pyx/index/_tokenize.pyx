"""Analyzers over Arrow buffers, equal token by token to what tantivy puts into an index.

The tables of alphanumeric code points and of lower-case forms were read out of the tantivy wheel
(``_tokenize_tables.pxi``; a test derives them again). They are kept as two-level pages: code point
>> 8 names a page of 256 entries, and pages without an entry share page 0.

Text comes from Arrow and should be UTF-8; a byte that is not is a separator, never read past.
"""

import base64
import zlib
from collections import namedtuple

import numpy as np

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy

from indextables.native._hash cimport KeyPrefix, hash_kind_id, hash_value, key_prefix

include "_tokenize_tables.pxi"

ctypedef fused offset_t:
    int32_t
    int64_t

MAX_TERM_BYTES = 65530
cdef int64_t TERM_LIMIT = MAX_TERM_BYTES

Tokens = namedtuple("Tokens", ["offsets", "texts", "positions", "starts", "ends"])

cdef enum:
    PAGES = 0x1100

cdef uint8_t ASCII[256]             # lower-case letter or digit, 0 a separator, 1 non-ASCII
cdef uint8_t CLASS_PAGE[PAGES]
cdef uint8_t LOWER_PAGE[PAGES]
cdef uint8_t* CLASSES = NULL        # 1 where the code point is alphanumeric
cdef uint32_t* LOWERS = NULL        # two entries a code point: first and second, 0 for itself
cdef dict KINDS = {"raw": RAW, "default": SIMPLE, "whitespace": WHITESPACE}


def _load_tables():
    raw = np.frombuffer(zlib.decompress(base64.b85decode(UNICODE_TABLES)), "<i4")
    count = int(raw[0])
    ranges = raw[1:1 + 2 * count].reshape(-1, 2)
    lower = raw[2 + 2 * count:].reshape(-1, 3)
    alnum = np.zeros(PAGES * 256, np.uint8)
    for start, end in ranges:
        alnum[start:end] = 1
    mapped = np.zeros((PAGES * 256, 2), np.uint32)
    mapped[lower[:, 0]] = lower[:, 1:]
    flat, page_of = _pages(alnum.reshape(PAGES, 256))
    _fill_class_pages(flat, page_of)
    flat, page_of = _pages(mapped.reshape(PAGES, 512))
    _fill_lower_pages(flat, page_of)
    for byte in range(256):
        ASCII[byte] = 1 if byte > 127 else ord(chr(byte).lower()) if alnum[byte] else 0


def _pages(rows):
    """The distinct rows, and for each row the number of its page."""
    seen = {}
    page_of = np.array([seen.setdefault(row.tobytes(), len(seen)) for row in rows], np.int64)
    if len(seen) > 256:
        raise ValueError("the unicode tables have more than 256 distinct pages")
    return np.frombuffer(b"".join(seen), rows.dtype), page_of


cdef int _fill_class_pages(const uint8_t[::1] flat, const int64_t[::1] page_of) except -1:
    global CLASSES
    cdef int i
    CLASSES = <uint8_t*>malloc(flat.shape[0])
    if CLASSES is NULL:
        raise MemoryError()
    memcpy(CLASSES, &flat[0], flat.shape[0])
    for i in range(PAGES):
        CLASS_PAGE[i] = <uint8_t>page_of[i]
    return 0


cdef int _fill_lower_pages(const uint32_t[::1] flat, const int64_t[::1] page_of) except -1:
    global LOWERS
    cdef int i
    LOWERS = <uint32_t*>malloc(flat.shape[0] * 4)
    if LOWERS is NULL:
        raise MemoryError()
    memcpy(LOWERS, &flat[0], flat.shape[0] * 4)
    for i in range(PAGES):
        LOWER_PAGE[i] = <uint8_t>page_of[i]
    return 0


_load_tables()


# -- one value -----------------------------------------------------------------------------------


cdef int scanner_init(Scanner* s, object tokenizer, int64_t limit) except -1:
    if tokenizer not in KINDS:
        raise ValueError(f"no byte scanner for the tokenizer {tokenizer!r}")
    s.kind = KINDS[tokenizer]
    s.limit = TERM_LIMIT if s.kind == RAW else min(max(limit, 1), TERM_LIMIT)
    s.scratch = <uint8_t*>malloc(2 * s.limit + 16) if s.kind == SIMPLE else NULL
    if s.kind == SIMPLE and s.scratch is NULL:
        raise MemoryError()
    return 0


cdef void scanner_free(Scanner* s) noexcept nogil:
    free(s.scratch)
    s.scratch = NULL


cdef void scanner_begin(Scanner* s, const uint8_t* text, int64_t size) noexcept nogil:
    s.text = text
    s.size = size
    s.pos = 0
    s.position = -1


cdef bint scanner_next(Scanner* s) noexcept nogil:
    """Step to the next token that is kept; False at the end of the text."""
    if s.kind == SIMPLE:
        return _next_simple(s)
    if s.kind == WHITESPACE:
        return _next_blank(s)
    if s.position >= 0 or s.size > s.limit:
        return False
    s.position = 0
    s.start = 0
    s.end = s.size
    s.token = s.text
    s.length = s.size
    return True


cdef inline bint _is_blank(uint8_t byte) noexcept nogil:
    return byte == 32 or byte == 9 or byte == 10 or byte == 12 or byte == 13


cdef bint _next_blank(Scanner* s) noexcept nogil:
    while True:
        while s.pos < s.size and _is_blank(s.text[s.pos]):
            s.pos += 1
        if s.pos >= s.size:
            return False
        s.start = s.pos
        while s.pos < s.size and not _is_blank(s.text[s.pos]):
            s.pos += 1
        s.position += 1
        s.end = s.pos
        if s.end - s.start <= s.limit:
            s.token = s.text + s.start
            s.length = s.end - s.start
            return True


cdef inline int _decode(const uint8_t* p, int64_t left, uint32_t* code) noexcept nogil:
    """Bytes of the code point at ``p`` (a byte above 127), or 0 if it is not UTF-8."""
    cdef uint8_t lead = p[0]
    if lead < 0xc2 or lead > 0xf4 or left < 2 or p[1] & 0xc0 != 0x80:
        return 0
    if lead < 0xe0:
        code[0] = (<uint32_t>(lead & 31) << 6) | (p[1] & 63)
        return 2
    if left < 3 or p[2] & 0xc0 != 0x80:
        return 0
    if lead < 0xf0:
        code[0] = (<uint32_t>(lead & 15) << 12) | (<uint32_t>(p[1] & 63) << 6) | (p[2] & 63)
        return 3
    if left < 4 or p[3] & 0xc0 != 0x80:
        return 0
    code[0] = (
        (<uint32_t>(lead & 7) << 18) | (<uint32_t>(p[1] & 63) << 12)
        | (<uint32_t>(p[2] & 63) << 6) | (p[3] & 63)
    )
    return 4 if code[0] < 0x110000 else 0


cdef inline int _encode(uint32_t code, uint8_t* out) noexcept nogil:
    if code < 0x80:
        out[0] = <uint8_t>code
        return 1
    if code < 0x800:
        out[0] = <uint8_t>(0xc0 | (code >> 6))
        out[1] = <uint8_t>(0x80 | (code & 63))
        return 2
    if code < 0x10000:
        out[0] = <uint8_t>(0xe0 | (code >> 12))
        out[1] = <uint8_t>(0x80 | ((code >> 6) & 63))
        out[2] = <uint8_t>(0x80 | (code & 63))
        return 3
    out[0] = <uint8_t>(0xf0 | (code >> 18))
    out[1] = <uint8_t>(0x80 | ((code >> 12) & 63))
    out[2] = <uint8_t>(0x80 | ((code >> 6) & 63))
    out[3] = <uint8_t>(0x80 | (code & 63))
    return 4


cdef inline bint _is_alnum(uint32_t code) noexcept nogil:
    return CLASSES[(<size_t>CLASS_PAGE[code >> 8] << 8) | (code & 255)]


cdef inline int _lower(const uint8_t* p, int size, uint32_t code, uint8_t* out) noexcept nogil:
    """Write the lower-case form of a code point that takes ``size`` bytes at ``p``."""
    cdef const uint32_t* entry = (
        LOWERS + ((<size_t>LOWER_PAGE[code >> 8] << 9) | ((code & 255) << 1))
    )
    cdef int written
    if entry[0] == 0:
        memcpy(out, p, size)
        return size
    written = _encode(entry[0], out)
    if entry[1]:
        written += _encode(entry[1], out + written)
    return written


cdef inline void _skip_separators(Scanner* s) noexcept nogil:
    cdef uint8_t mapped
    cdef uint32_t code
    cdef int size
    while s.pos < s.size:
        mapped = ASCII[s.text[s.pos]]
        if mapped > 1:
            return
        size = 1
        if mapped == 1:
            size = _decode(s.text + s.pos, s.size - s.pos, &code)
            if size and _is_alnum(code):
                return
        s.pos += size if size else 1


cdef bint _next_simple(Scanner* s) noexcept nogil:
    cdef uint8_t mapped
    cdef uint32_t code
    cdef int size
    cdef int64_t length
    while True:
        _skip_separators(s)
        if s.pos >= s.size:
            return False
        s.start = s.pos
        length = 0
        while s.pos < s.size:
            mapped = ASCII[s.text[s.pos]]
            if mapped == 0:
                break
            size = 1
            if mapped == 1:
                size = _decode(s.text + s.pos, s.size - s.pos, &code)
                if size == 0 or not _is_alnum(code):
                    break
            if s.pos + size - s.start <= s.limit:
                if mapped == 1:
                    length += _lower(s.text + s.pos, size, code, s.scratch + length)
                else:
                    s.scratch[length] = mapped
                    length += 1
            s.pos += size
        s.position += 1
        s.end = s.pos
        if s.end - s.start <= s.limit and length <= TERM_LIMIT:
            s.token = s.scratch
            s.length = length
            return True


# -- whole arrays --------------------------------------------------------------------------------


cdef tuple _string_buffers(object array):
    """(offsets, data, validity or None, first, rows) of a string array, lengths checked."""
    import pyarrow as pa

    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    wide = pa.types.is_large_string(array.type)
    if not wide and not pa.types.is_string(array.type):
        raise TypeError(f"an array of {array.type} has no tokens")
    validity, offset_buffer, data = array.buffers()
    rows = len(array)
    if rows == 0:
        return np.zeros(1, np.int32), np.empty(0, np.uint8), None, 0, 0
    offsets = np.frombuffer(offset_buffer, np.int64 if wide else np.int32)
    text = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
    bits = np.frombuffer(validity, np.uint8) if validity is not None and array.null_count else None
    last = array.offset + rows
    if len(offsets) <= last or (bits is not None and len(bits) * 8 < last):
        raise ValueError("an Arrow array is shorter than its length says")
    used = offsets[array.offset:last + 1]
    if used[0] < 0 or used[rows] > len(text) or (used[1:] < used[:rows]).any():
        raise ValueError("the offsets of an Arrow array leave its data")
    return offsets, text, bits, array.offset, rows


cdef list _chunks(object array):
    return array.chunks if hasattr(array, "chunks") else [array]


cdef class HashSet:
    def __cinit__(self):
        self.mask = 1023
        self.slots = <uint64_t*>calloc(1024, 8)
        if self.slots is NULL:
            raise MemoryError()

    def __dealloc__(self):
        free(self.slots)

    def __len__(self):
        return self.used + self.has_zero

    cdef int insert(self, uint64_t key) except -1 nogil:
        cdef uint64_t slot = (key ^ (key >> 32)) & self.mask
        if key == 0:
            self.has_zero = True
            return 0
        while self.slots[slot]:
            if self.slots[slot] == key:
                return 0
            slot = (slot + 1) & self.mask
        self.slots[slot] = key
        self.used += 1
        if self.used * 2 > self.mask:
            self.grow()
        return 0

    cdef int grow(self) except -1 nogil:
        cdef uint64_t* old = self.slots
        cdef uint64_t size = self.mask + 1
        cdef uint64_t mask = 4 * size - 1
        cdef uint64_t i, slot
        cdef uint64_t* fresh = <uint64_t*>calloc(4 * size, 8)
        if fresh is NULL:
            with gil:
                raise MemoryError()
        for i in range(size):
            if old[i]:
                slot = (old[i] ^ (old[i] >> 32)) & mask
                while fresh[slot]:
                    slot = (slot + 1) & mask
                fresh[slot] = old[i]
        self.slots = fresh
        self.mask = mask
        free(old)
        return 0

    def add(self, const uint64_t[::1] hashes):
        """Add hashes that were made elsewhere."""
        cdef int64_t i
        with nogil:
            for i in range(hashes.shape[0]):
                self.insert(hashes[i])

    def add_tokens(self, array, field, tokenizer, int64_t token_length=255, kind="xxh64"):
        """Add the key hash of every token of a string array."""
        cdef KeyPrefix prefix
        cdef Scanner scanner
        cdef bytes name = field.encode("utf-8")
        key_prefix(&prefix, hash_kind_id(kind), <const uint8_t*>name, len(name))
        scanner_init(&scanner, tokenizer, token_length)
        try:
            for chunk in _chunks(array):
                offsets, text, bits, first, rows = _string_buffers(chunk)
                if offsets.dtype == np.int32:
                    _hash_tokens[int32_t](self, &prefix, &scanner, offsets, text, bits, first, rows)
                else:
                    _hash_tokens[int64_t](self, &prefix, &scanner, offsets, text, bits, first, rows)
        finally:
            scanner_free(&scanner)

    def to_numpy(self):
        """The distinct hashes, ascending."""
        found = np.empty(len(self), np.uint64)
        cdef uint64_t[::1] out = found
        cdef uint64_t i
        cdef int64_t n = 0
        with nogil:
            for i in range(self.mask + 1):
                if self.slots[i]:
                    out[n] = self.slots[i]
                    n += 1
            if self.has_zero:
                out[n] = 0
        found.sort()
        return found


cdef int _hash_tokens(
    HashSet found, const KeyPrefix* prefix, Scanner* scanner, const offset_t[::1] offsets,
    const uint8_t[::1] text, const uint8_t[::1] bits, int64_t first, int64_t rows,
) except -1:
    cdef const uint8_t* base = &text[0] if text.shape[0] else NULL
    cdef bint all_valid = bits is None
    cdef int64_t row
    with nogil:
        for row in range(first, first + rows):
            if not all_valid and not (bits[row >> 3] >> (row & 7)) & 1:
                continue
            scanner_begin(scanner, base + offsets[row], offsets[row + 1] - offsets[row])
            while scanner_next(scanner):
                found.insert(hash_value(prefix, scanner.token, <size_t>scanner.length))
    return 0


cdef struct Sink:
    uint8_t* data
    int64_t size
    int64_t room
    int32_t* rows           # four columns: end of text in data, position, start, end
    int64_t count
    int64_t capacity


cdef int _sink_push(Sink* k, const Scanner* s) except -1 nogil:
    cdef int64_t room, capacity
    cdef void* grown
    if k.size + s.length > k.room:
        room = max(2 * k.room, k.size + s.length + 4096)
        grown = realloc(k.data, room)
        if grown is NULL:
            with gil:
                raise MemoryError()
        k.data = <uint8_t*>grown
        k.room = room
    if k.count == k.capacity:
        capacity = max(2 * k.capacity, 1024)
        grown = realloc(k.rows, capacity * 16)
        if grown is NULL:
            with gil:
                raise MemoryError()
        k.rows = <int32_t*>grown
        k.capacity = capacity
    if k.size + s.length > 0x7fffffff:
        with gil:
            raise OverflowError("more than 2 GiB of tokens in one array")
    memcpy(k.data + k.size, s.token, s.length)
    k.size += s.length
    k.rows[4 * k.count] = <int32_t>k.size
    k.rows[4 * k.count + 1] = <int32_t>s.position
    k.rows[4 * k.count + 2] = <int32_t>s.start
    k.rows[4 * k.count + 3] = <int32_t>s.end
    k.count += 1
    return 0


cdef int _collect(
    Sink* sink, Scanner* scanner, const offset_t[::1] offsets, const uint8_t[::1] text,
    const uint8_t[::1] bits, int64_t first, int64_t rows, int64_t[::1] bounds,
) except -1:
    cdef const uint8_t* base = &text[0] if text.shape[0] else NULL
    cdef bint all_valid = bits is None
    cdef int64_t row
    with nogil:
        for row in range(first, first + rows):
            if all_valid or (bits[row >> 3] >> (row & 7)) & 1:
                scanner_begin(scanner, base + offsets[row], offsets[row + 1] - offsets[row])
                while scanner_next(scanner):
                    _sink_push(sink, scanner)
            bounds[row - first + 1] = sink.count
    return 0


def tokenize(array, tokenizer, int64_t token_length=255):
    """The tokens of every value of a string array (nulls have none), flat."""
    cdef Scanner scanner
    cdef Sink sink
    sink.data = NULL
    sink.rows = NULL
    sink.size = sink.room = sink.count = sink.capacity = 0
    if hasattr(array, "combine_chunks"):
        import pyarrow as pa

        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], pa.string())
    offsets, text, bits, first, rows = _string_buffers(array)
    bounds = np.zeros(rows + 1, np.int64)
    scanner_init(&scanner, tokenizer, token_length)
    try:
        if offsets.dtype == np.int32:
            _collect[int32_t](&sink, &scanner, offsets, text, bits, first, rows, bounds)
        else:
            _collect[int64_t](&sink, &scanner, offsets, text, bits, first, rows, bounds)
        return _tokens_of(&sink, bounds)
    finally:
        scanner_free(&scanner)
        free(sink.data)
        free(sink.rows)


cdef object _tokens_of(Sink* sink, object bounds):
    import pyarrow as pa

    count = sink.count
    columns = np.empty((count, 4), np.int32)
    cdef int32_t[:, ::1] out = columns
    if count:
        memcpy(&out[0, 0], sink.rows, count * 16)
    data = (<char*>sink.data)[:sink.size] if sink.size else b""
    ends = np.zeros(count + 1, np.int32)
    ends[1:] = columns[:, 0]
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(pa.string(), count, buffers)
    rest = [np.ascontiguousarray(columns[:, i]) for i in (1, 2, 3)]
    return Tokens(bounds, texts, *rest)
