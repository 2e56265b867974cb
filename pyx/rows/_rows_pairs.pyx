"""Learning and using a table of frequent byte strings (pair coding).

The table starts with the 256 single bytes. Training reads sample values in random order, always
taking the longest known word, and counts which word follows which; a pair seen often enough becomes
a word of its own (up to 16 bytes) at once, so long words grow out of short ones in a single pass.
Encoding is the same longest match, greedy from left to right, never across values, so each value
can be decoded alone: a code is an index into the table and nothing else.

The longest match asks a hash table for (bytes, length), longest first. Two bitmaps, by the first
six and by the first four bytes, say which lengths can exist, so most steps ask once or twice.
"""

from libc.string cimport memcpy

import numpy as np

from indextables.native._cursor cimport it_le64
from indextables.native._rows_bits cimport clz32, load_le64
from indextables.native._typedefs cimport (
    int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

cdef enum:
    MAX_WORD = 16
    LENGTH_BITS = 15
    SHORT = 4
    LONG = 6
    PAIR_BITS = 21


cdef inline uint64_t low_bytes(uint32_t n) noexcept nogil:
    return ~<uint64_t>0 if n >= 8 else (<uint64_t>1 << (8 * n)) - 1


cdef inline uint32_t prefix_hash(uint64_t lo, uint32_t nbytes) noexcept nogil:
    """Place of the first ``nbytes`` bytes in a table of lengths."""
    cdef uint64_t mixed = (lo << (64 - 8 * nbytes)) * <uint64_t>0x9E3779B97F4A7C15ULL
    return <uint32_t>(mixed >> (64 - LENGTH_BITS))


cdef inline uint64_t word_hash(uint64_t lo, uint64_t hi, uint32_t length) noexcept nogil:
    cdef uint64_t x = lo ^ (hi * <uint64_t>0x9FB21C651E98DF25ULL)
    x ^= length * <uint64_t>0x9E3779B97F4A7C15ULL
    x *= <uint64_t>0xD6E8FEB86659FD93ULL
    return x ^ (x >> 32)


cdef class PairTable:
    """Words by number, and the search for the longest one at a position."""

    def __cinit__(self, uint32_t capacity):
        cdef uint32_t size = 512, byte
        if not 256 <= capacity <= 65536:
            raise ValueError("a pair table holds 256 to 65536 words")
        while size < 2 * capacity:
            size *= 2
        self.capacity = capacity
        self.slot_mask = size - 1
        self.held_words = np.zeros(3 * capacity, np.uint64)
        self.held_slots = np.zeros(size, np.uint32)
        self.held_lengths = np.zeros(2 << LENGTH_BITS, np.uint16)
        cdef uint64_t[::1] words = self.held_words
        cdef uint32_t[::1] slots = self.held_slots
        cdef uint16_t[::1] lengths = self.held_lengths
        self.words = <Word*>&words[0]
        self.slots = &slots[0]
        self.short_lengths = &lengths[0]
        self.long_lengths = &lengths[1 << LENGTH_BITS]
        for byte in range(256):
            self.add(byte, 0, 1)

    cdef uint32_t add(self, uint64_t lo, uint64_t hi, uint32_t length) noexcept nogil:
        """Append a word that is not in the table yet; its number."""
        cdef uint64_t h = word_hash(lo, hi, length)
        cdef uint32_t at = <uint32_t>h & self.slot_mask
        while self.slots[at]:
            at = (at + 1) & self.slot_mask
        self.words[self.count].lo = lo
        self.words[self.count].hi = hi
        self.words[self.count].length = length
        self.slots[at] = (self.count + 1) | (<uint32_t>(h >> 49) << 17)
        if length > LONG:
            self.long_lengths[prefix_hash(lo, LONG)] |= 1 << (length - 1)
        elif length >= SHORT:
            self.short_lengths[prefix_hash(lo, SHORT)] |= 1 << (length - 1)
        self.count += 1
        return self.count - 1

    cdef int32_t find(self, uint64_t lo, uint64_t hi, uint32_t length) noexcept nogil:
        cdef uint64_t h = word_hash(lo, hi, length)
        cdef uint32_t at = <uint32_t>h & self.slot_mask
        cdef uint32_t tag = <uint32_t>(h >> 49)
        cdef uint32_t slot, number
        while True:
            slot = self.slots[at]
            if slot == 0:
                return -1
            if slot >> 17 == tag:
                number = (slot & 0x1FFFF) - 1
                if (
                    self.words[number].lo == lo and self.words[number].hi == hi
                    and self.words[number].length == length
                ):
                    return number
            at = (at + 1) & self.slot_mask

    cdef uint32_t longest(
        self, const uint8_t* at, uint64_t left, uint64_t readable, uint32_t* length
    ) noexcept nogil:
        """The longest word that begins the ``left`` (> 0) bytes at ``at``."""
        cdef uint8_t tail[MAX_WORD]
        cdef uint64_t lo, hi
        cdef uint32_t mask, n
        cdef int32_t number
        if readable < MAX_WORD:
            for n in range(<uint32_t>MAX_WORD):
                tail[n] = at[n] if n < readable else 0
            at = tail
        lo = load_le64(at)
        if left >= SHORT:
            mask = self.short_lengths[prefix_hash(lo, SHORT)]
            mask |= self.long_lengths[prefix_hash(lo, LONG)]
            if left < MAX_WORD:
                mask &= (<uint32_t>1 << left) - 1
            hi = load_le64(at + 8) if mask >> 8 else 0
            while mask:
                n = 32 - clz32(mask)
                if n > 8:
                    number = self.find(lo, hi & low_bytes(n - 8), n)
                else:
                    number = self.find(lo & low_bytes(n), 0, n)
                if number >= 0:
                    length[0] = n
                    return number
                mask ^= <uint32_t>1 << (n - 1)
        n = 3 if left >= 3 else <uint32_t>left
        while n > 1:
            number = self.find(lo & low_bytes(n), 0, n)
            if number >= 0:
                length[0] = n
                return number
            n -= 1
        length[0] = 1
        return <uint32_t>(lo & 0xFF)

    cdef uint64_t encode(
        self, const uint8_t* data, uint64_t size, uint64_t readable, uint16_t* out
    ) noexcept nogil:
        """Codes of one value (at most ``size`` of them); how many."""
        cdef uint64_t n = 0, at = 0
        cdef uint32_t length = 0
        while at < size:
            out[n] = <uint16_t>self.longest(data + at, size - at, readable - at, &length)
            at += length
            n += 1
        return n

    def code_width(self):
        """Bits of a code."""
        return max(8, (self.count - 1).bit_length())

    def words_list(self):
        """All words, by number."""
        cdef uint32_t i
        cdef uint8_t raw[16]
        cdef uint64_t half
        out = []
        for i in range(self.count):
            half = it_le64(self.words[i].lo)
            memcpy(raw, &half, 8)
            half = it_le64(self.words[i].hi)
            memcpy(raw + 8, &half, 8)
            out.append(raw[:self.words[i].length])
        return out

    def page(self):
        """The table as a resource page."""
        words = self.words_list()
        head = bytes([3, self.code_width(), 0, 0]) + len(words).to_bytes(4, "little")
        return head + bytes(len(word) for word in words) + b"".join(words)

    def measure(self, const uint8_t[::1] data, const int64_t[::1] offsets, rows):
        """Codes that the values numbered ``rows`` need."""
        cdef const int64_t[::1] order = rows
        cdef uint64_t total = 0, at, end, size = data.shape[0]
        cdef uint32_t length = 0
        cdef Py_ssize_t k
        check_values(data, offsets, order)
        with nogil:
            for k in range(order.shape[0]):
                at = offsets[order[k]]
                end = offsets[order[k] + 1]
                while at < end:
                    self.longest(&data[at], end - at, size - at, &length)
                    at += length
                    total += 1
        return total


cdef inline void join(const Word* a, const Word* b, uint64_t* lo, uint64_t* hi) noexcept nogil:
    """The bytes of two words whose lengths add up to at most 16."""
    cdef uint64_t shift = 8 * a.length
    if shift < 64:
        lo[0] = a.lo | (b.lo << shift)
        hi[0] = (b.hi << shift) | (b.lo >> (64 - shift))
    else:
        lo[0] = a.lo
        hi[0] = a.hi | (b.lo << (shift - 64) if shift < 128 else 0)


cdef int check_values(
    const uint8_t[::1] data, const int64_t[::1] offsets, const int64_t[::1] order
) except -1:
    cdef Py_ssize_t k
    for k in range(offsets.shape[0] - 1):
        if offsets[k] < 0 or offsets[k] > offsets[k + 1] or offsets[k + 1] > data.shape[0]:
            raise ValueError("offsets are not those of the data")
    for k in range(order.shape[0]):
        if order[k] < 0 or order[k] >= offsets.shape[0] - 1:
            raise ValueError("row number beyond the values")
    return 0


cdef class Trainer:
    """Counts neighbours and promotes frequent pairs to words."""
    cdef readonly PairTable table
    cdef uint32_t threshold
    cdef uint32_t pairs
    cdef object held_keys, held_counts
    cdef uint32_t* keys
    cdef uint32_t* counts

    def __cinit__(self, uint32_t capacity, uint32_t threshold):
        self.table = PairTable(capacity)
        self.threshold = threshold
        self.held_keys = np.zeros(1 << PAIR_BITS, np.uint32)
        self.held_counts = np.zeros(1 << PAIR_BITS, np.uint32)
        cdef uint32_t[::1] keys = self.held_keys
        cdef uint32_t[::1] counts = self.held_counts
        self.keys = &keys[0]
        self.counts = &counts[0]

    cdef bint full(self) noexcept nogil:
        return self.table.count >= self.table.capacity or self.pairs > (1 << PAIR_BITS) // 4 * 3

    cdef uint32_t follow(self, uint32_t first, uint32_t second) noexcept nogil:
        """Count a pair; the word it became, or else ``second``."""
        cdef uint32_t mask = (1 << PAIR_BITS) - 1
        cdef uint32_t key = first << 16 | second
        cdef uint32_t at = key * <uint32_t>2654435761
        cdef uint64_t lo = 0, hi = 0
        cdef const Word* a = &self.table.words[first]
        cdef const Word* b = &self.table.words[second]
        if a.length + b.length > MAX_WORD or self.full():
            return second
        at = (at ^ (at >> 15)) & mask
        while self.counts[at] and self.keys[at] != key:
            at = (at + 1) & mask
        if self.counts[at] == 0:
            self.keys[at] = key
            self.pairs += 1
        self.counts[at] += 1
        if self.counts[at] != self.threshold:
            return second
        join(a, b, &lo, &hi)
        if self.table.find(lo, hi, <uint32_t>(a.length + b.length)) >= 0:
            return second
        return self.table.add(lo, hi, <uint32_t>(a.length + b.length))

    def learn(self, const uint8_t[::1] data, const int64_t[::1] offsets, rows):
        """Read the values numbered ``rows``; how many were read before the table was full."""
        cdef const int64_t[::1] order = rows
        cdef uint64_t at, end, size = data.shape[0]
        cdef uint32_t length = 0, word, previous
        cdef bint first
        cdef Py_ssize_t k = 0
        check_values(data, offsets, order)
        with nogil:
            while k < order.shape[0] and not self.full():
                at = offsets[order[k]]
                end = offsets[order[k] + 1]
                first = True
                previous = 0
                while at < end:
                    word = self.table.longest(&data[at], end - at, size - at, &length)
                    at += length
                    previous = word if first else self.follow(previous, word)
                    first = False
                k += 1
        return k
