"""Binary Fuse filters of 8 and 16 bits: build, probe, and the postcard form of FXRF files.

A filter never answers no for a key it was built from; for any other key it answers yes once in
256 (65536) times. In postcard form a filter is five LEB128 integers (seed, segment length, its
mask, segment count length, number of slots) and the slots: bytes as they are for 8 bits, one
LEB128 integer each for 16 bits. Slots of an 8-bit filter are used where they lie, not copied.
"""

import sys

import numpy as np

from indextables.native._cursor cimport (
    corrupt_at, cursor_left, cursor_over, cursor_take, read_varint,
)
from indextables.native._fuse_build cimport construct, shape_for

cdef enum:
    SEGMENT_LENGTH_MAX = 1 << 30

cdef bint NATIVE_IS_LITTLE = sys.byteorder == "little"
cdef bytes NO_SLOTS = bytes(24)


cdef int check_shape(
    const Shape* shape, uint64_t mask, uint64_t slots, uint64_t offset
) except -1:
    """Raise unless every position computed from ``shape`` lies inside ``slots`` slots."""
    cdef uint64_t length = shape.segment_length
    if length == 0 or length & (length - 1) or length > SEGMENT_LENGTH_MAX:
        return corrupt_at(offset, b"segment length of the filter is not a power of two")
    if mask != length - 1:
        return corrupt_at(offset, b"segment mask of the filter contradicts its segment length")
    if shape.segment_count_length == 0 or shape.segment_count_length & (length - 1):
        return corrupt_at(offset, b"segments of the filter have no whole number")
    if slots != shape.segment_count_length + 2 * length or slots > 0xffffffff:
        return corrupt_at(offset, b"number of slots contradicts the filter's segments")
    return 0


cdef int _read_shape(Cursor* c, Shape* shape) except -1:
    """Read and check the five integers before the slots."""
    cdef uint64_t offset = c.origin + c.pos
    cdef uint64_t length, mask, count_length, slots
    shape.seed = read_varint(c)
    length = read_varint(c)
    mask = read_varint(c)
    count_length = read_varint(c)
    slots = read_varint(c)
    if length > 0xffffffff or count_length > 0xffffffff:
        return corrupt_at(offset, b"filter dimensions beyond 32 bits")
    shape.segment_length = <uint32_t>length
    shape.segment_count_length = <uint32_t>count_length
    check_shape(shape, mask, slots, offset)
    shape.slots = <uint32_t>slots
    return 0


cdef int _decode_slots(Cursor* c, uint16_t[::1] slots) except -1 nogil:
    """Read one LEB128 integer for each 16-bit slot."""
    cdef uint64_t value
    cdef int64_t i
    for i in range(slots.shape[0]):
        value = read_varint(c)
        if value > 0xffff:
            return corrupt_at(c.origin + c.pos, b"slot of a 16-bit filter beyond 16 bits")
        slots[i] = <uint16_t>value
    return 0


cdef BinaryFuse read_filter(type cls, object owner, Cursor* c, bint raw16):
    """The filter that fills the rest of ``c``, a cursor over the memory of ``owner``.

    ``raw16``: slots of a 16-bit filter are two bytes each, little-endian.
    """
    cdef BinaryFuse filter = cls.__new__(cls)
    cdef uint64_t body
    _read_shape(c, &filter.shape)
    body = filter.shape.slots
    if raw16 and filter.width == 2:
        body *= 2
    elif filter.width == 2:
        return _read_packed(filter, c)
    if cursor_left(c) != body:
        corrupt_at(c.origin + c.pos, b"slots of the filter do not fill its bytes")
    filter.offset = c.origin + c.pos
    filter.owner = owner
    filter.data = cursor_take(c, body)
    if raw16 and filter.width == 2 and (<size_t>filter.data & 1 or not NATIVE_IS_LITTLE):
        _own(filter, filter.slots.astype("<u2").astype(np.uint16))
    return filter


cdef BinaryFuse _read_packed(BinaryFuse filter, Cursor* c):
    """Decode the slots of a 16-bit filter."""
    cdef uint16_t[::1] decoded
    if cursor_left(c) < filter.shape.slots:
        corrupt_at(c.origin + c.pos, b"slots of the filter are cut off")
    slots = np.empty(filter.shape.slots, np.uint16)
    decoded = slots
    with nogil:
        _decode_slots(c, decoded)
    if cursor_left(c):
        corrupt_at(c.origin + c.pos, b"slots of the filter do not fill its bytes")
    _own(filter, slots)
    return filter


cdef int _own(BinaryFuse filter, object slots) except -1:
    """Let ``filter`` keep and use the slots of a numpy array."""
    cdef const uint8_t[::1] view = slots.view(np.uint8)
    filter.owner = memoryview(slots)
    filter.offset = 0
    filter.data = &view[0]
    return 0


cdef bytes _encode_slots(const uint16_t[::1] slots):
    """One LEB128 integer for each slot."""
    packed = np.empty(3 * slots.shape[0], np.uint8)
    cdef uint8_t[::1] out = packed
    cdef int64_t size = 0
    cdef int64_t i
    cdef uint32_t value
    with nogil:
        for i in range(slots.shape[0]):
            value = slots[i]
            while value > 127:
                out[size] = <uint8_t>(value | 128)
                size += 1
                value >>= 7
            out[size] = <uint8_t>value
            size += 1
    return packed[:size].tobytes()


cdef bytes _encode_shape(const Shape* shape):
    """The five LEB128 integers before the slots."""
    out = bytearray()
    length = shape.segment_length
    for value in (shape.seed, length, length - 1, shape.segment_count_length, shape.slots):
        while value > 127:
            out.append(value & 127 | 128)
            value >>= 7
        out.append(value)
    return bytes(out)


def _restore(cls, raw, num_keys):
    cdef Cursor c
    cdef BinaryFuse filter
    cdef const uint8_t[::1] view = raw
    cursor_over(&c, view, 0)
    filter = read_filter(cls, memoryview(raw), &c, True)
    filter.keys = -1 if num_keys is None else num_keys
    return filter


def index_functions(uint64_t key, uint64_t seed, uint32_t segment_length, uint32_t count_length):
    """(hash, three slots, 16-bit fingerprint) of a key in a shape: what the vectors pin."""
    cdef Shape shape = Shape(seed, segment_length, count_length, 0)
    cdef uint64_t h = fmix64(key + seed)
    cdef Slots3 at = slots_of(&shape, h)
    return h, (at.a, at.b, at.c), fingerprint(h)


cdef void _holds_many(
    const Shape* shape, const slot_t* slots, const uint64_t[::1] keys, uint8_t[::1] out
) noexcept nogil:
    cdef Shape local = shape[0]
    cdef int64_t i
    for i in range(keys.shape[0]):
        out[i] = holds(&local, slots, keys[i])


cdef class BinaryFuse:
    """What 8 and 16 bit filters share; a new one is the filter of no keys."""

    def __cinit__(self):
        cdef const uint8_t[::1] view = NO_SLOTS
        self.shape = shape_for(0, False)
        self.width = 1
        self.keys = -1
        self.owner = memoryview(NO_SLOTS)
        self.data = &view[0]

    cdef bint has(self, uint64_t key) noexcept nogil:
        if self.width == 1:
            return holds(&self.shape, <const uint8_t*>self.data, key)
        return holds(&self.shape, <const uint16_t*>self.data, key)

    @classmethod
    def build(cls, keys, *, bint round_segments=False, uint64_t sized_for=0, uint64_t first_seed=0):
        """The filter of a set of uint64 keys; repeats are removed first.

        ``round_segments``: allow up to 4 % more segments (or one more), so that filters of like
        size share one shape and are probed together (see ``FilterSet``).
        ``sized_for``: take the shape of at least so many keys. ``first_seed``: number of the
        first seed tried.
        """
        cdef BinaryFuse filter = cls.__new__(cls)
        distinct = np.ascontiguousarray(keys, np.uint64)
        if distinct.ndim != 1:
            raise ValueError("keys must be a one-dimensional array")
        if filter.width == 1:
            slots, filter.keys = construct[uint8_t](
                distinct, 0, &filter.shape, sized_for, first_seed, round_segments
            )
        else:
            slots, filter.keys = construct[uint16_t](
                distinct, 0, &filter.shape, sized_for, first_seed, round_segments
            )
        _own(filter, slots)
        return filter

    @classmethod
    def from_postcard(cls, buffer, num_keys=None):
        """Read a filter that fills ``buffer``; an 8-bit filter keeps using its memory."""
        cdef Cursor c
        cdef const uint8_t[::1] view = buffer
        cursor_over(&c, view, 0)
        cdef BinaryFuse filter = read_filter(cls, memoryview(buffer).cast("B"), &c, False)
        if num_keys is not None:
            filter.keys = num_keys
        return filter

    def to_postcard(self):
        """The filter's bytes as FXRF versions 1 and 2 hold them."""
        head = _encode_shape(&self.shape)
        return head + (self.slots.tobytes() if self.width == 1 else _encode_slots(self.slots))

    def to_raw(self):
        """The filter's bytes as FXRF version 3 holds them: slots little-endian, not packed."""
        return _encode_shape(&self.shape) + self.slots.astype(f"<u{self.width}").tobytes()

    def contains(self, uint64_t key):
        """Whether ``key`` may be in the set."""
        return self.has(key)

    def __contains__(self, uint64_t key):
        return self.has(key)

    def contains_many(self, keys):
        """One bool for each key of a uint64 array."""
        wanted = np.ascontiguousarray(keys, np.uint64)
        out = np.empty(wanted.shape[0], np.bool_)
        cdef const uint64_t[::1] view = wanted
        cdef uint8_t[::1] answers = out.view(np.uint8)
        with nogil:
            if self.width == 1:
                _holds_many(&self.shape, <const uint8_t*>self.data, view, answers)
            else:
                _holds_many(&self.shape, <const uint16_t*>self.data, view, answers)
        return out

    @property
    def seed(self):
        return self.shape.seed

    @property
    def segment_length(self):
        return self.shape.segment_length

    @property
    def segment_count_length(self):
        return self.shape.segment_count_length

    @property
    def num_keys(self):
        """How many keys the filter was built from; None where a file does not say."""
        return None if self.keys < 0 else self.keys

    @property
    def nbytes(self):
        """Bytes of the slots in memory."""
        return <uint64_t>self.shape.slots * self.width

    @property
    def slots(self):
        """The slots as a read-only numpy array over the filter's memory."""
        slots = np.frombuffer(self.owner, np.uint8, self.nbytes, self.offset)
        slots.flags.writeable = False
        return slots.view(np.uint8 if self.width == 1 else np.uint16)

    def __reduce__(self):
        return _restore, (type(self), self.to_raw(), self.num_keys)

    def __repr__(self):
        return f"{type(self).__name__}({self.num_keys} keys, {self.nbytes} bytes)"


cdef class BinaryFuse8(BinaryFuse):
    """A filter of 8-bit fingerprints: 1 in 256 absent keys passes."""

    def __cinit__(self):
        self.width = 1


cdef class BinaryFuse16(BinaryFuse):
    """A filter of 16-bit fingerprints: 1 in 65536 absent keys passes."""

    def __cinit__(self):
        self.width = 2
