"""Text columns to skeletons and slots, and back."""

from libc.stdlib cimport calloc, free, malloc, realloc
from libc.string cimport memcpy, memset

import numpy as np

from indextables.native._hash cimport load32, load64, xxh64_bytes
from indextables.native._typedefs cimport (
    int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t,
)

from indextables.errors import CorruptFileError

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define it_prefetch(p) __builtin_prefetch(p)
    #else
    #define it_prefetch(p) ((void)0)
    #endif
    """
    void it_prefetch(const void* p) noexcept nogil

cdef enum:
    AHEAD = 12              # rows whose bytes are fetched before their turn

cdef enum:
    GIVE_UP = 1
    NO_MEMORY = -1
    NOT_UTF8 = -2
    OUT_OF_BUFFER = -3

cdef uint8_t[256] _HEX
cdef int _i
for _i in range(256):
    _HEX[_i] = 255
for _i in range(10):
    _HEX[48 + _i] = _i
for _i in range(6):
    _HEX[97 + _i] = 10 + _i
cdef const uint8_t* _DIGITS = b"0123456789abcdef"


cdef inline void fetch(const uint8_t* base, uint64_t size, uint64_t start) noexcept nogil:
    """Ask for the bytes of a text that is read soon: its column lies scattered in memory."""
    if start < size:
        it_prefetch(base + start)
        it_prefetch(base + min(start + 63, size - 1))


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

cdef class _Packer:
    """Templates and slots of one column while its rows go by."""

    cdef size_t n
    cdef uint8_t* arena
    cdef size_t arena_used
    cdef size_t arena_size
    cdef Template* templates
    cdef uint32_t count
    cdef Piece* pieces
    cdef uint32_t pieces_used
    cdef uint32_t pieces_size
    cdef int32_t* table
    cdef uint64_t** slots
    cdef uint32_t slot_count
    cdef uint16_t* codes
    cdef uint8_t* scratch
    cdef size_t scratch_size

    def __cinit__(self, size_t n):
        self.n = n
        self.templates = <Template*>malloc(MOST_TEMPLATES * sizeof(Template))
        self.table = <int32_t*>malloc(TABLE_SIZE * sizeof(int32_t))
        self.slots = <uint64_t**>calloc(MOST_SLOTS, sizeof(uint64_t*))
        self.codes = <uint16_t*>calloc(n + 1, sizeof(uint16_t))
        if not (self.templates and self.table and self.slots and self.codes):
            raise MemoryError()
        memset(self.table, 0xff, TABLE_SIZE * sizeof(int32_t))

    def __dealloc__(self):
        cdef uint32_t j
        if self.slots:
            for j in range(MOST_SLOTS):
                free(self.slots[j])
        free(self.slots)
        free(self.codes)
        free(self.table)
        free(self.templates)
        free(self.pieces)
        free(self.arena)
        free(self.scratch)

    cdef bint matches(
        self, const Template* t, const uint8_t* p, size_t n, uint64_t* values
    ) noexcept nogil:
        """Whether the text is an instance of ``t``; its slots go to ``values``."""
        cdef const Piece* piece = self.pieces + t.first_piece
        cdef uint32_t k
        cdef uint32_t slot = 0
        cdef size_t taken
        for k in range(t.pieces):
            if n < piece[k].size or not same_bytes(
                p, self.arena + piece[k].start, piece[k].size
            ):
                return False
            p += piece[k].size
            n -= piece[k].size
            if piece[k].slot == INTEGER_SLOT:
                taken = take_integer(p, n, values + slot)
                slot += 1
            elif piece[k].slot == UUID_SLOT:
                taken = 36 if take_uuid(p, n, values + slot) else 0
                slot += 2
            else:
                return n == 0
            if taken == 0:
                return False
            p += taken
            n -= taken
        return False

    cdef int split(
        self, const uint8_t* p, size_t n, uint64_t* values, size_t* size, uint32_t* slots
    ) noexcept nogil:
        """Skeleton of a text into ``scratch``, its slots into ``values``."""
        cdef size_t i = 0
        cdef size_t out = 0
        cdef size_t taken
        cdef uint8_t* scratch
        slots[0] = 0
        if n + 1 > self.scratch_size:
            scratch = <uint8_t*>realloc(self.scratch, 2 * n + 64)
            if scratch == NULL:
                return NO_MEMORY
            self.scratch = scratch
            self.scratch_size = 2 * n + 64
        while i < n:
            if slots[0] + 2 > MOST_SLOTS:
                return GIVE_UP
            if _HEX[p[i]] != 255 and take_uuid(p + i, n - i, values + slots[0]):
                self.scratch[out] = UUID_SLOT
                slots[0] += 2
                taken = 36
            else:
                taken = take_integer(p + i, n - i, values + slots[0])
                if taken:
                    self.scratch[out] = INTEGER_SLOT
                    slots[0] += 1
                else:
                    self.scratch[out] = p[i]
                    taken = 1
            out += 1
            i += taken
        size[0] = out
        return 0

    cdef int find(self, size_t size, uint32_t slots, size_t seen, uint32_t* code) noexcept nogil:
        """The template of the skeleton in ``scratch``, made when it is new."""
        cdef uint32_t at = <uint32_t>xxh64_bytes(self.scratch, size, 0) & (TABLE_SIZE - 1)
        cdef Template* t
        while self.table[at] >= 0:
            t = self.templates + self.table[at]
            if t.size == size and same_bytes(self.arena + t.start, self.scratch, size):
                code[0] = <uint32_t>self.table[at]
                return 0
            at = (at + 1) & (TABLE_SIZE - 1)
        if self.count >= MOST_TEMPLATES or self.count > 1024 + seen // 8:
            return GIVE_UP
        cdef int status = self.make(size, slots)
        if status == 0:
            code[0] = self.count - 1
            self.table[at] = <int32_t>code[0]
        return status

    cdef int make(self, size_t size, uint32_t slots) noexcept nogil:
        """A template of the skeleton in ``scratch``."""
        cdef uint8_t* arena
        cdef Piece* pieces
        cdef size_t i
        cdef Template* t = self.templates + self.count
        if self.arena_used + size + 1 > 0x7fffffff:
            return GIVE_UP
        if self.arena_used + size + 1 > self.arena_size:
            arena = <uint8_t*>realloc(self.arena, 2 * (self.arena_used + size) + 256)
            if arena == NULL:
                return NO_MEMORY
            self.arena = arena
            self.arena_size = 2 * (self.arena_used + size) + 256
        if self.pieces_used + slots + 1 > self.pieces_size:
            pieces = <Piece*>realloc(
                self.pieces, (2 * (self.pieces_used + slots) + 64) * sizeof(Piece)
            )
            if pieces == NULL:
                return NO_MEMORY
            self.pieces = pieces
            self.pieces_size = 2 * (self.pieces_used + slots) + 64
        while self.slot_count < slots:
            self.slots[self.slot_count] = <uint64_t*>calloc(self.n + 1, sizeof(uint64_t))
            if self.slots[self.slot_count] == NULL:
                return NO_MEMORY
            self.slot_count += 1
        memcpy(self.arena + self.arena_used, self.scratch, size)
        t.start = <uint32_t>self.arena_used
        t.size = <uint32_t>size
        t.slots = slots
        t.first_piece = self.pieces_used
        self.add_pieces(t)
        t.pieces = self.pieces_used - t.first_piece
        self.arena_used += size
        self.count += 1
        return 0

    cdef void add_pieces(self, const Template* t) noexcept nogil:
        cdef size_t i
        cdef size_t begin = t.start
        cdef uint8_t b
        cdef Piece* piece
        for i in range(t.start, t.start + t.size + 1):
            b = self.arena[i] if i < t.start + t.size else 0
            if i < t.start + t.size and b < UUID_SLOT:
                continue
            piece = self.pieces + self.pieces_used
            piece.start = <uint32_t>begin
            piece.size = <uint32_t>(i - begin)
            piece.slot = b if i < t.start + t.size else 0
            self.pieces_used += 1
            begin = i + 1

    cdef int pack(
        self, const uint8_t[::1] data, const uint32_t[::1] starts, const uint32_t[::1] lengths
    ) noexcept nogil:
        """All rows; 0, ``GIVE_UP`` or an error."""
        cdef uint64_t[MOST_SLOTS + 2] values
        cdef uint64_t size = data.shape[0]
        cdef const uint8_t* base = &data[0] if size else NULL
        cdef uint32_t code = 0
        cdef uint32_t slots = 0
        cdef size_t skeleton = 0
        cdef const uint8_t* before = NULL
        cdef size_t before_size = 0
        cdef size_t row
        cdef uint32_t j
        cdef int status
        for row in range(self.n):
            if row + AHEAD < self.n:
                fetch(base, size, starts[row + AHEAD])
            if lengths[row] == NULL_LENGTH:
                continue
            if <uint64_t>starts[row] + lengths[row] > size:
                return OUT_OF_BUFFER
            if before != NULL and before_size == lengths[row] and same_bytes(
                before, base + starts[row], before_size
            ):
                pass
            elif not self.count or not self.matches(
                self.templates + code, base + starts[row], lengths[row], values
            ):
                if not text_valid(base + starts[row], lengths[row]):
                    return NOT_UTF8
                status = self.split(base + starts[row], lengths[row], values, &skeleton, &slots)
                if status == 0:
                    status = self.find(skeleton, slots, row, &code)
                if status != 0:
                    return status
            before = base + starts[row]
            before_size = lengths[row]
            self.codes[row] = <uint16_t>code
            for j in range(self.templates[code].slots):
                self.slots[j][row] = values[j]
        return 0

    cdef list skeletons(self):
        cdef uint32_t k
        return [
            (<const char*>(self.arena + self.templates[k].start))[:self.templates[k].size]
            if self.templates[k].size else b""
            for k in range(self.count)
        ]

    cdef tuple slot_column(self, uint32_t j, const uint32_t[::1] lengths, bint everywhere):
        """Slot ``j`` as its least value and the narrowest differences from it."""
        cdef uint64_t low = 0xffffffffffffffffULL
        cdef uint64_t high = 0
        cdef size_t row
        cdef uint64_t* slot = self.slots[j]
        with nogil:
            for row in range(self.n):
                if everywhere or self.has_slot(row, j, lengths):
                    low = min(low, slot[row])
                    high = max(high, slot[row])
            if low < high:
                for row in range(self.n):
                    if everywhere or self.has_slot(row, j, lengths):
                        slot[row] -= low
                    else:
                        slot[row] = 0
        if low >= high:
            return (low if low == high else 0), None
        return low, _narrowed(slot, self.n, high - low)

    cdef inline bint has_slot(
        self, size_t row, uint32_t j, const uint32_t[::1] lengths
    ) noexcept nogil:
        return lengths[row] != NULL_LENGTH and self.templates[self.codes[row]].slots > j

    cdef bint is_uniform(self, const uint32_t[::1] lengths) noexcept nogil:
        """One skeleton and no NULL: every row has every slot."""
        cdef size_t row
        if self.count != 1:
            return False
        for row in range(self.n):
            if lengths[row] == NULL_LENGTH:
                return False
        return True

    cdef bint is_worth_it(self, const uint32_t[::1] lengths) noexcept nogil:
        """Whether skeletons and slots are smaller than the texts."""
        cdef uint64_t plain = 0
        cdef size_t row
        for row in range(self.n):
            if lengths[row] != NULL_LENGTH:
                plain += lengths[row]
        cdef uint64_t packed = self.arena_used + 16 * self.count
        packed += self.n * (0 if self.count <= 1 else (1 if self.count <= 256 else 2))
        return packed <= plain + 4 * self.n or self.count <= 1


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
):
    """Pack the texts ``data[starts[i]:starts[i] + lengths[i]]``; length 2**32 - 1 is NULL.

    Returns ``(skeletons, codes, slots)``: codes are ``None`` when there is one skeleton, a slot is
    ``(least value, differences or None)``. Returns ``None`` when the texts share too little; they
    are then better kept as they are. Texts that are not UTF-8 are ``CorruptFileError``.
    """
    if starts.shape[0] != lengths.shape[0]:
        raise ValueError("starts and lengths differ in number")
    cdef _Packer packer = _Packer(starts.shape[0])
    cdef int status
    with nogil:
        status = packer.pack(data, starts, lengths)
        if status == 0 and not packer.is_worth_it(lengths):
            status = GIVE_UP
    if status == GIVE_UP:
        return None
    _check(status)
    cdef uint32_t j
    cdef uint16_t[::1] codes
    coded = None
    if packer.count > 1:
        coded = np.empty(packer.n, np.uint16)
        codes = coded
        memcpy(&codes[0], packer.codes, packer.n * sizeof(uint16_t))
        if packer.count <= 256:
            coded = coded.astype(np.uint8)
    cdef bint uniform = packer.is_uniform(lengths)
    slots = [packer.slot_column(j, lengths, uniform) for j in range(packer.slot_count)]
    return packer.skeletons(), coded, slots


cdef int _check(int status) except -1:
    if status == NO_MEMORY:
        raise MemoryError()
    if status == NOT_UTF8:
        raise CorruptFileError("a text is not UTF-8")
    if status == OUT_OF_BUFFER:
        raise ValueError("a text lies outside its buffer")
    return 0


def gather_texts(
    const uint8_t[::1] data not None,
    const uint32_t[::1] starts not None,
    const uint32_t[::1] lengths not None,
    bint check_utf8=True,
):
    """Copy the texts next to each other: ``(bytes, offsets)`` with one offset more than rows."""
    if starts.shape[0] != lengths.shape[0]:
        raise ValueError("starts and lengths differ in number")
    cdef size_t n = starts.shape[0]
    cdef uint64_t size = data.shape[0]
    cdef uint64_t total = 0
    cdef size_t row
    cdef int status = 0
    cdef const uint8_t* base = &data[0] if size else NULL
    offsets = np.zeros(n + 1, np.uint64)
    cdef uint64_t[::1] ends = offsets
    with nogil:
        for row in range(n):
            if row + AHEAD < n:
                fetch(base, size, starts[row + AHEAD])
            if lengths[row] != NULL_LENGTH:
                if <uint64_t>starts[row] + lengths[row] > size:
                    status = OUT_OF_BUFFER
                    break
                if check_utf8 and not text_valid(base + starts[row], lengths[row]):
                    status = NOT_UTF8
                    break
                total += lengths[row]
            ends[row + 1] = total
    _check(status)
    out = np.empty(total, np.uint8)
    cdef uint8_t[::1] target = out
    if total:
        with nogil:
            for row in range(n):
                if row + AHEAD < n:
                    fetch(base, size, starts[row + AHEAD])
                if lengths[row] != NULL_LENGTH and lengths[row]:
                    memcpy(&target[ends[row]], base + starts[row], lengths[row])
    return out, offsets.astype(np.uint32) if total < 1 << 32 else offsets


def hash_texts(
    const uint8_t[::1] data not None,
    const uint32_t[::1] starts not None,
    const uint32_t[::1] lengths not None,
):
    """XXH64 of each text, 0 for NULL."""
    if starts.shape[0] != lengths.shape[0]:
        raise ValueError("starts and lengths differ in number")
    cdef size_t n = starts.shape[0]
    cdef uint64_t size = data.shape[0]
    cdef size_t row
    cdef int status = 0
    cdef const uint8_t* base = &data[0] if size else NULL
    out = np.zeros(n, np.uint64)
    cdef uint64_t[::1] hashes = out
    with nogil:
        for row in range(n):
            if row + AHEAD < n:
                fetch(base, size, starts[row + AHEAD])
            if lengths[row] == NULL_LENGTH:
                continue
            if <uint64_t>starts[row] + lengths[row] > size:
                status = OUT_OF_BUFFER
                break
            hashes[row] = xxh64_bytes(base + starts[row], lengths[row], 0)
    _check(status)
    return out


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
