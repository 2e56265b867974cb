"""The analyzers as a scanner over bytes: one call, one token, no Python objects.

``SIMPLE`` cuts maximal runs of alphanumeric code points and lower-cases them code point by code
point; ``WHITESPACE`` cuts at the five ASCII blanks and changes nothing; ``RAW`` is the whole value.
A token whose bytes *before* lower-casing exceed ``limit`` is dropped, but its position is counted.
"""

from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    RAW = 0
    SIMPLE = 1
    WHITESPACE = 2

cdef struct Scanner:
    int kind
    int64_t limit           # longest token in bytes, before lower-casing
    const uint8_t* text
    int64_t size
    int64_t pos             # next byte to look at
    int64_t position        # tokens passed so far, dropped ones included
    int64_t start           # bytes [start, end) of the last token
    int64_t end
    const uint8_t* token    # the last token's text (in `scratch` or in `text`)
    int64_t length
    uint8_t* scratch        # room for one lower-cased token


cdef class HashSet:
    """Distinct 64-bit hashes, open addressing."""
    cdef uint64_t* slots
    cdef uint64_t mask
    cdef uint64_t used
    cdef bint has_zero

    cdef int insert(self, uint64_t key) except -1 nogil
    cdef int grow(self) except -1 nogil


cdef int scanner_init(Scanner* s, object tokenizer, int64_t limit) except -1
cdef void scanner_free(Scanner* s) noexcept nogil
cdef void scanner_begin(Scanner* s, const uint8_t* text, int64_t size) noexcept nogil
cdef bint scanner_next(Scanner* s) noexcept nogil
