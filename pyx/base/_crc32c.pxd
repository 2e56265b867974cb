"""CRC-32C (Castagnoli), the checksum of split members and of FXRF version 3."""

from indextables.native._typedefs cimport uint8_t, uint32_t

cdef uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil
