"""CRC-32C (polynomial 0x1edc6f41, reflected): by the processor's instruction, else by tables.

The tables hold the checksum of one byte followed by 0 to 7 zero bytes, so that eight bytes are
folded in at a time.
"""

from indextables.native._cursor cimport it_le64
from indextables.native._typedefs cimport uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__x86_64__) && defined(__GNUC__)
    __attribute__((target("sse4.2")))
    static uint32_t it_crc_hardware(uint32_t crc, const uint8_t* data, size_t size) {
        uint64_t wide = crc, word;
        for (; size >= 8; data += 8, size -= 8) {
            memcpy(&word, data, 8);
            wide = __builtin_ia32_crc32di(wide, word);
        }
        crc = (uint32_t)wide;
        for (; size; data++, size--) crc = __builtin_ia32_crc32qi(crc, *data);
        return crc;
    }
    static int it_crc_has_hardware(void) {
        __builtin_cpu_init();
        return __builtin_cpu_supports("sse4.2") != 0;
    }
    #else
    static uint32_t it_crc_hardware(uint32_t crc, const uint8_t* data, size_t size) {
        (void)data; (void)size; return crc;
    }
    static int it_crc_has_hardware(void) { return 0; }
    #endif
    """
    uint32_t crc_hardware "it_crc_hardware"(
        uint32_t crc, const uint8_t* data, size_t size
    ) noexcept nogil
    int crc_has_hardware "it_crc_has_hardware"() noexcept nogil

cdef uint32_t TABLES[8][256]
cdef bint HAS_HARDWARE = crc_has_hardware() != 0


cdef void _fill_tables() noexcept nogil:
    cdef uint32_t byte, crc, depth, _bit
    for byte in range(256):
        crc = byte
        for _bit in range(8):
            crc = (crc >> 1) ^ (<uint32_t>0x82f63b78 * (crc & 1))
        TABLES[0][byte] = crc
    for depth in range(1, 8):
        for byte in range(256):
            crc = TABLES[depth - 1][byte]
            TABLES[depth][byte] = (crc >> 8) ^ TABLES[0][crc & 255]


_fill_tables()


cdef uint32_t _by_tables(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil:
    cdef uint64_t word
    cdef uint32_t depth, folded
    while size >= 8:
        memcpy(&word, data, 8)
        word = it_le64(word) ^ crc
        folded = 0
        for depth in range(8):
            folded ^= TABLES[7 - depth][(word >> (8 * depth)) & 255]
        crc = folded
        data += 8
        size -= 8
    while size:
        crc = (crc >> 8) ^ TABLES[0][(crc ^ data[0]) & 255]
        data += 1
        size -= 1
    return crc


cdef uint32_t crc32c_extend(uint32_t crc, const uint8_t* data, size_t size) noexcept nogil:
    """The checksum of more data, given that of the data before it (0 for none)."""
    if HAS_HARDWARE:
        return ~crc_hardware(~crc, data, size)
    return ~_by_tables(~crc, data, size)


def crc32c(const uint8_t[::1] data, uint32_t crc=0):
    """CRC-32C of a buffer; ``crc`` is that of the data before it."""
    cdef uint32_t out = crc
    if data.shape[0]:
        with nogil:
            out = crc32c_extend(crc, &data[0], <size_t>data.shape[0])
    return out


def crc32c_by_tables(const uint8_t[::1] data, uint32_t crc=0):
    """``crc32c`` as computed on processors without the instruction."""
    return ~_by_tables(~crc, &data[0], <size_t>data.shape[0]) if data.shape[0] else crc
