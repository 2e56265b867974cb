"""File entries from columns to Avro bytes."""

from indextables.native._typedefs cimport int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PUT_LONG = 0
    PUT_BOOLEAN = 1
    PUT_OPTIONAL_LONG = 2
    PUT_TEXT = 3
    PUT_OPTIONAL_TEXT = 4
    PUT_MAP = 5
    PUT_OPTIONAL_MAP = 6
    PUT_OPTIONAL_RAW = 7

cdef struct TextSource:
    const uint8_t* key          # of a map entry: length and bytes, already in Avro form
    uint64_t key_size
    const uint8_t* data
    const int64_t* offsets
    const uint8_t* valid

cdef struct FieldSource:
    int kind
    const int64_t* ints
    const uint8_t* present
    TextSource* texts
    uint32_t count

cdef struct Out:
    uint8_t* data
    uint64_t size
    uint64_t used
