"""Strings and binaries, from blocks into Arrow offsets and bytes.

Four spellings, each of which gives any single value without touching its neighbours:

* ``PLAIN``: ends of the values, then their bytes;
* ``CODES``: numbers of words in the chunk's dictionary;
* ``PAIRS``: every value is a run of codes, each standing for 1 to 16 bytes of the chunk's table;
* ``TEMPLATE``: all values have one shape (a uuid, ``order-000017``): literals are in the page, the
  digits between them are packed into a fixed number of bits a value.

Decoding is two calls: ``text_bound`` says how many bytes the spans can need, ``decode_text`` fills
a buffer of that size plus ``PAD`` bytes of slack, into which short words are copied 16 at a time.
"""

from libc.string cimport memcpy, memset

from indextables.native._cursor cimport (
    Cursor, bswap64, corrupt_at, cursor_fail, cursor_left, cursor_take, it_le64, read_u32,
)
from indextables.native._rows_bits cimport (
    IntVec, bits_at, packed_bytes, rank_from, safe_numbers, unpack_run, vec_get, vec_open, vec_run,
    width_mask,
)
from indextables.native._rows_blocks cimport (
    ALL_NULL, CODES, PAIRS, PLAIN, TEMPLATE, ZSTD, BlockSet, Head, Run, Spans, part_start,
    part_stop, rank_run,
)
from indextables.native._rows_lexicon cimport (
    MAX_WORD, OP_DECIMAL, OP_HEX_LOWER, OP_LITERAL, PAD, PAIR_TABLE, TEMPLATE_PAGE, TEXT_DICTIONARY,
    Lexicon, Op,
)
from indextables.native._typedefs cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    PIECE = 512


cdef struct Text:
    uint8_t kind
    IntVec ends                 # ends of values, or dictionary codes
    IntVec codes                # pair codes
    uint64_t total              # bytes of all values, as declared
    const uint8_t* data
    uint64_t nbytes
    const uint32_t* starts
    const uint8_t* words
    uint64_t nwords
    uint64_t longest            # bytes of the longest word
    const Op* ops
    uint32_t nops
    uint32_t row_bits
    uint32_t row_chars


cdef struct Part:
    uint64_t first              # values first .. end of a run
    uint64_t end


cdef class Lexicons:
    """The resource pages of a stream's chunks, and which of them each block uses."""
    cdef list owners
    cdef const int32_t[::1] which

    def __init__(self, list owners, which):
        self.owners = owners
        self.which = which

    cdef Lexicon pick(self, int64_t block):
        cdef int32_t at
        if block >= self.which.shape[0]:
            return None
        at = self.which[block]
        return self.owners[at] if 0 <= at < len(self.owners) else None


cdef int text_link(Head* head, Text* t, Lexicon words) except -1:
    """Point a block at its resource page, which must be of the kind the block needs."""
    cdef int wanted = 0
    if head.kind == CODES:
        wanted = TEXT_DICTIONARY
    elif head.kind == PAIRS:
        wanted = PAIR_TABLE
    elif head.kind == TEMPLATE:
        wanted = TEMPLATE_PAGE
    if wanted == 0:
        return 0
    if words is None or words.kind != wanted:
        return cursor_fail(&head.body, b"block has no dictionary of its kind")
    t.starts = words.starts
    t.words = words.data
    t.nwords = words.count
    t.longest = words.longest
    t.ops = words.ops
    t.nops = words.count
    t.row_bits = words.row_bits
    t.row_chars = words.row_chars
    t.codes.width = words.width
    return 0


cdef int text_open(Head* head, Text* t) except -1 nogil:
    cdef Cursor* c = &head.body
    t.kind = head.kind
    t.total = 0
    if head.count * 4 > head.allowance:
        return cursor_fail(c, b"block claims more values than its size allows")
    if head.valid == 0:
        return 0
    if head.kind == TEMPLATE:
        t.total = head.valid * t.row_chars
        t.nbytes = packed_bytes(head.valid, t.row_bits)
        t.data = cursor_take(c, t.nbytes)
    elif head.kind == CODES:
        vec_open(c, head.valid, &t.ends)
    elif head.kind == PLAIN:
        vec_open(c, head.valid, &t.ends)
        t.nbytes = t.total = cursor_left(c)
        t.data = cursor_take(c, t.nbytes)
    elif head.kind == PAIRS:
        vec_open(c, head.valid, &t.ends)
        t.total = read_u32(c)
        pairs_open(c, t, vec_get(&t.ends, head.valid - 1))
    else:
        return cursor_fail(c, b"unexpected kind of block")
    if t.total > head.allowance:
        return cursor_fail(c, b"block claims more bytes than its size allows")
    return 0


cdef int pairs_open(Cursor* c, Text* t, uint64_t ncodes) except -1 nogil:
    if ncodes > 8 * c.size or t.codes.width == 0:
        return cursor_fail(c, b"block claims more codes than it holds")
    t.codes.count = ncodes
    t.codes.base = 0
    t.codes.slope = 0
    t.codes.shift = 0
    t.codes.factor = 1
    t.codes.mask = width_mask(t.codes.width)
    t.codes.nbytes = packed_bytes(ncodes, t.codes.width)
    t.codes.safe = safe_numbers(t.codes.nbytes, t.codes.width)
    t.codes.bits = cursor_take(c, t.codes.nbytes)
    return 0


cdef int64_t words_length(const Text* t, const uint64_t* codes, uint64_t n) except -1 nogil:
    """Bytes of the words of ``codes``."""
    cdef uint64_t i, total = 0
    for i in range(n):
        if codes[i] >= t.nwords:
            return corrupt_at(0, b"dictionary code beyond the dictionary")
        total += t.starts[codes[i] + 1] - t.starts[codes[i]]
    return total


cdef inline uint64_t parts_of_run(
    const Head* head, Spans spans, const Run* run, Part* parts
) noexcept nogil:
    """The values of a run's spans, as places among the values of the run; how many parts."""
    cdef uint64_t start, stop, rank = run.rank, slot = run.start, n = 0
    cdef Py_ssize_t i
    for i in range(run.first, run.end):
        start = part_start(spans, run, i)
        stop = part_stop(spans, run, i)
        rank = rank_from(head.bitmap, slot, rank, start)
        parts[n].first = rank - run.rank
        rank = rank_from(head.bitmap, start, rank, stop)
        parts[n].end = rank - run.rank
        slot = stop
        n += 1
    return n


cdef int64_t values_bound(Head* head, const Text* t, uint64_t first, uint64_t n) except -1 nogil:
    """Bytes that values ``first .. first + n``, which are no codes, can need at most."""
    cdef uint64_t begin, end
    if n == 0:
        return 0
    if t.kind == TEMPLATE:
        return n * t.row_chars
    begin = vec_get(&t.ends, first - 1) if first else 0
    end = vec_get(&t.ends, first + n - 1)
    if end < begin or end > (t.nbytes if t.kind == PLAIN else t.codes.count):
        return cursor_fail(&head.body, b"value ends outside its block")
    if t.kind == PLAIN:
        return end - begin
    return min(t.total, MAX_WORD * (end - begin))


cdef inline uint64_t hex_chars(uint64_t nibbles, uint64_t gap) noexcept nogil:
    """Eight nibbles (highest first) as eight characters in memory order."""
    cdef uint64_t v = nibbles
    v = ((v << 16) | v) & 0x0000FFFF0000FFFFULL
    v = ((v << 8) | v) & 0x00FF00FF00FF00FFULL
    v = ((v << 4) | v) & 0x0F0F0F0F0F0F0F0FULL
    v += 0x3030303030303030ULL + (((v + 0x0606060606060606ULL) >> 4) & 0x0101010101010101ULL) * gap
    return it_le64(bswap64(v))


cdef inline void put_hex(uint8_t* out, uint64_t v, uint32_t chars, uint64_t gap) noexcept nogil:
    """``chars`` (1..16) hex digits; up to 15 bytes after them are overwritten too."""
    cdef uint64_t word
    v <<= 64 - 4 * chars
    word = hex_chars(v >> 32, gap)
    memcpy(out, &word, 8)
    if chars > 8:
        word = hex_chars(v & 0xFFFFFFFFULL, gap)
        memcpy(out + 8, &word, 8)


cdef void put_template(const Text* t, uint64_t value, uint8_t* out) noexcept nogil:
    """Write one value of a template, left to right; may overwrite ``PAD`` bytes after it."""
    cdef uint64_t bit = value * t.row_bits, v
    cdef uint32_t i, k
    cdef const Op* op
    for i in range(t.nops):
        op = &t.ops[i]
        if op.kind == OP_LITERAL:
            memcpy(out, t.words + op.at, op.chars)
        else:
            v = bits_at(t.data, t.nbytes, bit, op.bits)
            bit += op.bits
            if op.kind == OP_DECIMAL:
                k = op.chars
                while k > 0:
                    k -= 1
                    out[k] = 48 + v % 10
                    v //= 10
            else:
                put_hex(out, v, op.chars, 39 if op.kind == OP_HEX_LOWER else 7)
        out += op.chars


cdef int64_t put_words(
    const Text* t, const uint64_t* codes, uint64_t n, uint8_t* out, uint64_t at, uint64_t size
) except -1 nogil:
    """Append the words of ``codes``; where the output ends after them."""
    cdef uint64_t i, code, length
    cdef uint32_t start
    cdef bint roomy = at + MAX_WORD * n + PAD <= size
    for i in range(n):
        code = codes[i]
        if code >= t.nwords:
            return corrupt_at(0, b"dictionary code beyond the dictionary")
        start = t.starts[code]
        length = t.starts[code + 1] - start
        if roomy:
            memcpy(out + at, t.words + start, MAX_WORD)
        elif at + length > size:
            return corrupt_at(0, b"values are longer than their block declares")
        else:
            memcpy(out + at, t.words + start, length)
        at += length
    return at


cdef int64_t put_pairs(
    Head* head, const Text* t, uint64_t first, uint64_t n,
    uint8_t* out, uint64_t at, uint64_t size, uint64_t* stops,
) except -1 nogil:
    cdef uint64_t codes[PIECE]
    cdef uint64_t i, m, have = 0, used = 0
    cdef uint64_t next_code = vec_get(&t.ends, first - 1) if first else 0
    cdef uint64_t last = vec_get(&t.ends, first + n - 1), end, left
    if last > t.codes.count:
        return cursor_fail(&head.body, b"value ends outside its block")
    vec_run(&t.ends, first, n, stops)
    for i in range(n):
        end = stops[i]
        if end < next_code or end > last:
            return cursor_fail(&head.body, b"value ends before it starts")
        left = end - next_code
        next_code = end
        while left:
            if used == have:
                have = min(last - (end - left), <uint64_t>PIECE)
                used = 0
                unpack_run(&t.codes, end - left, have, codes)
            m = min(left, have - used)
            at = put_words(t, codes + used, m, out, at, size)
            used += m
            left -= m
        stops[i] = at
    return at


cdef int64_t put_plain(
    Head* head, const Text* t, uint64_t first, uint64_t n,
    uint8_t* out, uint64_t at, uint64_t size, uint64_t* stops,
) except -1 nogil:
    cdef uint64_t i, begin = vec_get(&t.ends, first - 1) if first else 0
    cdef uint64_t last = vec_get(&t.ends, first + n - 1), previous = begin
    if last < begin or last > t.nbytes or at + (last - begin) > size:
        return cursor_fail(&head.body, b"value ends outside its block")
    memcpy(out + at, t.data + begin, last - begin)
    vec_run(&t.ends, first, n, stops)
    for i in range(n):
        if stops[i] < previous or stops[i] > last:
            return cursor_fail(&head.body, b"value ends before it starts")
        previous = stops[i]
        stops[i] = at + stops[i] - begin
    return at + (last - begin)


cdef int64_t put_codes(
    Head* head, const Text* t, const uint64_t* codes, uint64_t n,
    uint8_t* out, uint64_t at, uint64_t size, uint64_t* stops,
) except -1 nogil:
    """Append words of a dictionary; ``stops[i]`` is the end of each."""
    cdef uint64_t i, length
    cdef uint32_t start
    if t.longest <= MAX_WORD and at + n * t.longest + PAD <= size:
        for i in range(n):
            if codes[i] >= t.nwords:
                return corrupt_at(0, b"dictionary code beyond the dictionary")
            start = t.starts[codes[i]]
            memcpy(out + at, t.words + start, MAX_WORD)
            at += t.starts[codes[i] + 1] - start
            stops[i] = at
        return at
    for i in range(n):
        if codes[i] >= t.nwords:
            return corrupt_at(0, b"dictionary code beyond the dictionary")
        start = t.starts[codes[i]]
        length = t.starts[codes[i] + 1] - start
        if at + length + PAD > size:
            return cursor_fail(&head.body, b"values are longer than their block declares")
        if length <= PAD:
            memcpy(out + at, t.words + start, PAD)
        else:
            memcpy(out + at, t.words + start, length)
        at += length
        stops[i] = at
    return at


cdef int64_t put_values(
    Head* head, const Text* t, uint64_t first, uint64_t n,
    uint8_t* out, uint64_t at, uint64_t size, uint64_t* stops,
) except -1 nogil:
    """Append values ``first .. first + n``, which are no codes; ``stops[i]`` is the end of each."""
    cdef uint64_t i
    if n == 0:
        return at
    if t.kind == PAIRS:
        return put_pairs(head, t, first, n, out, at, size, stops)
    if t.kind == PLAIN:
        return put_plain(head, t, first, n, out, at, size, stops)
    if at + n * t.row_chars + PAD > size:
        return cursor_fail(&head.body, b"values are longer than their block declares")
    for i in range(n):
        put_template(t, first + i, out + at)
        at += t.row_chars
        stops[i] = at
    return at


cdef inline uint64_t end_slots(
    const Head* head, uint64_t start, uint64_t n, const uint64_t* stops, uint64_t valid,
    uint64_t before, int32_t* offsets, uint8_t* validity, uint64_t slot_at,
) noexcept nogil:
    """Offsets and validity of slots ``start .. start + n``, whose values end at ``stops``.

    A slot without a value ends where the one before it does; the first one at ``before``.
    """
    cdef uint64_t i, slot, k = 0
    if head.bitmap == NULL and validity == NULL and valid == n:
        for i in range(n):
            offsets[slot_at + i + 1] = <int32_t>stops[i]
        return n
    for i in range(n):
        slot = start + i
        if k < valid and (head.bitmap == NULL or head.bitmap[slot >> 3] >> (slot & 7) & 1):
            before = stops[k]
            k += 1
            if validity != NULL:
                validity[(slot_at + i) >> 3] |= 1 << ((slot_at + i) & 7)
        offsets[slot_at + i + 1] = <int32_t>before
    return k


cdef int64_t put_run(
    Head* head, const Text* t, Spans spans, const Run* run,
    uint8_t* out, uint64_t at, uint64_t size, uint64_t* stops, uint64_t* count,
) except -1 nogil:
    """Append the values of a run, whose ends go to ``stops``; where the output bytes end."""
    cdef uint64_t codes[PIECE]
    cdef Part parts[PIECE]
    cdef uint64_t i, n
    n = rank_from(head.bitmap, run.start, run.rank, run.stop) - run.rank
    if head.kind != CODES:
        count[0] = n
        return put_values(head, t, run.rank, n, out, at, size, stops)
    vec_run(&t.ends, run.rank, n, codes)
    count[0] = 0
    for i in range(parts_of_run(head, spans, run, parts)):
        n = parts[i].end - parts[i].first
        at = put_codes(head, t, codes + parts[i].first, n, out, at, size, stops + count[0])
        count[0] += n
    return at


cdef int64_t text_run(
    Head* head, const Text* t, Spans spans, const Run* run, int32_t* offsets, uint8_t* validity,
    uint64_t* slot_at, uint8_t* out, uint64_t at, uint64_t size,
) except -1 nogil:
    """Decode one run from slot ``slot_at`` on, and move that; where the output bytes end."""
    cdef uint64_t stops[PIECE]
    cdef uint64_t start, n, valid = 0, used = 0, before = at
    cdef Py_ssize_t i
    if head.kind != ALL_NULL:
        at = put_run(head, t, spans, run, out, at, size, stops, &valid)
    if head.bitmap == NULL and valid:
        end_slots(head, 0, valid, stops, valid, before, offsets, validity, slot_at[0])
        slot_at[0] += valid
        return at
    for i in range(run.first, run.end):
        start = part_start(spans, run, i)
        n = part_stop(spans, run, i) - start
        used += end_slots(
            head, start, n, stops + used, valid - used, before, offsets, validity, slot_at[0]
        )
        before = stops[used - 1] if used else before
        slot_at[0] += n
    return at


cdef int open_text(
    BlockSet blocks, int64_t block, Lexicons lexicons, Head* head, Text* t
) except -1:
    blocks.open_head(block, head)
    memset(t, 0, sizeof(Text))
    text_link(head, t, lexicons.pick(block))
    text_open(head, t)
    return 0


cdef int next_text(
    BlockSet blocks, Spans spans, Lexicons lexicons, Head* head, Text* t, Run* run, int64_t* current
) except -1 nogil:
    """Move to the next run, and open its block if that is another one; is there a next?

    Only codes are unpacked with the gaps between spans: other values may be long.
    """
    cdef Py_ssize_t i = run.end
    cdef bint join
    if i and run.stop < spans.hi[i - 1]:
        i -= 1
    if i == spans.b.shape[0]:
        return 0
    if spans.b[i] != current[0]:
        with gil:
            open_text(blocks, spans.b[i], lexicons, head, t)
        current[0] = spans.b[i]
        run.slot = run.rank = 0
    join = head.kind == CODES
    spans.next_run(run, PIECE, join)
    if run.stop > head.count:
        return cursor_fail(&head.body, b"block holds fewer slots than rows")
    rank_run(run, head.bitmap)
    return 1


def zstd_parts(BlockSet blocks, Py_ssize_t block):
    """Head and ends of a ``ZSTD`` block as a ``PLAIN`` one has them, the frame, its raw size."""
    cdef Head head
    cdef IntVec ends
    cdef uint32_t size
    cdef Cursor* c = &head.body
    blocks.open_head(block, &head)
    if head.kind != ZSTD:
        raise ValueError("not a zstd block")
    vec_open(c, head.valid, &ends)
    before = bytearray(c.base[:c.pos])
    size = read_u32(c)
    before[0] = PLAIN
    return bytes(before), c.base[c.pos:c.size], size


cdef inline uint64_t wanted_slots(Spans spans, const Run* run) noexcept nogil:
    """Slots of a run without its gaps."""
    cdef uint64_t wanted = 0
    cdef Py_ssize_t i
    for i in range(run.first, run.end):
        wanted += part_stop(spans, run, i) - part_start(spans, run, i)
    return wanted


cdef int64_t run_bound(
    Head* head, const Text* t, Spans spans, const Run* run
) except -1 nogil:
    """Bytes that a run can need at most; codes of short words are not looked at for that."""
    cdef uint64_t codes[PIECE]
    cdef Part parts[PIECE]
    cdef uint64_t i, n, bound = 0
    if head.valid == 0:
        return 0
    if head.kind == CODES and t.longest <= MAX_WORD:
        return wanted_slots(spans, run) * t.longest
    n = rank_from(head.bitmap, run.start, run.rank, run.stop) - run.rank
    if head.kind != CODES:
        return values_bound(head, t, run.rank, n)
    vec_run(&t.ends, run.rank, n, codes)
    for i in range(parts_of_run(head, spans, run, parts)):
        bound += words_length(t, codes + parts[i].first, parts[i].end - parts[i].first)
    if bound > head.allowance:
        return cursor_fail(&head.body, b"block claims more bytes than its size allows")
    return bound


def text_bound(BlockSet blocks, Spans spans, Lexicons lexicons):
    """Bytes that decoding the spans can need, without the slack."""
    cdef Head head
    cdef Text t
    cdef Run run
    cdef int64_t current = -1
    cdef uint64_t total = 0
    memset(&run, 0, sizeof(Run))
    with nogil:
        while next_text(blocks, spans, lexicons, &head, &t, &run, &current):
            total += run_bound(&head, &t, spans, &run)
    return total


def decode_text(
    BlockSet blocks, Spans spans, Lexicons lexicons,
    int32_t[::1] offsets, uint8_t[::1] out, uint8_t[::1] validity,
):
    """Fill offsets, bytes and (unless empty) validity; how many bytes were written."""
    cdef Head head
    cdef Text t
    cdef Run run
    cdef int64_t current = -1
    cdef uint64_t at = 0, slot_at = 0
    cdef uint8_t* marks = &validity[0] if validity.shape[0] else NULL
    if offsets.shape[0] != spans.total + 1 or out.shape[0] < PAD or out.shape[0] > 0x7FFFFFFF or (
        marks != NULL and (spans.total + 7) // 8 > validity.shape[0]
    ):
        raise ValueError("output does not fit the spans")
    offsets[0] = 0
    memset(&run, 0, sizeof(Run))
    with nogil:
        while next_text(blocks, spans, lexicons, &head, &t, &run, &current):
            at = text_run(
                &head, &t, spans, &run, &offsets[0], marks, &slot_at, &out[0], at, out.shape[0]
            )
    return at
