"""Every C type of the kernels, fixed in width, so that a format never depends on a platform."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t,
    uint8_t, uint16_t, uint32_t, uint64_t,
)

ctypedef float float32_t
ctypedef double float64_t
ctypedef const uint8_t* bytes_t
