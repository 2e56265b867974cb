"""Columns to Avro: the writer's half of the file-entry codec, for one fixed schema at a time."""

from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcpy


from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t

KINDS = {
    "long": PUT_LONG, "boolean": PUT_BOOLEAN, "optional_long": PUT_OPTIONAL_LONG,
    "text": PUT_TEXT, "optional_text": PUT_OPTIONAL_TEXT, "map": PUT_MAP,
    "optional_map": PUT_OPTIONAL_MAP, "optional_raw": PUT_OPTIONAL_RAW,
}

cdef enum:
    UNKNOWN = -1


cdef inline int reserve(Out* o, uint64_t more) except -1 nogil:
    cdef uint8_t* grown
    cdef uint64_t size
    if o.used + more <= o.size:
        return 0
    size = 2 * (o.used + more) + 4096
    grown = <uint8_t*>realloc(o.data, size)
    if grown == NULL:
        with gil:
            raise MemoryError()
    o.data = grown
    o.size = size
    return 0


cdef inline void put_number(Out* o, int64_t value) noexcept nogil:
    """A zigzag varint; ten bytes must be reserved."""
    cdef uint64_t v = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    while v >= 128:
        o.data[o.used] = <uint8_t>(v | 128)
        o.used += 1
        v >>= 7
    o.data[o.used] = <uint8_t>v
    o.used += 1


cdef inline int put_bytes(Out* o, const TextSource* t, int64_t row, bint counted) except -1 nogil:
    """The bytes of one text, after their length when ``counted``."""
    cdef int64_t start = t.offsets[row]
    cdef uint64_t n = <uint64_t>(t.offsets[row + 1] - start)
    reserve(o, n + 10)
    if counted:
        put_number(o, <int64_t>n)
    if n:
        memcpy(o.data + o.used, t.data + start, n)
    o.used += n
    return 0


cdef int put_map(Out* o, const FieldSource* f, int64_t row) except -1 nogil:
    cdef uint32_t k
    cdef int64_t count = 0
    for k in range(f.count):
        count += f.texts[k].valid[row] != 0
    reserve(o, 20)
    if count:
        put_number(o, count)
        for k in range(f.count):
            if f.texts[k].valid[row]:
                reserve(o, f.texts[k].key_size)
                memcpy(o.data + o.used, f.texts[k].key, f.texts[k].key_size)
                o.used += f.texts[k].key_size
                put_bytes(o, &f.texts[k], row, True)
        reserve(o, 10)
    put_number(o, 0)
    return 0


cdef int put_field(Out* o, const FieldSource* f, int64_t row) except -1 nogil:
    reserve(o, 20)
    if f.kind == PUT_LONG:
        put_number(o, f.ints[row])
    elif f.kind == PUT_BOOLEAN:
        o.data[o.used] = f.ints[row] == 1
        o.used += 1
    elif f.kind == PUT_OPTIONAL_LONG:
        put_number(o, f.ints[row] != UNKNOWN)
        if f.ints[row] != UNKNOWN:
            put_number(o, f.ints[row])
    elif f.kind == PUT_TEXT:
        put_bytes(o, f.texts, row, True)
    elif f.kind == PUT_MAP:
        put_map(o, f, row)
    elif f.kind == PUT_OPTIONAL_MAP:
        put_number(o, f.present[row] != 0)
        if f.present[row]:
            put_map(o, f, row)
    else:
        if f.count == 0 or not f.texts[0].valid[row]:
            put_number(o, 0)
        else:
            put_number(o, 1)
            put_bytes(o, f.texts, row, f.kind == PUT_OPTIONAL_TEXT)
    return 0


cdef class EntryEncoder:
    """Encodes rows of the columns it was made of.

    ``fields`` lists ``(kind, values, texts)`` in schema order: ``values`` are int64 (integers and
    booleans, -1 is NULL) or uint8 (which rows have the map), ``texts`` lists ``(key, column)``
    where a column has ``data``, ``offsets`` and ``valid``; the key is ``None`` outside of maps.
    """

    cdef FieldSource* fields
    cdef uint32_t count
    cdef readonly Py_ssize_t rows
    cdef list _alive

    def __init__(self, list fields not None, Py_ssize_t rows):
        cdef uint32_t k
        self.rows = rows
        self._alive = []
        self.fields = <FieldSource*>calloc(len(fields) + 1, sizeof(FieldSource))
        if self.fields == NULL:
            raise MemoryError()
        self.count = len(fields)
        for k in range(self.count):
            kind, values, texts = fields[k]
            self._bind(&self.fields[k], KINDS[kind], values, texts)

    def __dealloc__(self):
        cdef uint32_t k
        if self.fields:
            for k in range(self.count):
                free(self.fields[k].texts)
        free(self.fields)

    cdef int _bind(self, FieldSource* f, int kind, object values, list texts) except -1:
        cdef const int64_t[::1] ints
        cdef const uint8_t[::1] present
        cdef uint32_t k
        f.kind = kind
        if kind <= PUT_OPTIONAL_LONG:
            ints = values
            self._check(ints.shape[0] == self.rows)
            f.ints = &ints[0] if self.rows else NULL
        if kind == PUT_OPTIONAL_MAP:
            present = values
            self._check(present.shape[0] == self.rows)
            f.present = &present[0] if self.rows else NULL
        self._alive.append(values)
        self._check(kind != PUT_TEXT or len(texts) == 1)
        f.texts = <TextSource*>calloc(len(texts) + 1, sizeof(TextSource))
        if f.texts == NULL:
            raise MemoryError()
        f.count = len(texts)
        for k in range(f.count):
            key, column = texts[k]
            self._bind_text(&f.texts[k], key, column)
        return 0

    cdef int _bind_text(self, TextSource* t, object key, object column) except -1:
        cdef const uint8_t[::1] data = column.data
        cdef const int64_t[::1] offsets = column.offsets
        cdef const uint8_t[::1] valid = column.valid
        cdef Py_ssize_t row
        cdef bytes spelled = b"" if key is None else _spelled(key)
        self._check(offsets.shape[0] == self.rows + 1 and valid.shape[0] == self.rows)
        self._check(offsets[0] >= 0 and offsets[self.rows] <= data.shape[0])
        for row in range(self.rows):
            self._check(offsets[row] <= offsets[row + 1])
        self._alive.append((spelled, data, offsets, valid))
        t.key = <const uint8_t*><const char*>spelled
        t.key_size = len(spelled)
        t.data = &data[0] if data.shape[0] else NULL
        t.offsets = &offsets[0]
        t.valid = &valid[0] if self.rows else NULL
        return 0

    cdef int _check(self, bint holds) except -1:
        if not holds:
            raise ValueError("columns do not fit each other")
        return 0

    def encode(self, const int64_t[::1] rows not None):
        """The entries of these rows, one after the other."""
        cdef Out o
        cdef Py_ssize_t i
        cdef uint32_t k
        o.data = NULL
        o.size = 0
        o.used = 0
        for i in range(rows.shape[0]):
            if not 0 <= rows[i] < self.rows:
                raise IndexError("no such row")
        try:
            with nogil:
                for i in range(rows.shape[0]):
                    for k in range(self.count):
                        put_field(&o, &self.fields[k], rows[i])
            return (<const char*>o.data)[:o.used] if o.used else b""
        finally:
            free(o.data)


cdef bytes _spelled(str key):
    """A map key in Avro form: its length and its bytes."""
    cdef bytes text = key.encode()
    cdef uint64_t v = <uint64_t>len(text) << 1
    out = bytearray()
    while v >= 128:
        out.append((v & 127) | 128)
        v >>= 7
    out.append(v)
    return bytes(out) + text
