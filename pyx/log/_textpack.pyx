"""Text columns to skeletons and slots; ``_textunpack`` is the way back."""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._cursor cimport it_le64
from indextables.native._hash cimport load64, xxh64_bytes
from indextables.native._narrow cimport narrowed
from indextables.native._textslots cimport (
    low_bytes, put_integer, put_uuid, same_bytes, take_integer, take_uuid, text_valid,
)
from indextables.native._typedefs cimport (
    int32_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from indextables.errors import CorruptFileError

cdef enum:
    GIVE_UP = 1

# -- packing ------------------------------------------------------------------------------------

cdef int reserve(Bytes* b, size_t more) except -1 nogil:
    """Room for ``more`` bytes."""
    cdef uint8_t* grown
    if b.used + more <= b.size:
        return 0
    grown = <uint8_t*>realloc(b.data, 2 * (b.used + more) + 64)
    if grown == NULL:
        with gil:
            raise MemoryError()
    b.data = grown
    b.size = 2 * (b.used + more) + 64
    return 0


cdef int out_of_memory() except -1 nogil:
    with gil:
        raise MemoryError()


cdef int not_utf8() except -1 nogil:
    with gil:
        raise CorruptFileError("a text is not UTF-8")


cdef int out_of_buffer() except -1 nogil:
    with gil:
        raise ValueError("a text lies outside its buffer")


cdef class TextPacker:
    """See the declaration. A packer starts with skeletons and becomes plain if they are many."""

    def __cinit__(self, size_t n, bint is_raw=False):
        self.n = n
        self.is_raw = is_raw
        self.valid = <uint8_t*>calloc(n + 1, 1)
        if self.valid == NULL:
            raise MemoryError()
        if is_raw:
            self.become_plain(0)
            return
        self.table = <int32_t*>malloc(TABLE_SIZE * sizeof(int32_t))
        self.slots = <uint64_t**>calloc(MOST_SLOTS, sizeof(uint64_t*))
        self.codes = <uint16_t*>calloc(n + 1, sizeof(uint16_t))
        if not (self.table and self.slots and self.codes):
            raise MemoryError()
        memset(self.table, 0xff, TABLE_SIZE * sizeof(int32_t))

    def __dealloc__(self):
        cdef uint32_t j
        for j in range(self.slot_count):
            free(self.slots[j])
        free(self.slots)
        free(self.codes)
        free(self.table)
        free(self.templates)
        free(self.pieces)
        free(self.arena.data)
        free(self.scratch.data)
        free(self.texts.data)
        free(self.offsets)
        free(self.valid)

    cdef int put(
        self, const uint8_t* base, uint64_t size, const uint32_t* starts,
        const uint32_t* lengths, size_t first, size_t rows,
    ) except -1 nogil:
        """The next rows: places in ``base``, whose readable bytes are ``size``."""
        cdef const uint8_t* before = NULL
        cdef const uint8_t* p
        cdef uint32_t before_size = 0
        cdef uint32_t code = 0
        cdef uint32_t j
        cdef size_t i
        for i in range(rows):
            if lengths[i] == NULL_LENGTH:
                if self.is_plain:
                    self.offsets[first + i + 1] = <uint32_t>self.texts.used
                continue
            if <uint64_t>starts[i] + lengths[i] > size:
                return out_of_buffer()
            p = base + starts[i]
            self.present += 1
            if before == NULL or before_size != lengths[i] or not same_bytes(
                before, p, before_size
            ):
                if self.is_plain or self.put_text(p, lengths[i], size - starts[i]) == GIVE_UP:
                    if not self.is_plain:
                        self.become_plain(first + i)
                        before = NULL
                    self.valid[first + i] = 1
                    self.put_plain(p, lengths[i], first + i)
                    continue
                before = p
                before_size = lengths[i]
                code = self.recent[0]
            self.valid[first + i] = 1
            self.codes[first + i] = <uint16_t>code
            for j in range(self.templates[code].slots):
                self.slots[j][first + i] = self.values[j]
        return 0

    cdef int put_plain(self, const uint8_t* p, uint32_t n, size_t row) except -1 nogil:
        if not self.is_raw and not text_valid(p, n):
            return not_utf8()
        reserve(&self.texts, n)
        if n:
            memcpy(self.texts.data + self.texts.used, p, n)
        self.texts.used += n
        if self.texts.used >= NULL_LENGTH:
            return out_of_memory()
        self.offsets[row + 1] = <uint32_t>self.texts.used
        return 0

    cdef int put_text(self, const uint8_t* p, uint32_t n, uint64_t room) except -2 nogil:
        """The template of a text, ``recent[0]``, and in ``values`` its slots; or ``GIVE_UP``."""
        cdef uint32_t slots = 0
        cdef uint32_t last = self.recent[0]
        if self.count and self.matches(self.templates + last, p, n, room):
            return 0
        self.recent[0] = self.recent[1]
        self.recent[1] = last
        if self.count > 1 and self.matches(self.templates + self.recent[0], p, n, room):
            return 0
        if not text_valid(p, n):
            not_utf8()
        if self.split(p, n, &slots) == GIVE_UP:
            return GIVE_UP
        return self.find(slots, &self.recent[0])

    cdef int become_plain(self, size_t rows) except -1 nogil:
        """Spell the first ``rows`` rows out and go on without skeletons."""
        cdef size_t row
        cdef uint32_t k
        cdef uint32_t j
        cdef const Template* t
        cdef const Piece* piece
        self.offsets = <uint32_t*>calloc(self.n + 1, sizeof(uint32_t))
        if self.offsets == NULL:
            return out_of_memory()
        self.is_plain = True
        for row in range(rows):
            if self.valid[row]:
                t = self.templates + self.codes[row]
                j = 0
                for k in range(t.pieces):
                    piece = self.pieces + t.first_piece + k
                    reserve(&self.texts, piece.size + 36)
                    memcpy(
                        self.texts.data + self.texts.used, self.arena.data + piece.start, piece.size
                    )
                    self.texts.used += piece.size
                    if piece.slot == INTEGER_SLOT:
                        self.texts.used += put_integer(
                            self.texts.data + self.texts.used, self.slots[j][row]
                        )
                        j += 1
                    elif piece.slot == UUID_SLOT:
                        self.texts.used += put_uuid(
                            self.texts.data + self.texts.used, self.slots[j][row],
                            self.slots[j + 1][row],
                        )
                        j += 2
            self.offsets[row + 1] = <uint32_t>self.texts.used
        return 0

    cdef bint matches(
        self, const Template* t, const uint8_t* p, size_t n, size_t room
    ) noexcept nogil:
        """Whether the text is an instance of ``t``; its slots go to ``values``."""
        cdef const Piece* piece = self.pieces + t.first_piece
        cdef const uint8_t* literals = self.arena.data
        cdef uint64_t* value = self.values
        cdef size_t spare = room - n            # bytes that can be read behind the text
        cdef size_t taken
        while True:
            if n < piece.size:
                return False
            if n + spare >= 8 and (load64(p) & piece.mask) != piece.word:
                return False
            if (piece.size > 8 or n + spare < 8) and not same_bytes(
                p, literals + piece.start, piece.size
            ):
                return False
            p += piece.size
            n -= piece.size
            if piece.slot == INTEGER_SLOT:
                taken = take_integer(p, n, n + spare, value)
                value += 1
            elif piece.slot == UUID_SLOT:
                taken = 36 if take_uuid(p, n, value) else 0
                value += 2
            else:
                return n == 0
            if taken == 0:
                return False
            p += taken
            n -= taken
            piece += 1

    cdef int split(self, const uint8_t* p, size_t n, uint32_t* slots) except -1 nogil:
        """Skeleton of a text into ``scratch``, its slots into ``values``."""
        cdef size_t i = 0
        cdef size_t taken
        cdef uint8_t mark
        slots[0] = 0
        self.scratch.used = 0
        reserve(&self.scratch, n + 1)
        while i < n:
            if slots[0] + 2 > MOST_SLOTS:
                return GIVE_UP
            if take_uuid(p + i, n - i, self.values + slots[0]):
                mark = UUID_SLOT
                slots[0] += 2
                taken = 36
            else:
                mark = INTEGER_SLOT
                taken = take_integer(p + i, n - i, n - i, self.values + slots[0])
                slots[0] += taken > 0
            self.scratch.data[self.scratch.used] = mark if taken else p[i]
            self.scratch.used += 1
            i += taken if taken else 1
        return 0

    cdef int find(self, uint32_t slots, uint32_t* code) except -1 nogil:
        """The template of the skeleton in ``scratch``, made when it is new."""
        cdef size_t size = self.scratch.used
        cdef uint32_t at = <uint32_t>xxh64_bytes(self.scratch.data, size, 0) & (TABLE_SIZE - 1)
        cdef Template* t
        while self.table[at] >= 0:
            t = self.templates + self.table[at]
            if t.size == size and same_bytes(self.arena.data + t.start, self.scratch.data, size):
                code[0] = <uint32_t>self.table[at]
                return 0
            at = (at + 1) & (TABLE_SIZE - 1)
        if self.count >= MOST_TEMPLATES or self.count > 1024 + self.present // 8:
            return GIVE_UP
        if self.arena.used + size > 0x7fffffff:
            return GIVE_UP
        self.make(slots)
        code[0] = self.count - 1
        self.table[at] = <int32_t>code[0]
        return 0

    cdef int make(self, uint32_t slots) except -1 nogil:
        """A template of the skeleton in ``scratch``."""
        cdef Template* templates
        cdef Piece* pieces
        cdef Template* t
        if self.count & (self.count - 1) == 0:
            templates = <Template*>realloc(
                self.templates, (2 * self.count + 2) * sizeof(Template)
            )
            if templates == NULL:
                return out_of_memory()
            self.templates = templates
        if self.pieces_used + slots + 1 > self.pieces_size:
            pieces = <Piece*>realloc(
                self.pieces, (2 * (self.pieces_used + slots) + 8) * sizeof(Piece)
            )
            if pieces == NULL:
                return out_of_memory()
            self.pieces = pieces
            self.pieces_size = 2 * (self.pieces_used + slots) + 8
        while self.slot_count < slots:
            self.slots[self.slot_count] = <uint64_t*>calloc(self.n + 1, sizeof(uint64_t))
            if self.slots[self.slot_count] == NULL:
                return out_of_memory()
            self.slot_count += 1
        reserve(&self.arena, self.scratch.used + 1)
        memcpy(self.arena.data + self.arena.used, self.scratch.data, self.scratch.used)
        t = self.templates + self.count
        t.start = <uint32_t>self.arena.used
        t.size = <uint32_t>self.scratch.used
        t.slots = slots
        t.first_piece = self.pieces_used
        self.add_pieces(t)
        t.pieces = self.pieces_used - t.first_piece
        self.arena.used += self.scratch.used
        self.count += 1
        return 0

    cdef void add_pieces(self, const Template* t) noexcept nogil:
        cdef size_t end = t.start + t.size
        cdef size_t begin = t.start
        cdef size_t i = t.start
        cdef Piece* piece
        while i <= end:
            if i == end or self.arena.data[i] >= UUID_SLOT:
                piece = self.pieces + self.pieces_used
                piece.start = <uint32_t>begin
                piece.size = <uint32_t>(i - begin)
                piece.slot = self.arena.data[i] if i < end else 0
                piece.mask = low_bytes(piece.size)
                piece.word = 0
                memcpy(&piece.word, self.arena.data + begin, min(<size_t>8, i - begin))
                piece.word = it_le64(piece.word)
                self.pieces_used += 1
                begin = i + 1
            i += 1

    cdef tuple slot_column(self, uint32_t j):
        """Slot ``j`` as its least value and the narrowest differences from it."""
        cdef uint64_t low = 0xffffffffffffffffULL
        cdef uint64_t high = 0
        cdef size_t row
        cdef uint64_t* slot = self.slots[j]
        cdef bint everywhere = self.present == self.n and self.count == 1
        if everywhere:
            whole = np.asarray(<uint64_t[:self.n]>slot)
            low, high = whole.min(), whole.max()
        else:
            for row in range(self.n):
                if self.has_slot(row, j):
                    low = min(low, slot[row])
                    high = max(high, slot[row])
            for row in range(self.n):
                if not self.has_slot(row, j):
                    slot[row] = low
        if low >= high:
            return (low if low == high else 0), None
        return low, narrowed(slot, self.n, low, high)

    cdef bint is_worth_it(self) noexcept nogil:
        """Whether skeletons are few beside the rows; slots cost about what their digits did."""
        return self.count <= 1 or self.arena.used + 16 * self.count <= 8 * self.present + 64

    def finish(self):
        """``(valid, skeletons, codes, slots, data, offsets)``, ``None`` when every row is NULL.

        ``valid`` is ``None`` when no row is NULL, ``skeletons`` when the texts are plain, codes
        when there is one skeleton; a slot is ``(least value, differences or None)``.
        """
        cdef uint32_t j
        if self.present == 0:
            return None
        valid = None
        if self.present < self.n:
            valid = _copied(self.valid, self.n, np.uint8)
        if not self.is_plain and not self.is_worth_it():
            self.become_plain(self.n)
        if self.is_plain:
            data = _copied(self.texts.data, self.texts.used, np.uint8)
            offsets = _copied(<uint8_t*>self.offsets, 4 * (self.n + 1), np.uint32)
            return valid, None, None, [], data, offsets
        codes = None
        if self.count > 1:
            codes = _copied(<uint8_t*>self.codes, 2 * self.n, np.uint16)
            codes = codes.astype(np.uint8) if self.count <= 256 else codes
        slots = [self.slot_column(j) for j in range(self.slot_count)]
        return valid, self.skeletons(), codes, slots, None, None

    def skeletons(self):
        cdef uint32_t k
        return [
            (<const char*>(self.arena.data + self.templates[k].start))[:self.templates[k].size]
            if self.templates[k].size else b""
            for k in range(self.count)
        ]


cdef object _copied(const uint8_t* source, size_t size, dtype):
    out = np.empty(size, np.uint8)
    cdef uint8_t[::1] target = out
    if size:
        memcpy(&target[0], source, size)
    return out.view(dtype)


def pack_texts(
    const uint8_t[::1] data not None,
    const uint32_t[::1] starts not None,
    const uint32_t[::1] lengths not None,
    bint is_raw=False,
):
    """Pack the texts ``data[starts[i]:starts[i] + lengths[i]]``; length 2**32 - 1 is NULL.

    Returns what ``TextPacker.finish`` returns. ``is_raw`` keeps bytes that need not be text.
    Texts that are not UTF-8 are ``CorruptFileError``.
    """
    cdef size_t n = starts.shape[0]
    if starts.shape[0] != lengths.shape[0]:
        raise ValueError("starts and lengths differ in number")
    cdef TextPacker packer = TextPacker(n, is_raw)
    if n:
        with nogil:
            packer.put(
                &data[0] if data.shape[0] else NULL, data.shape[0], &starts[0], &lengths[0], 0, n
            )
    return packer.finish()
