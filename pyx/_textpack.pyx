"""Text columns to skeletons and slots, and back."""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._hash cimport load32, load64, xxh64_bytes
from indextables.native._typedefs cimport (
    int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from indextables.errors import CorruptFileError

cdef enum:
    GIVE_UP = 1

cdef uint8_t[256] _HEX
cdef int _i
for _i in range(256):
    _HEX[_i] = 255
for _i in range(10):
    _HEX[48 + _i] = _i
for _i in range(6):
    _HEX[97 + _i] = 10 + _i
cdef const uint8_t* _DIGITS = b"0123456789abcdef"


cdef bint utf8_valid(const uint8_t* p, size_t n) noexcept nogil:
    """Whether ``n`` bytes are well-formed UTF-8: shortest forms, no surrogates."""
    cdef size_t i = 0
    cdef uint8_t b
    cdef uint8_t second
    cdef size_t more
    while i < n:
        b = p[i]
        i += 1
        if b < 0x80:
            continue
        if b < 0xc2 or b > 0xf4:
            return False
        more = 1 if b < 0xe0 else (2 if b < 0xf0 else 3)
        if n - i < more:
            return False
        second = p[i]
        if (second & 0xc0) != 0x80:
            return False
        if b == 0xe0 and second < 0xa0 or b == 0xed and second > 0x9f:
            return False
        if b == 0xf0 and second < 0x90 or b == 0xf4 and second > 0x8f:
            return False
        if more > 1 and (p[i + 1] & 0xc0) != 0x80:
            return False
        if more > 2 and (p[i + 2] & 0xc0) != 0x80:
            return False
        i += more
    return True


cdef inline bint text_valid(const uint8_t* p, size_t n) noexcept nogil:
    """``utf8_valid`` with a short way for ASCII."""
    cdef size_t i = 0
    cdef uint64_t word
    while i + 8 <= n:
        memcpy(&word, p + i, 8)
        if word & 0x8080808080808080ULL:
            return utf8_valid(p + i, n - i)
        i += 8
    while i < n:
        if p[i] >= 0x80:
            return utf8_valid(p + i, n - i)
        i += 1
    return True


# -- slots --------------------------------------------------------------------------------------

cdef inline bint eight_digits(const uint8_t* p, uint64_t* value) noexcept nogil:
    """Eight decimal digits at once: all bytes are tested, then summed pairwise."""
    cdef uint64_t w = load64(p)
    if ((w & (w + 0x0606060606060606ULL) & 0xf0f0f0f0f0f0f0f0ULL) != 0x3030303030303030ULL):
        return False
    w = (w & 0x0f0f0f0f0f0f0f0fULL) * 2561 >> 8
    w = (w & 0x00ff00ff00ff00ffULL) * 6553601 >> 16
    value[0] = (w & 0x0000ffff0000ffffULL) * 42949672960001ULL >> 32
    return True


cdef inline size_t take_integer(const uint8_t* p, size_t n, uint64_t* value) noexcept nogil:
    """Length of the integer slot at ``p``, 0 when there is none (no digit, or a leading zero)."""
    cdef size_t i = 1
    cdef uint64_t v
    cdef uint64_t eight
    cdef uint8_t d
    if n == 0:
        return 0
    v = <uint8_t>(p[0] - 48)
    if v > 9:
        return 0
    if v == 0:
        value[0] = 0
        return 0 if n > 1 and <uint8_t>(p[1] - 48) <= 9 else 1
    while i + 8 <= n and i <= MOST_DIGITS - 8 and eight_digits(p + i, &eight):
        v = v * 100000000 + eight
        i += 8
    while i < n and i < MOST_DIGITS:
        d = <uint8_t>(p[i] - 48)
        if d > 9:
            break
        v = v * 10 + d
        i += 1
    value[0] = v
    return i


cdef inline uint64_t eight_hex(uint64_t w, uint64_t* bad) noexcept nogil:
    """Eight lower-case hexadecimal digits, first one in the low byte, as a 32-bit number.

    Letters have bit 6. ``bad`` gathers what is wrong: a nibble out of range for its kind of
    character, or a character that is not the canonical one of its nibble.
    """
    cdef uint64_t letter = (w >> 6) & 0x0101010101010101ULL
    cdef uint64_t nibble = (w & 0x0f0f0f0f0f0f0f0fULL) + 9 * letter
    bad[0] |= nibble & 0xf0f0f0f0f0f0f0f0ULL
    bad[0] |= (((nibble + 0x0606060606060606ULL) >> 4) & 0x0101010101010101ULL) ^ letter
    bad[0] |= (nibble + 0x3030303030303030ULL + 0x27 * letter) ^ w
    nibble = ((nibble << 4) | (nibble >> 8)) & 0x00ff00ff00ff00ffULL
    nibble = ((nibble << 8) | (nibble >> 16)) & 0x0000ffff0000ffffULL
    return ((nibble << 16) | (nibble >> 32)) & 0xffffffffULL


cdef inline bint take_uuid(const uint8_t* p, size_t n, uint64_t* halves) noexcept nogil:
    """Read ``xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`` into two words."""
    cdef uint64_t bad = 0
    if n < 36 or p[8] != 45 or p[13] != 45 or p[18] != 45 or p[23] != 45:
        return False
    halves[0] = eight_hex(load64(p), &bad) << 32
    halves[0] |= eight_hex(load32(p + 9) | load32(p + 14) << 32, &bad)
    halves[1] = eight_hex(load32(p + 19) | load32(p + 24) << 32, &bad) << 32
    halves[1] |= eight_hex(load64(p + 28), &bad)
    return bad == 0


cdef inline uint32_t decimal_length(uint64_t v) noexcept nogil:
    cdef uint32_t n = 1
    while v >= 10000:
        v //= 10000
        n += 4
    if v >= 1000:
        return n + 3
    if v >= 100:
        return n + 2
    return n + 1 if v >= 10 else n


cdef inline size_t put_integer(uint8_t* out, uint64_t v) noexcept nogil:
    cdef uint32_t n = decimal_length(v)
    cdef uint32_t i = n
    while i > 0:
        i -= 1
        out[i] = <uint8_t>(48 + v % 10)
        v //= 10
    return n


cdef inline size_t put_uuid(uint8_t* out, uint64_t high, uint64_t low) noexcept nogil:
    cdef int i
    cdef int at = 0
    for i in range(32):
        if i == 8 or i == 12 or i == 16 or i == 20:
            out[at] = 45
            at += 1
        if i < 16:
            out[at] = _DIGITS[(high >> (60 - 4 * i)) & 15]
        else:
            out[at] = _DIGITS[(low >> (60 - 4 * (i - 16))) & 15]
        at += 1
    return 36


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
            self.valid[first + i] = 1
            self.present += 1
            if self.is_plain:
                self.put_plain(p, lengths[i], first + i)
                continue
            if before == NULL or before_size != lengths[i] or not same_bytes(before, p, before_size):
                if self.put_text(p, lengths[i], &code) == GIVE_UP:
                    self.valid[first + i] = 0
                    self.become_plain(first + i)
                    self.valid[first + i] = 1
                    self.put_plain(p, lengths[i], first + i)
                    continue
            before = p
            before_size = lengths[i]
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

    cdef int put_text(self, const uint8_t* p, uint32_t n, uint32_t* code) except -2 nogil:
        """The template of a text and, in ``values``, its slots; or ``GIVE_UP``."""
        cdef uint32_t slots = 0
        if self.count and self.matches(self.templates + code[0], p, n):
            return 0
        if not text_valid(p, n):
            not_utf8()
        if self.split(p, n, &slots) == GIVE_UP:
            return GIVE_UP
        return self.find(slots, code)

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

    cdef bint matches(self, const Template* t, const uint8_t* p, size_t n) noexcept nogil:
        """Whether the text is an instance of ``t``; its slots go to ``values``."""
        cdef const Piece* piece = self.pieces + t.first_piece
        cdef uint32_t k
        cdef uint32_t slot = 0
        cdef size_t taken
        for k in range(t.pieces):
            if n < piece[k].size or not same_bytes(
                p, self.arena.data + piece[k].start, piece[k].size
            ):
                return False
            p += piece[k].size
            n -= piece[k].size
            if piece[k].slot == INTEGER_SLOT:
                taken = take_integer(p, n, self.values + slot)
                slot += 1
            elif piece[k].slot == UUID_SLOT:
                taken = 36 if take_uuid(p, n, self.values + slot) else 0
                slot += 2
            else:
                return n == 0
            if taken == 0:
                return False
            p += taken
            n -= taken
        return False

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
            if _HEX[p[i]] != 255 and take_uuid(p + i, n - i, self.values + slots[0]):
                mark = UUID_SLOT
                slots[0] += 2
                taken = 36
            else:
                mark = INTEGER_SLOT
                taken = take_integer(p + i, n - i, self.values + slots[0])
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
        with nogil:
            for row in range(self.n):
                if everywhere or self.has_slot(row, j):
                    low = min(low, slot[row])
                    high = max(high, slot[row])
            if low < high:
                for row in range(self.n):
                    if everywhere or self.has_slot(row, j):
                        slot[row] -= low
                    else:
                        slot[row] = 0
        if low >= high:
            return (low if low == high else 0), None
        return low, _narrowed(slot, self.n, high - low)

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


cdef object _narrowed(const uint64_t* source, size_t n, uint64_t largest):
    """A copy in the narrowest unsigned type that holds ``largest``."""
    cdef uint8_t[::1] b8
    cdef uint16_t[::1] b16
    cdef uint32_t[::1] b32
    cdef uint64_t[::1] b64
    cdef size_t i
    if largest < 1 << 8:
        out = np.empty(n, np.uint8)
        b8 = out
        for i in range(n):
            b8[i] = <uint8_t>source[i]
    elif largest < 1 << 16:
        out = np.empty(n, np.uint16)
        b16 = out
        for i in range(n):
            b16[i] = <uint16_t>source[i]
    elif largest < 1ULL << 32:
        out = np.empty(n, np.uint32)
        b32 = out
        for i in range(n):
            b32[i] = <uint32_t>source[i]
    else:
        out = np.empty(n, np.uint64)
        b64 = out
        for i in range(n):
            b64[i] = source[i]
    return out


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


# -- unpacking ----------------------------------------------------------------------------------

cdef int _measure(
    const uint8_t[::1] arena, const uint32_t[::1] bounds, const uint16_t[::1] codes,
    const uint8_t[::1] valid, const uint64_t[:, ::1] slots, int64_t[::1] offsets
) except -1 nogil:
    cdef size_t row
    cdef size_t i
    cdef uint32_t code
    cdef uint32_t j
    cdef int64_t total = 0
    cdef int64_t size
    cdef size_t n = valid.shape[0]
    for row in range(n):
        if valid[row]:
            code = codes[row]
            j = 0
            size = 0
            for i in range(bounds[code], bounds[code + 1]):
                if arena[i] == INTEGER_SLOT:
                    size += decimal_length(slots[j, row])
                    j += 1
                elif arena[i] == UUID_SLOT:
                    size += 36
                    j += 2
                else:
                    size += 1
            total += size
        offsets[row + 1] = total
    return 0


cdef int _render(
    const uint8_t[::1] arena, const uint32_t[::1] bounds, const uint16_t[::1] codes,
    const uint8_t[::1] valid, const uint64_t[:, ::1] slots, uint8_t* out
) except -1 nogil:
    cdef size_t row
    cdef size_t i
    cdef uint32_t code
    cdef uint32_t j
    cdef size_t n = valid.shape[0]
    for row in range(n):
        if not valid[row]:
            continue
        code = codes[row]
        j = 0
        for i in range(bounds[code], bounds[code + 1]):
            if arena[i] == INTEGER_SLOT:
                out += put_integer(out, slots[j, row])
                j += 1
            elif arena[i] == UUID_SLOT:
                out += put_uuid(out, slots[j, row], slots[j + 1, row])
                j += 2
            else:
                out[0] = arena[i]
                out += 1
    return 0


def unpack_texts(
    list skeletons not None,
    const uint16_t[::1] codes not None,
    const uint8_t[::1] valid not None,
    const uint64_t[:, ::1] slots not None,
):
    """The texts again: ``(bytes, offsets)``; slots are whole values, one row of ``slots`` each."""
    if codes.shape[0] != valid.shape[0] or (slots.shape[0] and slots.shape[1] != codes.shape[0]):
        raise ValueError("codes, validity and slots differ in length")
    _check_codes(skeletons, codes, slots.shape[0])
    joined = np.frombuffer(b"".join(skeletons) or b"\0", np.uint8)
    edges = np.zeros(len(skeletons) + 1, np.uint32)
    edges[1:] = np.cumsum([len(s) for s in skeletons], dtype=np.uint32)
    offsets = np.zeros(valid.shape[0] + 1, np.int64)
    cdef const uint8_t[::1] arena = joined
    cdef const uint32_t[::1] bounds = edges
    cdef int64_t[::1] ends = offsets
    with nogil:
        _measure(arena, bounds, codes, valid, slots, ends)
    out = np.empty(offsets[valid.shape[0]], np.uint8)
    cdef uint8_t[::1] target = out
    if target.shape[0]:
        with nogil:
            _render(arena, bounds, codes, valid, slots, &target[0])
    return out, offsets


cdef int _check_codes(list skeletons, const uint16_t[::1] codes, Py_ssize_t slots) except -1:
    """Every code has its skeleton, every skeleton its slots: a damaged cache must not read past."""
    cdef size_t row
    cdef uint16_t largest = 0
    for row in range(<size_t>codes.shape[0]):
        largest = max(largest, codes[row])
    if codes.shape[0] and largest >= len(skeletons):
        raise CorruptFileError("a packed text refers to a skeleton that is not there")
    for skeleton in skeletons:
        if skeleton.count(b"\xff") + 2 * skeleton.count(b"\xfe") > slots:
            raise CorruptFileError("a packed text refers to a slot that is not there")
    return 0


# -- hashes ------------------------------------------------------------------------------------

def sort_hashes(const uint64_t[::1] hashes not None):
    """Hashes in ascending order and the row of each; equal hashes keep the order of their rows."""
    cdef size_t n = hashes.shape[0]
    cdef uint32_t bits = 1
    while bits < 22 and (<size_t>1 << bits) < n:
        bits += 1
    cdef size_t row
    cdef size_t bucket
    cdef size_t at
    ordered = np.empty(n, np.uint64)
    rows = np.empty(n, np.uint32)
    begins = np.zeros((1 << bits) + 1, np.uint32)
    cdef uint64_t[::1] keys = ordered
    cdef uint32_t[::1] from_row = rows
    cdef uint32_t[::1] begin = begins
    cdef uint32_t shift = 64 - bits
    if n >= NULL_LENGTH:
        raise ValueError("too many rows for one sort")
    with nogil:
        for row in range(n):
            begin[(hashes[row] >> shift) + 1] += 1
        for bucket in range(<size_t>1 << bits):
            begin[bucket + 1] += begin[bucket]
        for row in range(n):
            bucket = hashes[row] >> shift
            at = begin[bucket]
            begin[bucket] += 1
            keys[at] = hashes[row]
            from_row[at] = <uint32_t>row
        _settle(keys, from_row, n)
    return ordered, rows


cdef void _settle(uint64_t[::1] keys, uint32_t[::1] rows, size_t n) noexcept nogil:
    """Insertion sort of nearly sorted keys."""
    cdef size_t i
    cdef size_t at
    cdef uint64_t key
    cdef uint32_t row
    for i in range(1, n):
        key = keys[i]
        if keys[i - 1] <= key:
            continue
        row = rows[i]
        at = i
        while at > 0 and keys[at - 1] > key:
            keys[at] = keys[at - 1]
            rows[at] = rows[at - 1]
            at -= 1
        keys[at] = key
        rows[at] = row
