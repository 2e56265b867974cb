"""Blocks of one stream: bounds and checksum first, then a head, then values.

``BlockSet`` lays pointers over buffers it keeps alive. Making one checks that every block lies
inside its buffer; ``first_bad`` compares the checksums. A block begins with

    u8 kind | u8 flags | u16 0 | u32 slots | [u32 values | bitmap of ceil(slots / 8) bytes] | body

An empty block says that every slot is valid (structs) or that there is no slot (other streams).

What a block may expand to is bounded by what it is: ``128 * bytes + 256 * table rows``. The writer
keeps that promise, so a reader can refuse a forged block before it allocates anything.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdlib cimport calloc, free

import numpy as np

from indextables.native._crc32c cimport crc32c_extend
from indextables.native._cursor cimport (
    Cursor, corrupt_at, cursor_fail, cursor_init, cursor_take, read_u8, read_u16, read_u32,
)
from indextables.native._rows_bits cimport rank_bits


cdef enum:
    SMALL_GAP = 16              # slots that take as long to unpack as another run to begin


cdef inline uint64_t allowance_of(const Block* block) noexcept nogil:
    """Bytes that a block may expand to."""
    return EXPANSION * block.length + ROW_ALLOWANCE * <uint64_t>block.rows


cdef class _View:
    """Keeps one buffer exported for as long as a block set points into it."""
    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, owner):
        PyObject_GetBuffer(owner, &self.view, PyBUF_SIMPLE)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef class BlockSet:
    """Blocks of one stream, laid over the segments that were read.

    ``table`` has a row for each block: its offset in the payload, length, checksum, and number of
    table rows. It lies in ``segments[segment_of[i]]``, which begins at ``segment_start`` of the
    payload. Making a set compares the checksums: ``bad`` is the first block that differs, or -1.
    """

    def __cinit__(
        self,
        list segments,
        const int64_t[::1] segment_start,
        const int64_t[::1] segment_of,
        const int64_t[:, ::1] table,
    ):
        cdef Py_ssize_t i
        cdef int64_t offset, where
        cdef _View view
        self.owners = [_View(segment) for segment in segments]
        self.count = table.shape[0]
        self.bad = -1
        if table.shape[1] != 4 or segment_start.shape[0] < len(segments):
            raise ValueError("block table has the wrong shape")
        self.blocks = <Block*>calloc(self.count + 1, sizeof(Block))
        if self.blocks == NULL:
            raise MemoryError
        for i in range(self.count):
            where = segment_of[i] if segment_of.shape[0] else 0
            view = self.owners[where]
            offset = table[i, 0] - segment_start[where]
            if offset < 0 or table[i, 1] < 0 or offset > view.view.len - table[i, 1]:
                corrupt_at(table[i, 0], b"block lies outside the data that was read")
            self.blocks[i].data = <const uint8_t*>view.view.buf + offset
            self.blocks[i].length = table[i, 1]
            self.blocks[i].origin = table[i, 0]
            self.blocks[i].rows = <uint32_t>table[i, 3]
        self.check(table)

    def __dealloc__(self):
        free(self.blocks)

    cdef int check(self, const int64_t[:, ::1] table) except -1:
        """Compare checksums, and note which kinds of blocks there are."""
        cdef Py_ssize_t i
        cdef const Block* block
        with nogil:
            for i in range(self.count):
                block = &self.blocks[i]
                if block.length == 0:
                    continue
                if crc32c_extend(0, block.data, block.length) != <uint32_t>table[i, 2]:
                    self.bad = i
                    break
                self.kinds |= <uint32_t>1 << (block.data[0] & 31)
                if block.data[0] == ALL_NULL or (block.length > 1 and block.data[1] & HAS_NULLS):
                    self.any_nulls = True
        return 0

    def has_kind(self, int kind):
        """Whether any block is of this kind."""
        return bool(self.kinds >> (kind & 31) & 1)

    def of_kind(self, int kind):
        """Indexes of the blocks of this kind."""
        cdef Py_ssize_t i
        return [
            i for i in range(self.count)
            if self.blocks[i].length and self.blocks[i].data[0] == kind
        ]

    def bytes_of(self, Py_ssize_t i):
        """A copy of block ``i``."""
        if i < 0 or i >= self.count:
            raise IndexError(i)
        return self.blocks[i].data[:self.blocks[i].length]

    def allowance_of(self, Py_ssize_t i):
        """Bytes that block ``i`` may expand to."""
        if i < 0 or i >= self.count:
            raise IndexError(i)
        return allowance_of(&self.blocks[i])

    def replace(self, Py_ssize_t i, block):
        """Put another spelling of block ``i`` in its place."""
        cdef _View view = _View(block)
        if i < 0 or i >= self.count:
            raise IndexError(i)
        self.owners.append(view)
        self.blocks[i].data = <const uint8_t*>view.view.buf
        self.blocks[i].length = view.view.len

    cdef int open_head(self, int64_t block, Head* head) except -1 nogil:
        cdef Cursor* c = &head.body
        cdef uint8_t flags
        if block < 0 or block >= self.count:
            return corrupt_at(0, b"block number out of range")
        cursor_init(
            c, self.blocks[block].data, self.blocks[block].length, self.blocks[block].origin
        )
        head.bitmap = NULL
        head.count = 0
        head.valid = 0
        head.kind = VALIDITY
        head.allowance = allowance_of(&self.blocks[block])
        if c.size == 0:
            return 0
        head.kind = read_u8(c)
        flags = read_u8(c)
        if read_u16(c) or flags > HAS_NULLS:
            return cursor_fail(c, b"unknown block flags")
        head.count = read_u32(c)
        head.valid = 0 if head.kind == ALL_NULL else head.count
        if flags & HAS_NULLS:
            head.valid = read_u32(c)
            head.bitmap = cursor_take(c, (head.count + 7) >> 3)
            if head.valid != rank_bits(head.bitmap, head.count):
                return cursor_fail(c, b"null bitmap disagrees with the number of values")
        return 0


cdef class Spans:
    """Slots wanted, in order: ``start[i] .. stop[i]`` of ``block[i]``."""

    def __init__(self, block, start, stop):
        self.block = block
        self.start = start
        self.stop = stop
        self.b = block
        self.lo = start
        self.hi = stop
        if self.lo.shape[0] != self.b.shape[0] or self.hi.shape[0] != self.b.shape[0]:
            raise ValueError("spans differ in length")
        cdef int64_t total = 0
        cdef Py_ssize_t i
        for i in range(self.b.shape[0]):
            if self.hi[i] < self.lo[i]:
                raise ValueError("span ends before it starts")
            total += self.hi[i] - self.lo[i]
        self.total = total

    cdef bint next_run(self, Run* run, uint32_t most, bint join) noexcept nogil:
        """Move to the next slots that are unpacked at once, at most ``most``; is there a next?

        A run (zeroed at first) is a piece of a span or, with ``join``, of neighbours in one block
        and the small gaps between them: unpacking those is cheaper than to begin again.
        """
        cdef Py_ssize_t i = run.end, n = self.b.shape[0]
        cdef uint64_t limit
        if i and run.stop < self.hi[i - 1]:
            i -= 1
            run.start = run.stop
        elif i == n:
            return False
        else:
            run.start = self.lo[i]
        run.first = i
        limit = run.start + most
        run.stop = min(<uint64_t>self.hi[i], limit)
        i += 1
        while (
            join and i < n and i - run.first < <Py_ssize_t>most
            and self.b[i] == self.b[run.first] and self.lo[i] < limit
            and self.hi[i - 1] <= self.lo[i] <= self.hi[i - 1] + SMALL_GAP
        ):
            run.stop = min(<uint64_t>self.hi[i], limit)
            i += 1
        run.end = i
        return True

    cdef void whole_block(self, Run* run, uint64_t* slots) noexcept nogil:
        """Stretch a run over all spans from its first on that are in the same block."""
        cdef Py_ssize_t i = run.first
        cdef int32_t block = self.b[i]
        slots[0] = 0
        while i < self.b.shape[0] and self.b[i] == block:
            slots[0] += self.hi[i] - self.lo[i]
            i += 1
        run.end = i
        run.stop = self.hi[i - 1]


cdef Spans known_spans(block, start, stop, int64_t total):
    """Spans that need no check, of so many slots."""
    cdef Spans made = Spans.__new__(Spans)
    made.block, made.start, made.stop, made.total = block, start, stop, total
    made.b, made.lo, made.hi = block, start, stop
    return made


def require_slots(BlockSet blocks, Spans spans, uint64_t item_bits, uint64_t least=0):
    """Raise unless the blocks have the slots of ``spans``, and are large enough to have them.

    For slots that other bytes ask for (the elements of lists), before room is made for them.
    ``least``: bytes that any block may stand for, however small it is.
    """
    cdef Head head
    cdef int64_t current = -1
    cdef Py_ssize_t i
    with nogil:
        for i in range(spans.b.shape[0]):
            if spans.b[i] != current:
                current = spans.b[i]
                blocks.open_head(current, &head)
                if head.count * item_bits > max(head.allowance, least) * 8:
                    cursor_fail(&head.body, b"block claims more values than its size allows")
            if spans.hi[i] > head.count:
                cursor_fail(&head.body, b"block holds fewer slots than lists ask for")


def place_blocks(
    const uint32_t[::1] lengths,
    const uint32_t[::1] crcs,
    const uint64_t[::1] extents,
    const uint32_t[::1] chunk_rows,
    const uint8_t[::1] shifts,
):
    """The table of a stream's blocks: offset in the payload, length, checksum, table rows."""
    cdef Py_ssize_t n = lengths.shape[0], block = 0, chunk
    cdef int64_t left, at, size
    made = np.empty((n, 4), np.int64)
    cdef int64_t[:, ::1] out = made
    if crcs.shape[0] != n or extents.shape[0] != chunk_rows.shape[0] or (
        shifts.shape[0] != chunk_rows.shape[0]
    ):
        raise ValueError("parts of the directory differ in length")
    for chunk in range(chunk_rows.shape[0]):
        left = chunk_rows[chunk]
        at = <int64_t>extents[chunk]
        size = <int64_t>1 << (shifts[chunk] & 31)
        while left > 0:
            if block >= n:
                raise ValueError("more rows than blocks")
            out[block, 0] = at
            out[block, 1] = lengths[block]
            out[block, 2] = crcs[block]
            out[block, 3] = min(left, size)
            at += lengths[block]
            left -= size
            block += 1
    if block != n:
        raise ValueError("more blocks than rows")
    return made


def locate(
    const uint32_t[::1] rows,
    const int64_t[::1] chunk_start,
    const uint8_t[::1] shift,
    const int64_t[::1] first_block,
):
    """Blocks that hold ``rows`` (ascending), and the spans of the rows in them.

    Chunk ``c`` holds the rows from ``chunk_start[c]`` in blocks of ``1 << shift[c]`` rows, numbered
    from ``first_block[c]``. Neighbouring rows of a block become one span.
    """
    cdef Py_ssize_t n = rows.shape[0], i, spans = 0, blocks = 0
    cdef int64_t chunk = 0, block, last = -1, local
    cdef uint32_t within
    out_b, out_lo, out_hi = (np.empty(n, t) for t in (np.int32, np.uint32, np.uint32))
    found = np.empty(n, np.int64)
    cdef int32_t[::1] b = out_b
    cdef uint32_t[::1] lo = out_lo
    cdef uint32_t[::1] hi = out_hi
    cdef int64_t[::1] f = found
    if n and rows[n - 1] >= chunk_start[chunk_start.shape[0] - 1]:
        raise ValueError("row number beyond the last row")
    with nogil:
        for i in range(n):
            while rows[i] >= chunk_start[chunk + 1]:
                chunk += 1
            local = rows[i] - chunk_start[chunk]
            block = first_block[chunk] + (local >> shift[chunk])
            within = <uint32_t>(local & ((<int64_t>1 << shift[chunk]) - 1))
            if block != last:
                f[blocks] = block
                blocks += 1
                last = block
            elif hi[spans - 1] == within:
                hi[spans - 1] += 1
                continue
            b[spans] = <int32_t>(blocks - 1)
            lo[spans] = within
            hi[spans] = within + 1
            spans += 1
    return found[:blocks], Spans(out_b[:spans], out_lo[:spans], out_hi[:spans])


def between(
    int64_t start,
    int64_t stop,
    const uint32_t[::1] gone,
    int64_t base,
    int64_t shift,
    int64_t first_block,
):
    """Blocks and spans of the rows ``start .. stop`` of one chunk, without those in ``gone``.

    The chunk begins at row ``base`` and block ``first_block``; its blocks have ``1 << shift`` rows.
    ``gone`` are rows between ``start`` and ``stop``, each once, ascending.
    """
    cdef int64_t size = <int64_t>1 << (shift & 31), at = start, begin, end, block
    cdef Py_ssize_t most, before, spans = 0, blocks = 0, g = 0, n = gone.shape[0]
    cdef int disorder = 0
    if not base <= start <= stop or first_block < 0 or (n and gone[0] < start):
        raise ValueError("rows outside their chunk")
    most = (((stop - base) >> (shift & 31)) - ((start - base) >> (shift & 31)) + 1) + n
    out_b, out_lo, out_hi = (np.empty(most, t) for t in (np.int32, np.uint32, np.uint32))
    found = np.empty(most, np.int64)
    cdef int32_t[::1] b = out_b
    cdef uint32_t[::1] lo = out_lo
    cdef uint32_t[::1] hi = out_hi
    cdef int64_t[::1] f = found
    with nogil:
        while at < stop:
            block = (at - base) >> (shift & 31)
            begin = base + block * size
            end = min(begin + size, stop)
            before = spans
            while g < n and gone[g] < end:
                b[spans] = <int32_t>blocks
                lo[spans] = <uint32_t>(at - begin)
                hi[spans] = <uint32_t>(gone[g] - begin)
                disorder |= gone[g] < at
                spans += at < gone[g]
                at = <int64_t>gone[g] + 1
                g += 1
            if at < end:
                b[spans] = <int32_t>blocks
                lo[spans] = <uint32_t>(at - begin)
                hi[spans] = <uint32_t>(end - begin)
                spans += 1
            if spans > before:
                f[blocks] = first_block + block
                blocks += 1
            at = end
    if disorder or g != n:
        raise ValueError("rows that are gone do not ascend between the ends")
    return found[:blocks], known_spans(
        out_b[:spans], out_lo[:spans], out_hi[:spans], stop - start - n
    )


def rows_left(uint32_t start, uint32_t stop, const uint32_t[::1] gone):
    """The rows ``start .. stop`` without those in ``gone``, which ascend and lie between them."""
    cdef Py_ssize_t g, n = gone.shape[0], at = 0
    cdef uint32_t row = start
    if start > stop or n > stop - start or (n and (gone[0] < start or gone[n - 1] >= stop)):
        raise ValueError("rows that are gone are not among the rows")
    made = np.empty(stop - start - n, np.uint32)
    cdef uint32_t[::1] out = made
    cdef Py_ssize_t k
    for g in range(n):
        if gone[g] < row:
            raise ValueError("rows that are gone do not ascend")
        for k in range(gone[g] - row):
            out[at + k] = row + <uint32_t>k
        at += gone[g] - row
        row = gone[g] + 1
    for k in range(stop - row):
        out[at + k] = row + <uint32_t>k
    return made
