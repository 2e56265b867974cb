"""The FXRF container (``fuse_filters.bin``): the filters of many splits in one file."""

from indextables.native._typedefs cimport uint8_t, uint32_t, uint64_t

cdef struct Header:
    uint32_t version
    uint32_t filters
    uint32_t filter_type
    uint8_t compression         # 0 none, else the zstd level
    uint8_t hash_kind
    uint32_t checksum           # version 3: CRC-32C of the header's other bytes and the payload
    uint64_t payload_size       # before compression


cdef class FxrfFile:
    cdef Header header
    cdef const uint8_t[::1] payload
    cdef object owner
    cdef type filter_class

    cdef object _filter(self, uint64_t index)
