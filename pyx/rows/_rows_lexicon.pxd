"""Words that text blocks are spelled with: dictionaries, pair tables, templates."""

from indextables.native._cursor cimport Cursor
from indextables.native._typedefs cimport uint8_t, uint32_t, uint64_t

cdef enum:
    FIXED_DICTIONARY = 1
    TEXT_DICTIONARY = 2
    PAIR_TABLE = 3
    TEMPLATE_PAGE = 4

cdef enum:
    OP_LITERAL = 0
    OP_HEX_LOWER = 1
    OP_HEX_UPPER = 2
    OP_DECIMAL = 3

cdef enum:
    PAD = 16
    MAX_WORD = 16


cdef struct Op:
    uint32_t kind
    uint32_t chars
    uint32_t bits
    uint32_t at             # literal: offset of its bytes in the page


cdef class Lexicon:
    """One resource page, opened: words with their bounds, or the ops of a template."""
    cdef readonly int kind
    cdef readonly uint32_t width
    cdef readonly uint32_t count
    cdef readonly uint32_t row_bits
    cdef readonly uint32_t row_chars
    cdef readonly uint32_t longest      # bytes of the longest word
    cdef object held_starts, held_bytes
    cdef const uint32_t* starts
    cdef const uint8_t* data
    cdef Op* ops
    cdef int _keep(self, Cursor* c) except -1
    cdef int _open_words(self, Cursor* c, uint32_t size_of_length) except -1
    cdef int _open_template(self, Cursor* c) except -1
    cdef int _open_op(self, Cursor* c, Op* op, uint64_t start) except -1


cdef uint32_t decimal_bits(uint32_t digits) noexcept nogil
