"""Construction of Binary Fuse filters: the same bytes as the reference, without its failures.

Every key falls on three slots. A slot that holds one key alone gives that key away; taking the
key out may leave other slots with one key, and so on (peeling) until nothing is left. Walking the
peeled keys backwards, each gets the slot that gave it away, so that its three slots XOR to its
fingerprint. The order of peeling fixes the bytes: slots with one key are stacked in ascending
order and popped last in, first out; a popped key's next slot is looked at before the one after.

Each slot is one 64-bit word: the number of its keys, and the XOR of what identifies them::

    63..54 number of keys   53..52 place (0, 1, 2) of the key here   51..36 fingerprint
    35..18 offset here XOR offset in the next slot   17..0 offset here XOR offset in the last slot

Places follow each other in a circle: after place 0 comes 1 (the next) and then 2 (the last).
With one key left the word leads straight to its other two slots, so no hash is kept, and what
must be taken out of those slots follows from the two XORs.

Two copies of a key never peel: a failed attempt is the (free) sign to look for duplicates. They
are removed and construction starts again for the distinct keys, so the result depends on the set
of keys alone. Attempt ``i`` uses seed ``i`` of a fixed sequence. Some sizes nearly fill their last
segment and may need hundreds of attempts; after ``PATIENCE`` of them one segment is added for
every ``STEP`` further attempts, and seeds are drawn from the keys themselves, so that no set of
keys, however chosen, fails on all of them. Readers take the shape from the file.
"""

from libc.math cimport ceil, floor, log, round as round_half_away
from libc.string cimport memset

import numpy as np

from indextables.native._fuse cimport Slots3, fingerprint, fmix64, prefetch, slots_of
from indextables.native._memory cimport borrow, give_back
from indextables.native._typedefs cimport int64_t

cdef enum:
    PATIENCE = 256              # attempts with the reference's shape
    PATIENCE_ROUNDED = 4        # attempts with a shape of our own
    STEP = 16                   # further attempts for each added segment
    ATTEMPTS_MAX = 8192
    AHEAD = 32                  # keys hashed before their slots are touched
    LONGEST_SEGMENT = 262144
    KEYS_MAX = 3000000000

cdef enum:
    COUNT_SHIFT = 54
    PLACE_SHIFT = 52
    PRINT_SHIFT = 36
    NEXT_SHIFT = 18
    OFFSET_MASK = 0x3ffff

cdef uint64_t ONE_KEY = <uint64_t>1 << COUNT_SHIFT
cdef uint64_t PRINT_MASK = <uint64_t>0xffff << PRINT_SHIFT

cdef struct Steps:
    uint32_t next[4]            # by place: what leads to the next slot's segment
    uint32_t last[4]
    uint64_t next_place[4]      # by place: the place bits of the next slot
    uint64_t last_place[4]

cdef struct Workspace:
    uint64_t* words             # one for each slot
    uint32_t* order             # peeled slots from the front, the stack of slots from the back


cdef uint64_t seed_number(uint64_t index) noexcept nogil:
    """Output ``index`` of splitmix64 started at state 1."""
    return _splitmix(1, index)


cdef inline uint64_t _splitmix(uint64_t state, uint64_t index) noexcept nogil:
    cdef uint64_t z = state + (index + 1) * <uint64_t>0x9e3779b97f4a7c15
    z = (z ^ (z >> 30)) * <uint64_t>0xbf58476d1ce4e5b9
    z = (z ^ (z >> 27)) * <uint64_t>0x94d049bb133111eb
    return z ^ (z >> 31)


cdef uint64_t _round_up(uint64_t segments) noexcept nogil:
    """The next of the segment counts 1, 2, ... 26, 28, 30, ... that grow by at least 4 %."""
    cdef uint64_t step = 1
    while step < segments:
        step = max(step + 1, (step * 104 + 99) // 100)
    return step


cdef int _set_segments(Shape* shape, uint64_t segments) except -1:
    if (segments + 2) * shape.segment_length > 0xffffffff:
        raise ValueError("too many keys for one Binary Fuse filter")
    shape.segment_count_length = <uint32_t>(segments * shape.segment_length)
    shape.slots = <uint32_t>((segments + 2) * shape.segment_length)
    return 0


cdef Shape shape_for(uint64_t keys, bint round_segments) except *:
    """The reference's shape for a number of keys, with its first seed."""
    cdef Shape shape
    cdef uint64_t segments
    cdef double capacity = 0
    shape.seed = seed_number(0)
    shape.segment_length = 4
    if keys > KEYS_MAX:
        raise ValueError("too many keys for one Binary Fuse filter")
    if keys > 0:
        shape.segment_length = <uint32_t>1 << <uint32_t>floor(log(<double>keys) / log(3.33) + 2.25)
        shape.segment_length = min(shape.segment_length, <uint32_t>LONGEST_SEGMENT)
    if keys > 1:
        capacity = 0.875 + (0.25 * log(1000000.0)) / log(<double>keys)
        capacity = round_half_away(<double>keys * max(1.125, capacity))
    segments = <uint64_t>ceil(capacity / shape.segment_length)
    segments = segments - 2 if segments >= 3 else 1
    _set_segments(&shape, _round_up(segments) if round_segments else segments)
    return shape


cdef Steps _steps(uint32_t segment_length) noexcept nogil:
    cdef Steps steps
    cdef int64_t length = segment_length
    cdef uint32_t place
    for place in range(3):
        steps.next[place] = <uint32_t>(-2 * length if place == 2 else length)
        steps.last[place] = <uint32_t>(2 * length if place == 0 else -length)
        steps.next_place[place] = <uint64_t>((place + 1) % 3) << PLACE_SHIFT
        steps.last_place[place] = <uint64_t>((place + 2) % 3) << PLACE_SHIFT
    steps.next[3] = steps.last[3] = 0
    steps.next_place[3] = steps.last_place[3] = 0
    return steps


cdef inline void _add(const Shape* shape, uint64_t* words, uint64_t h) noexcept nogil:
    cdef Slots3 at = slots_of(shape, h)
    cdef uint64_t mask = shape.segment_length - 1
    cdef uint64_t second = (h >> 18) & mask
    cdef uint64_t third = h & mask
    cdef uint64_t between = second ^ third
    cdef uint64_t name = <uint64_t>fingerprint(h) << PRINT_SHIFT
    words[at.a] = (words[at.a] + ONE_KEY) ^ (name | second << NEXT_SHIFT | third)
    name |= <uint64_t>1 << PLACE_SHIFT
    words[at.b] = (words[at.b] + ONE_KEY) ^ (name | between << NEXT_SHIFT | second)
    name ^= <uint64_t>3 << PLACE_SHIFT
    words[at.c] = (words[at.c] + ONE_KEY) ^ (name | third << NEXT_SHIFT | between)


cdef void _fill(
    const Shape* shape, uint64_t* words, const uint64_t* keys, uint64_t count
) noexcept nogil:
    """Add every key to its slots, fetching the slots ``AHEAD`` keys before they are needed."""
    cdef Shape local = shape[0]
    cdef uint64_t waiting[AHEAD]
    cdef uint64_t i, h
    cdef Slots3 at
    memset(words, 0, <size_t>local.slots * 8)
    for i in range(count):
        h = fmix64(keys[i] + local.seed)
        if i >= AHEAD:
            _add(&local, words, waiting[i % AHEAD])
        waiting[i % AHEAD] = h
        at = slots_of(&local, h)
        prefetch(&words[at.a])
        prefetch(&words[at.b])
        prefetch(&words[at.c])
    for i in range(count - AHEAD if count > AHEAD else 0, count):
        _add(&local, words, waiting[i % AHEAD])


cdef uint64_t _stack_singles(
    const Shape* shape, Workspace* work, uint64_t count
) noexcept nogil:
    """Stack the slots with one key; returns the top, or 0 when a slot's counter overflowed."""
    cdef const uint64_t* words = work.words
    cdef uint32_t* order = work.order
    cdef uint32_t slots = shape.slots
    cdef uint64_t top = slots
    cdef uint64_t seen = 0
    cdef uint64_t here
    cdef uint32_t slot
    for slot in range(slots):
        here = words[slot] >> COUNT_SHIFT
        seen += here
        order[top - 1] = slot
        top -= here == 1
    return top if seen == 3 * count else 0


cdef uint64_t _peel(const Shape* shape, Workspace* work, uint64_t top) noexcept nogil:
    """Take keys out until no slot holds one alone; returns how many were taken.

    ``order`` serves twice: at most ``slots`` slots are ever stacked, so the peeled ones, growing
    from the front, never reach the stack at the back.
    """
    cdef Steps steps = _steps(shape.segment_length)
    cdef uint64_t* words = work.words
    cdef uint32_t* order = work.order
    cdef uint64_t bottom = shape.slots
    cdef uint64_t taken = 0
    cdef uint64_t word, name, next_xor, last_xor, next_word, last_word
    cdef uint32_t slot, next_slot, last_slot, place
    while top < bottom:
        slot = order[top]
        top += 1
        word = words[slot]
        while word >> COUNT_SHIFT == 1:
            order[taken] = slot
            taken += 1
            place = <uint32_t>(word >> PLACE_SHIFT) & 3
            name = word & PRINT_MASK
            next_xor = (word >> NEXT_SHIFT) & OFFSET_MASK
            last_xor = word & OFFSET_MASK
            next_slot = (slot ^ <uint32_t>next_xor) + steps.next[place]
            last_slot = (slot ^ <uint32_t>last_xor) + steps.last[place]
            next_word = words[next_slot]
            last_word = words[last_slot]
            order[top - 1] = next_slot
            top -= next_word >> COUNT_SHIFT == 2
            words[next_slot] = (next_word - ONE_KEY) ^ (
                name | (next_xor ^ last_xor) << NEXT_SHIFT | next_xor | steps.next_place[place]
            )
            word = (last_word - ONE_KEY) ^ (
                name | last_xor << NEXT_SHIFT | (next_xor ^ last_xor) | steps.last_place[place]
            )
            words[last_slot] = word
            if last_word >> COUNT_SHIFT != 2:
                break
            slot = last_slot
    return taken


cdef void _assign(
    const Shape* shape, const Workspace* work, uint64_t count, slot_t* slots
) noexcept nogil:
    """Walk the peeled keys backwards and set the slot that each of them owns."""
    cdef Steps steps = _steps(shape.segment_length)
    cdef const uint64_t* words = work.words
    cdef const uint32_t* order = work.order
    cdef uint64_t i = count
    cdef uint64_t word
    cdef uint32_t slot, place, next_slot, last_slot
    while i > 0:
        i -= 1
        if i >= AHEAD:
            prefetch(&words[order[i - AHEAD]])
        slot = order[i]
        word = words[slot]
        place = <uint32_t>(word >> PLACE_SHIFT) & 3
        next_slot = (slot ^ (<uint32_t>(word >> NEXT_SHIFT) & OFFSET_MASK)) + steps.next[place]
        last_slot = (slot ^ (<uint32_t>word & OFFSET_MASK)) + steps.last[place]
        slots[slot] = <slot_t>(word >> PRINT_SHIFT) ^ slots[next_slot] ^ slots[last_slot]


cdef bint _attempt(
    const Shape* shape, Workspace* work, const uint64_t* keys, uint64_t count
) noexcept nogil:
    """Try one shape and seed; on success ``work`` holds the peeling order."""
    cdef uint64_t top
    _fill(shape, work.words, keys, count)
    top = _stack_singles(shape, work, count)
    return top > 0 and _peel(shape, work, top) == count


cdef uint64_t _digest(const uint64_t* keys, uint64_t count) noexcept nogil:
    """A number that depends on every key but not on their order."""
    cdef uint64_t total = count
    cdef uint64_t i
    for i in range(count):
        total += fmix64(keys[i])
    return total


cdef object _distinct(object keys):
    """The keys without repeats, sorted; the same object where there are none."""
    ordered = np.sort(keys)
    new = np.ones(ordered.shape[0], np.bool_)
    np.not_equal(ordered[1:], ordered[:ordered.shape[0] - 1], out=new[1:])
    return keys if new.all() else ordered[new]


cdef int _reserve(Workspace* work, const Shape* shape) except -1:
    give_back(work.words)
    work.words = <uint64_t*>borrow(<size_t>shape.slots * 12)
    work.order = <uint32_t*>(work.words + shape.slots)
    if work.words == NULL:
        raise MemoryError("no memory to build a Binary Fuse filter")
    return 0


cdef object _search(
    object keys, Workspace* work, Shape* shape, uint64_t first_seed, uint64_t patience
):
    """Try seeds until the keys peel; returns None for keys that turn out to repeat."""
    cdef const uint64_t[::1] view = keys
    cdef const uint64_t* start = &view[0] if view.shape[0] else NULL
    cdef uint64_t count = <uint64_t>view.shape[0]
    cdef uint64_t own_seeds = 0
    cdef uint64_t attempt
    cdef bint peeled
    for attempt in range(<uint64_t>ATTEMPTS_MAX):
        shape.seed = seed_number(first_seed + attempt)
        if attempt >= patience:
            if attempt == patience:
                own_seeds = _digest(start, count)
            shape.seed = _splitmix(own_seeds, attempt)
            if (attempt - patience) % STEP == 0:
                _set_segments(shape, shape.segment_count_length // shape.segment_length + 1)
                _reserve(work, shape)
        with nogil:
            peeled = _attempt(shape, work, start, count)
        if peeled:
            return keys
        if attempt == 0:
            distinct = _distinct(keys)
            if distinct is not keys:
                return distinct
    raise RuntimeError("no seed fits these keys")


cdef object construct(object keys, slot_t _width, Shape* shape, uint64_t sized_for,
                      uint64_t first_seed, bint round_segments):
    """Build from a contiguous uint64 array; returns (slots, number of distinct keys)."""
    cdef Workspace work
    cdef slot_t[::1] slots
    cdef uint64_t patience = PATIENCE_ROUNDED if round_segments else PATIENCE
    cdef uint64_t count
    work.words = NULL
    try:
        while True:
            shape[0] = shape_for(max(<uint64_t>len(keys), sized_for), round_segments)
            _reserve(&work, shape)
            peeled = _search(keys, &work, shape, first_seed, patience)
            if peeled is keys:
                break
            keys = peeled
        count = <uint64_t>len(keys)
        out = np.zeros(shape.slots, np.uint8 if slot_t is uint8_t else np.uint16)
        slots = out
        with nogil:
            _assign(shape, &work, count, &slots[0])
        return out, count
    finally:
        give_back(work.words)


def shape_of(uint64_t keys, bint round_segments=False):
    """(segment length, segment count length, slots) for a number of keys."""
    cdef Shape shape = shape_for(keys, round_segments)
    return shape.segment_length, shape.segment_count_length, shape.slots


def seed_of(uint64_t index):
    """The seed of attempt ``index``."""
    return seed_number(index)
