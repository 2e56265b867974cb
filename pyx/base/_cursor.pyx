"""The error path of the cursor, and a small Python face for tests."""

from indextables.errors import CorruptFileError


cdef int corrupt_at(uint64_t offset, const char* reason) except -1 nogil:
    """Raise ``CorruptFileError`` for the byte at ``offset`` of the file."""
    with gil:
        raise CorruptFileError(reason.decode("ascii"), offset=offset)


cdef int cursor_fail(const Cursor* c, const char* reason) except -1 nogil:
    """Raise ``CorruptFileError`` for the byte the cursor stands on."""
    return corrupt_at(c.origin + c.pos, reason)


cdef object _read_one(Cursor* c, str kind):
    if kind == "u8":
        return read_u8(c)
    if kind == "u16":
        return read_u16(c)
    if kind == "u32":
        return read_u32(c)
    if kind == "u64":
        return read_u64(c)
    if kind == "i32":
        return read_i32(c)
    if kind == "i64":
        return read_i64(c)
    if kind == "f64":
        return read_f64(c)
    if kind == "u16_be":
        return read_u16_be(c)
    if kind == "u32_be":
        return read_u32_be(c)
    if kind == "u64_be":
        return read_u64_be(c)
    if kind == "i64_be":
        return read_i64_be(c)
    if kind == "f64_be":
        return read_f64_be(c)
    if kind == "varint":
        return read_varint(c)
    if kind == "zigzag":
        return read_zigzag(c)
    raise ValueError(f"unknown kind of value: {kind}")


def read_all(const uint8_t[::1] buffer, str kind, uint64_t origin=0):
    """Read ``buffer`` to its end as values of one kind: the tests' door to the cursor."""
    cdef Cursor c
    cursor_over(&c, buffer, origin)
    out = []
    while cursor_left(&c):
        out.append(_read_one(&c, kind))
    return out
