"""The FXRF container (``fuse_filters.bin``): the filters of many splits in one file.

A header of 32 bytes, then the payload: for each filter {offset u64, size u64, number of keys u64}
with offsets counted from the end of this table, then the filters. Integers are little-endian.

=====  ======================================  =================================================
bytes  versions 1 and 2                        version 3
=====  ======================================  =================================================
0      ``FXRF``                                the same
4      version                                 3
8      number of filters                       the same
12     1 Binary Fuse 8, 2 Binary Fuse 16       the same
16     zstd level of the payload, 0 stored     the same
17     0 (the hash is fxhash64)                hash kind: 0 fxhash64, 1 xxh64
20     payload length (version 2)              CRC-32C of bytes 0-19, 24-31 and the payload
24     0                                       payload length u64
=====  ======================================  =================================================

Filters are in postcard form; in version 3 the slots of 16-bit filters are plain u16. The payload
length is that before compression. Version 3 carries a checksum because a flipped bit in a filter
would hide rows. A compressed payload may not be more than ``RATIO_MAX`` times its file.
"""

import struct

from indextables.errors import CorruptFileError

from indextables.native._crc32c cimport crc32c_extend
from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_left, cursor_over, cursor_seek, cursor_skip,
    cursor_sub, cursor_take, read_u8, read_u32, read_u64,
)
from indextables.native._fuse cimport BinaryFuse, BinaryFuse8, BinaryFuse16, read_filter
from indextables.native._hash cimport HASH_FXHASH64, hash_kind_id
from indextables.native._typedefs cimport int64_t

from indextables.native._hash import HASH_NAMES

cdef enum:
    HEADER_SIZE = 32
    ENTRY_SIZE = 24
    CHECKSUM_AT = 20
    RATIO_MAX = 16
    WINDOW_MAX = 1 << 23
    VERSION_MAX = 3
    LEVEL_MAX = 19              # beyond it zstd's window exceeds WINDOW_MAX


cdef int _check_reserved(const uint8_t[::1] head) except -1:
    """Versions 1 and 2 leave bytes 0; a version 3 file damaged into one of them does not."""
    cdef int at
    cdef int first = 16 if head[4] == 1 else 17
    for at in range(first, HEADER_SIZE):
        if head[at] and not (head[4] == 2 and 20 <= at < 24):
            return corrupt_at(at, b"reserved bytes of the header are not 0")
    return 0


cdef int _read_header(Cursor* c, Header* header) except -1:
    cdef const uint8_t* magic = cursor_take(c, 4)
    if magic[:4] != b"FXRF":
        return corrupt_at(0, b"not an FXRF file")
    header.version = read_u32(c)
    if header.version < 1 or header.version > VERSION_MAX:
        return corrupt_at(4, b"unknown FXRF version")
    header.filters = read_u32(c)
    header.filter_type = read_u32(c)
    if header.filter_type != 1 and header.filter_type != 2:
        return corrupt_at(12, b"unknown filter type")
    header.compression = read_u8(c)
    header.hash_kind = read_u8(c)
    cursor_skip(c, 2)
    header.checksum = read_u32(c)
    header.payload_size = read_u64(c)
    if header.version < 3:
        header.hash_kind = HASH_FXHASH64
        header.payload_size = header.checksum
        header.checksum = 0
    elif header.hash_kind not in HASH_NAMES:
        return corrupt_at(17, b"unknown hash kind")
    return 0


cdef object _decompress(const Header* header, object packed, uint64_t file_size):
    """Unpack a zstd payload of known size, without ever making more than that."""
    import zstandard

    if header.payload_size > RATIO_MAX * file_size:
        corrupt_at(CHECKSUM_AT, b"compressed payload claims too large a size")
    try:
        claimed = zstandard.frame_content_size(packed)
        if claimed not in (-1, header.payload_size):
            corrupt_at(HEADER_SIZE, b"compressed payload contradicts the header's size")
        payload = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX).decompress(
            packed, max_output_size=header.payload_size, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise CorruptFileError(f"payload is not zstd: {error}", offset=HEADER_SIZE) from error
    if <uint64_t>len(payload) != header.payload_size:
        corrupt_at(HEADER_SIZE, b"compressed payload contradicts the header's size")
    return payload


cdef object _payload_of(const Header* header, object whole):
    """The uncompressed payload of a file, a part of ``whole`` where it is stored as it is."""
    packed = whole[HEADER_SIZE:]
    if header.compression:
        if header.payload_size == 0:
            return memoryview(b"")
        return memoryview(_decompress(header, packed, len(whole)))
    stored = <uint64_t>len(packed)
    if header.version == 2:
        stored &= 0xffffffff
    if header.version > 1 and stored != header.payload_size:
        corrupt_at(CHECKSUM_AT, b"payload is not as long as the header says")
    return packed


cdef uint32_t _checksum(const uint8_t[::1] head, const uint8_t[::1] payload) noexcept nogil:
    """CRC-32C of the header without the checksum's own bytes, and of the payload."""
    cdef uint32_t crc = crc32c_extend(0, &head[0], CHECKSUM_AT)
    crc = crc32c_extend(crc, &head[CHECKSUM_AT + 4], HEADER_SIZE - CHECKSUM_AT - 4)
    if payload.shape[0]:
        crc = crc32c_extend(crc, &payload[0], <size_t>payload.shape[0])
    return crc


cdef int _check_index(const Header* header, const uint8_t[::1] payload) except -1 nogil:
    """Raise unless every entry of the table lies inside the payload."""
    cdef Cursor c
    cdef uint64_t table = <uint64_t>header.filters * ENTRY_SIZE
    cdef uint64_t body, offset, size, keys
    cdef uint32_t _entry
    cursor_over(&c, payload, HEADER_SIZE)
    if table > cursor_left(&c):
        return cursor_fail(&c, b"table of filters is cut off")
    body = cursor_left(&c) - table
    for _entry in range(header.filters):
        offset = read_u64(&c)
        size = read_u64(&c)
        keys = read_u64(&c)
        if offset > body or size > body - offset:
            return cursor_fail(&c, b"filter lies outside the payload")
        if keys >> 62:
            return cursor_fail(&c, b"impossible number of keys")
    return 0


cdef class FxrfFile:
    """The filters of one file, each read (not copied) when it is asked for."""

    def __init__(self):
        raise TypeError("use read_fxrf to open an FXRF file")

    cdef object _filter(self, uint64_t index):
        cdef Cursor c, inner
        cdef uint64_t offset, size, keys
        cdef BinaryFuse filter
        cursor_over(&c, self.payload, 0)
        cursor_seek(&c, index * ENTRY_SIZE)
        offset = read_u64(&c)
        size = read_u64(&c)
        keys = read_u64(&c)
        cursor_seek(&c, <uint64_t>self.header.filters * ENTRY_SIZE + offset)
        cursor_sub(&c, size, &inner)
        filter = read_filter(self.filter_class, self.owner, &inner, self.header.version >= 3)
        filter.keys = <int64_t>keys
        return filter

    def __len__(self):
        return self.header.filters

    def __getitem__(self, int64_t index):
        if index < 0:
            index += self.header.filters
        if index < 0 or index >= self.header.filters:
            raise IndexError("no filter of that number")
        return self._filter(<uint64_t>index)

    def __iter__(self):
        for index in range(self.header.filters):
            yield self._filter(index)

    @property
    def version(self):
        return self.header.version

    @property
    def hash_kind(self):
        """The name of the hash by which keys were made."""
        return HASH_NAMES[self.header.hash_kind]

    @property
    def filter_type(self):
        return self.filter_class.__name__

    @property
    def compression(self):
        """The zstd level of the payload, 0 where it is stored as it is."""
        return self.header.compression

    @property
    def nbytes(self):
        """Bytes of the payload in memory."""
        return self.payload.shape[0]


def read_fxrf(buffer):
    """Open an FXRF file of version 1, 2 or 3; the filters keep using ``buffer``.

    Raises ``CorruptFileError`` for anything that does not fit, before the first filter is read.
    """
    cdef Cursor c
    cdef const uint8_t[::1] view = buffer
    cdef FxrfFile file = FxrfFile.__new__(FxrfFile)
    cursor_over(&c, view, 0)
    _read_header(&c, &file.header)
    if file.header.version < 3:
        _check_reserved(view)
    file.owner = _payload_of(&file.header, memoryview(buffer).cast("B"))
    file.payload = file.owner
    file.filter_class = BinaryFuse8 if file.header.filter_type == 1 else BinaryFuse16
    with nogil:
        if file.header.version >= 3 and _checksum(view, file.payload) != file.header.checksum:
            corrupt_at(CHECKSUM_AT, b"checksum does not fit the filters")
        _check_index(&file.header, file.payload)
    return file


def write_fxrf(filters, *, version=3, hash_kind="fxhash64", compression=0, num_keys=None,
               filter_type=None):
    """The bytes of an FXRF file.

    ``hash_kind``: how the keys were made; only version 3 can say anything but fxhash64.
    ``compression``: a zstd level, kept only where it makes the file smaller; 0 stores.
    ``num_keys``: what the table says of each filter, by default the filters' own numbers.
    ``filter_type``: needed only to write no filters at all as 16-bit ones.
    """
    items = list(filters)
    cls = _one_class(items, filter_type)
    kind = hash_kind_id(hash_kind)
    if version not in (1, 2, 3) or (version < 3 and kind != HASH_FXHASH64):
        raise ValueError(f"FXRF version {version} cannot hold filters of {hash_kind} keys")
    if version == 1 and compression:
        raise ValueError("FXRF version 1 is never compressed")
    if not 0 <= compression <= LEVEL_MAX:
        raise ValueError(f"zstd level must be 0 to {LEVEL_MAX}")
    if num_keys is None:
        num_keys = [item.num_keys or 0 for item in items]
    payload = _payload(items, version, num_keys)
    packed, level = _compress(payload, compression)
    head = _header(version, len(items), 1 if cls is BinaryFuse8 else 2, level, kind, payload)
    return head + packed


cdef type _one_class(list filters, object filter_type):
    """The class all filters share."""
    classes = {type(item) for item in filters}
    named = {"BinaryFuse8": BinaryFuse8, "BinaryFuse16": BinaryFuse16, None: BinaryFuse8}
    if not classes:
        return named[filter_type]
    cls = classes.pop()
    if classes or cls not in (BinaryFuse8, BinaryFuse16):
        raise ValueError("an FXRF file holds filters of one kind, all 8-bit or all 16-bit")
    return cls


cdef bytes _payload(list filters, int version, object num_keys):
    bodies = [item.to_raw() if version >= 3 else item.to_postcard() for item in filters]
    table = []
    offset = 0
    for body, keys in zip(bodies, num_keys, strict=True):
        table.append(struct.pack("<QQQ", offset, len(body), keys))
        offset += len(body)
    return b"".join(table + bodies)


cdef tuple _compress(bytes payload, int level):
    """(bytes, level): compressed only where that is smaller and a reader will accept it."""
    if not level or not payload:
        return payload, 0
    import zstandard

    packer = zstandard.ZstdCompressor(level=level, write_content_size=False)
    packed = packer.compress(payload)
    if len(packed) < len(payload) <= RATIO_MAX * (len(packed) + HEADER_SIZE):
        return packed, level
    return payload, 0


cdef bytes _header(int version, int count, int filter_type, int level, int kind, bytes payload):
    head = struct.pack("<4sIII", b"FXRF", version, count, filter_type)
    if version == 1:
        return head + bytes(16)
    if version == 2:
        return head + struct.pack("<B3xI8x", level, len(payload) & 0xffffffff)
    head += struct.pack("<BB2x", level, kind)
    tail = struct.pack("<Q", len(payload))
    crc = _checksum(head + bytes(4) + tail, payload)
    return head + struct.pack("<I", crc) + tail
