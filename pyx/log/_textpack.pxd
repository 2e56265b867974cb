"""Packing of text columns: texts of one column mostly differ in their numbers alone.

A text is split into a *skeleton* and *slots*: every run of at most 18 digits without a leading
zero becomes an integer slot, every lower-case UUID two 64-bit slots, all other bytes stay in the
skeleton. ``date=2024-03-05/part-<uuid>.split`` has the skeleton ``date=#-0#-0#/part-@.split``. A
column is then a list of distinct skeletons, a code per row, and one narrow integer column per
slot. Putting the slots back gives the text exactly, whatever it was.

In a skeleton the bytes 0xff (integer) and 0xfe (UUID) mark slots; UTF-8 never contains them.
"""

from indextables.native._typedefs cimport int32_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    NULL_LENGTH = 0xffffffff
    INTEGER_SLOT = 0xff
    UUID_SLOT = 0xfe
    MOST_SLOTS = 64
    MOST_TEMPLATES = 4096
    TABLE_SIZE = 16384

cdef struct Piece:
    uint32_t start          # literal bytes in the arena
    uint32_t size
    uint32_t slot           # what follows them: INTEGER_SLOT, UUID_SLOT or 0 at the end
    uint64_t word           # their first eight, zeros where there are fewer
    uint64_t mask           # which bytes of ``word`` count

cdef struct Template:
    uint32_t start          # skeleton in the arena
    uint32_t size
    uint32_t first_piece
    uint32_t pieces
    uint32_t slots

cdef struct Bytes:
    uint8_t* data
    size_t used
    size_t size


cdef class TextPacker:
    """Packs one column of ``n`` rows, which come in order and some at a time."""

    cdef size_t n
    cdef size_t present         # rows that are not NULL
    cdef uint8_t* valid
    cdef bint is_raw            # bytes that need not be text, kept as they are
    cdef bint is_plain          # texts kept as they are, since they share too little
    cdef Bytes texts            # of a plain column
    cdef uint32_t* offsets
    cdef Bytes arena            # skeletons
    cdef Template* templates
    cdef uint32_t count
    cdef uint32_t[2] recent     # templates of the last texts, the last one first
    cdef Piece* pieces
    cdef uint32_t pieces_used
    cdef uint32_t pieces_size
    cdef int32_t* table
    cdef uint64_t** slots
    cdef uint32_t slot_count
    cdef uint16_t* codes
    cdef Bytes scratch
    cdef uint64_t[66] values

    cdef int put(
        self, const uint8_t* base, uint64_t size, const uint32_t* starts,
        const uint32_t* lengths, size_t first, size_t rows,
    ) except -1 nogil
    cdef int put_plain(self, const uint8_t* p, uint32_t n, size_t row) except -1 nogil
    cdef int put_text(self, const uint8_t* p, uint32_t n, uint64_t room) except -2 nogil
    cdef int become_plain(self, size_t rows) except -1 nogil
    cdef bint matches(
        self, const Template* t, const uint8_t* p, size_t n, size_t room
    ) noexcept nogil
    cdef int split(self, const uint8_t* p, size_t n, uint32_t* slots) except -1 nogil
    cdef int find(self, uint32_t slots, uint32_t* code) except -1 nogil
    cdef int make(self, uint32_t slots) except -1 nogil
    cdef void add_pieces(self, const Template* t) noexcept nogil
    cdef bint is_worth_it(self) noexcept nogil
    cdef inline bint has_slot(self, size_t row, uint32_t j) noexcept nogil:
        return self.valid[row] and self.templates[self.codes[row]].slots > j
    cdef tuple slot_column(self, uint32_t j)


cdef int reserve(Bytes* b, size_t more) except -1 nogil
