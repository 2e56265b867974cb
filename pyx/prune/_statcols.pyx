"""One number per entry out of many small JSON texts.

``scan_counts`` reads ``text[kind][column]`` from each text with a small JSON scanner. It never
guesses: a text that is not an object, a member that is missing, a value that is not a plain
natural number, keys with escapes, anything malformed is *unknown* (-1). When a key stands twice
the last one counts, as everywhere in JSON.
"""

from libc.string cimport memcmp

import numpy as np

from indextables.native._cursor cimport Cursor, cursor_init
from indextables.native._typedefs cimport int64_t, uint8_t, uint64_t

cdef enum:
    UNKNOWN = -1
    DEEPEST = 64


cdef inline int peek(const Cursor* c) noexcept nogil:
    """The next byte, -1 at the end."""
    return c.base[c.pos] if c.pos < c.size else -1


cdef inline void skip_space(Cursor* c) noexcept nogil:
    cdef int b = peek(c)
    while b == 32 or b == 9 or b == 10 or b == 13:
        c.pos += 1
        b = peek(c)


cdef inline bint expect(Cursor* c, int byte) noexcept nogil:
    """Pass ``byte`` if it comes next."""
    if peek(c) != byte:
        return False
    c.pos += 1
    return True


cdef bint scan_string(Cursor* c, const uint8_t** start, size_t* size, bint* plain) noexcept nogil:
    """Pass a string; ``plain`` says that its bytes are its characters."""
    cdef int b
    plain[0] = True
    if not expect(c, c'"'):
        return False
    start[0] = c.base + c.pos
    while True:
        b = peek(c)
        if b < 0x20:
            return False
        if b == c'"':
            size[0] = c.base + c.pos - start[0]
            c.pos += 1
            return True
        if b == c'\\':
            plain[0] = False
            c.pos += 1
            if peek(c) < 0:
                return False
        c.pos += 1


cdef bint skip_json(Cursor* c, int depth) noexcept nogil:
    """Pass one value of any kind."""
    cdef const uint8_t* start
    cdef size_t size
    cdef bint plain
    cdef int b
    cdef uint64_t begin
    if depth > DEEPEST:
        return False
    skip_space(c)
    b = peek(c)
    if b == c'"':
        return scan_string(c, &start, &size, &plain)
    if b == c'{' or b == c'[':
        return skip_container(c, b == c'{', depth)
    begin = c.pos
    while b > 32 and b != c',' and b != c'}' and b != c']' and b != c'"':
        c.pos += 1
        b = peek(c)
    return c.pos > begin


cdef bint skip_container(Cursor* c, bint is_object, int depth) noexcept nogil:
    cdef const uint8_t* start
    cdef size_t size
    cdef bint plain
    cdef int closing = c'}' if is_object else c']'
    c.pos += 1
    skip_space(c)
    if expect(c, closing):
        return True
    while True:
        skip_space(c)
        if is_object:
            if not scan_string(c, &start, &size, &plain):
                return False
            skip_space(c)
            if not expect(c, c':'):
                return False
        if not skip_json(c, depth + 1):
            return False
        skip_space(c)
        if expect(c, closing):
            return True
        if not expect(c, c','):
            return False


cdef int64_t scan_natural(Cursor* c) noexcept nogil:
    """A value that is a natural number of at most 18 digits, else ``UNKNOWN``; passed anyway."""
    cdef int64_t value = 0
    cdef int digits = 0
    cdef uint64_t begin
    cdef int b
    skip_space(c)
    begin = c.pos
    b = peek(c)
    while c'0' <= b <= c'9' and digits <= 18:
        value = 10 * value + (b - c'0')
        digits += 1
        c.pos += 1
        b = peek(c)
    if digits == 0 or digits > 18 or not (b <= 32 or b == c',' or b == c'}'):
        c.pos = begin
        return UNKNOWN if skip_json(c, 1) else -2
    if digits > 1 and c.base[begin] == c'0':
        return -2
    return value


cdef int64_t scan_member(
    Cursor* c, const uint8_t* name, size_t name_size, const uint8_t* inner, size_t inner_size,
    int level,
) noexcept nogil:
    """The count at ``name`` (and inside it at ``inner``) of the object that comes next.

    ``UNKNOWN`` when it is not there, -2 when the text is malformed.
    """
    cdef const uint8_t* start
    cdef size_t size = 0
    cdef bint plain = True
    cdef int64_t found = UNKNOWN
    skip_space(c)
    if peek(c) != c'{':
        return UNKNOWN if skip_json(c, 1) else -2
    c.pos += 1
    skip_space(c)
    if expect(c, c'}'):
        return UNKNOWN
    while True:
        skip_space(c)
        if not scan_string(c, &start, &size, &plain):
            return -2
        skip_space(c)
        if not expect(c, c':') or not plain:
            return -2
        if size == name_size and memcmp(start, name, size) == 0:
            if level == 0:
                found = scan_member(c, inner, inner_size, NULL, 0, 1)
            else:
                found = scan_natural(c)
            if found == -2:
                return -2
        elif not skip_json(c, 1):
            return -2
        skip_space(c)
        if expect(c, c'}'):
            return found
        if not expect(c, c','):
            return -2


def scan_counts(
    const uint8_t[::1] data not None,
    const int64_t[::1] offsets not None,
    const uint8_t[::1] valid not None,
    str kind not None,
    str column not None,
):
    """``text[kind][column]`` of each text, -1 where it is not known."""
    cdef bytes outer = kind.encode()
    cdef bytes inner = column.encode()
    cdef const uint8_t* outer_at = outer
    cdef const uint8_t* inner_at = inner
    cdef size_t outer_size = len(outer)
    cdef size_t inner_size = len(inner)
    cdef Py_ssize_t row
    cdef Py_ssize_t n = valid.shape[0]
    cdef int64_t value
    cdef Cursor c
    if offsets.shape[0] != n + 1:
        raise ValueError("offsets and validity differ in number")
    out = np.full(n, UNKNOWN, np.int64)
    cdef int64_t[::1] counts = out
    for row in range(n):
        if not 0 <= offsets[row] <= offsets[row + 1] <= data.shape[0]:
            raise ValueError("a text lies outside its buffer")
    with nogil:
        for row in range(n):
            if not valid[row] or offsets[row] == offsets[row + 1]:
                continue
            cursor_init(&c, &data[offsets[row]], offsets[row + 1] - offsets[row], offsets[row])
            value = scan_member(&c, outer_at, outer_size, inner_at, inner_size, 0)
            skip_space(&c)
            if value >= 0 and c.pos == c.size:
                counts[row] = value
    return out
