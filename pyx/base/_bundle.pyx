"""The bundle: many files in one, found through a footer.

::

    [files][metadata][u32 metadata length][hotcache][u32 hotcache length]

Metadata is compact JSON, ``{"files":{"<name>":{"start":S,"end":E},...}}``, with offsets from the
start of the file and ``end`` exclusive. Two forms exist: "split" puts a magic number and a version
(8 bytes) before the JSON, as Quickwit does for data splits; "xref" has the bare JSON and usually
no hotcache. After either, 16 more bytes may follow: footer start u64, 1 u32, ``QWFT``.
A reader that knows where the footer starts needs only the bytes from there to the end.
"""

import json
import struct

from indextables.errors import CorruptFileError

from indextables.native._cursor cimport (
    corrupt_at, cursor_fail, cursor_left, cursor_over, cursor_seek, cursor_skip, cursor_sub,
    cursor_take, read_u32, read_u64,
)

cdef enum:
    MAGIC = 403881646
    VERSION = 1
    TRAILER_SIZE = 16
    DEPTH_MAX = 64

TRAILER_MAGIC = b"QWFT"
FORMS = ("split", "xref")


# -- the metadata's JSON, read without building anything but the file table ---------------------


cdef bint _skip_blanks(Cursor* c) noexcept nogil:
    """Pass white space; whether anything is left after it."""
    cdef uint8_t byte
    while cursor_left(c):
        byte = c.base[c.pos]
        if byte != c" " and byte != c"\n" and byte != c"\t" and byte != c"\r":
            return True
        c.pos += 1
    return False


cdef int _peek(Cursor* c) except -1:
    """The next byte that is not white space; the cursor stands on it."""
    if not _skip_blanks(c):
        return cursor_fail(c, b"metadata ends inside a value")
    return c.base[c.pos]


cdef int _expect(Cursor* c, uint8_t wanted) except -1:
    if _peek(c) != wanted:
        return cursor_fail(c, b"metadata is not the JSON of a bundle")
    c.pos += 1
    return 0


cdef bint _accept(Cursor* c, uint8_t wanted) except -1:
    if _peek(c) != wanted:
        return False
    c.pos += 1
    return True


cdef str _string(Cursor* c):
    """A JSON string; escapes are decoded by the standard library."""
    _expect(c, c'"')
    cdef uint64_t first = c.pos
    cdef bint plain = True
    cdef uint8_t byte = 0
    while byte != c'"':
        if not cursor_left(c):
            cursor_fail(c, b"metadata ends inside a string")
        byte = c.base[c.pos]
        c.pos += 1
        if byte == c"\\":
            plain = False
            cursor_skip(c, 1)
    cdef bytes raw = (<const char*>c.base)[first:c.pos - 1]
    try:
        text = raw.decode("utf-8")
        if not plain:
            text = json.loads(f'"{text}"', strict=False)
            text.encode("utf-8")
        return text
    except ValueError as error:
        raise CorruptFileError(
            "metadata holds a malformed string", offset=c.origin + first
        ) from error


cdef uint64_t _number(Cursor* c) except? 18446744073709551615:
    """An unsigned integer below 10^18."""
    cdef uint64_t value = 0
    cdef int digits = 0
    _peek(c)
    while cursor_left(c) and c"0" <= c.base[c.pos] <= c"9":
        value = 10 * value + (c.base[c.pos] - c"0")
        c.pos += 1
        digits += 1
        if digits > 18:
            cursor_fail(c, b"metadata holds an impossible offset")
    if digits == 0:
        cursor_fail(c, b"metadata holds no number where an offset should be")
    return value


cdef int _skip_value(Cursor* c, int depth) except -1:
    """Pass any JSON value."""
    cdef int byte = _peek(c)
    cdef uint8_t close
    if depth > DEPTH_MAX:
        return cursor_fail(c, b"metadata is nested too deeply")
    if byte == c'"':
        _string(c)
        return 0
    if byte != c"{" and byte != c"[":
        return _skip_scalar(c)
    close = c"}" if byte == c"{" else c"]"
    c.pos += 1
    if _accept(c, close):
        return 0
    while True:
        if byte == c"{":
            _string(c)
            _expect(c, c":")
        _skip_value(c, depth + 1)
        if not _accept(c, c","):
            return _expect(c, close)


cdef int _skip_scalar(Cursor* c) except -1:
    """Pass a number, true, false or null."""
    cdef uint64_t first = c.pos
    cdef uint8_t byte
    while cursor_left(c):
        byte = c.base[c.pos]
        if not (
            c"0" <= byte <= c"9" or c"a" <= byte <= c"z" or byte == c"E"
            or byte == c"." or byte == c"-" or byte == c"+"
        ):
            break
        c.pos += 1
    if c.pos == first:
        return cursor_fail(c, b"metadata is not JSON")
    return 0


cdef tuple _range(Cursor* c):
    """``{"start":S,"end":E}``, in any order, other keys passed."""
    start = end = None
    _expect(c, c"{")
    while True:
        key = _string(c)
        _expect(c, c":")
        if key == "start":
            start = _number(c)
        elif key == "end":
            end = _number(c)
        else:
            _skip_value(c, 0)
        if not _accept(c, c","):
            break
    _expect(c, c"}")
    if start is None or end is None:
        cursor_fail(c, b"metadata leaves out where a file starts or ends")
    return start, end


cdef dict _file_table(Cursor* c, uint64_t limit):
    """``{name: {start, end}}`` with every file before ``limit``."""
    files = {}
    _expect(c, c"{")
    if _accept(c, c"}"):
        return files
    while True:
        name = _string(c)
        _expect(c, c":")
        start, end = _range(c)
        if end < start or end > limit:
            cursor_fail(c, b"a file of the bundle lies outside its data")
        if name in files:
            cursor_fail(c, b"two files of the bundle have one name")
        files[name] = (start, end)
        if not _accept(c, c","):
            _expect(c, c"}")
            return files


cdef dict _metadata(Cursor* c, uint64_t limit):
    """The file table of a bundle's metadata."""
    files = None
    _expect(c, c"{")
    if not _accept(c, c"}"):
        while True:
            key = _string(c)
            _expect(c, c":")
            if key == "files" and files is None:
                files = _file_table(c, limit)
            else:
                _skip_value(c, 0)
            if not _accept(c, c","):
                break
        _expect(c, c"}")
    if files is None:
        cursor_fail(c, b"metadata names no files")
    if _skip_blanks(c):
        cursor_fail(c, b"metadata goes on after its end")
    return files


# -- the frame ----------------------------------------------------------------------------------


cdef uint64_t _trailer(Cursor* c, uint64_t size) except? 18446744073709551615:
    """The footer start a trailer names, or the file size where there is no trailer.

    The cursor walks the file's last bytes; where there is a trailer it is cut off from them.
    """
    cdef uint64_t footer_start
    if cursor_left(c) < TRAILER_SIZE:
        return size
    cursor_seek(c, c.size - TRAILER_SIZE)
    footer_start = read_u64(c)
    if read_u32(c) != 1 or cursor_take(c, 4)[:4] != TRAILER_MAGIC:
        return size
    if footer_start >= size:
        return corrupt_at(size - TRAILER_SIZE, b"trailer points outside the file")
    c.size -= TRAILER_SIZE
    return footer_start


cdef int _back(Cursor* c, uint64_t end, uint64_t* length) except -1:
    """Read the u32 length that ends at ``end`` and check that so many bytes lie before it."""
    if end < 4:
        return corrupt_at(c.origin, b"file is too short for a bundle")
    cursor_seek(c, end - 4)
    length[0] = read_u32(c)
    if length[0] > end - 4:
        return corrupt_at(c.origin + end - 4, b"footer length reaches before the bytes given")
    return 0


cdef int _read_frame(Cursor* c, Frame* frame) except -1:
    """Find metadata and hotcache from the end of the cursor's bytes."""
    cdef uint64_t length = 0
    cdef uint64_t end = c.size
    _back(c, end, &length)
    frame.hotcache_end = c.origin + end - 4
    frame.hotcache_start = frame.hotcache_end - length
    end = end - 4 - length
    _back(c, end, &length)
    frame.metadata_end = c.origin + end - 4
    frame.metadata_start = frame.metadata_end - length
    return 0


cdef str _read_form(Cursor* c):
    """"split" or "xref", by the first bytes of the metadata; passes the magic and version."""
    if cursor_left(c) and c.base[c.pos] == c"{":
        return "xref"
    if cursor_left(c) < 8 or read_u32(c) != MAGIC:
        cursor_fail(c, b"metadata has neither the bundle magic nor JSON")
    if read_u32(c) != VERSION:
        cursor_fail(c, b"unknown bundle version")
    return "split"


cdef class Bundle:
    """The file table of a bundle, and its files where the whole bundle is in memory.

    ``files`` maps each name to (start, end); ``form`` is "split" or "xref".
    """

    def __init__(self):
        raise TypeError("use Bundle.parse or Bundle.parse_footer")

    cdef int _read(self, object tail, uint64_t size) except -1:
        cdef Cursor c, inner
        cdef const uint8_t[::1] view = tail
        cdef uint64_t named
        self.size = size
        self.tail = memoryview(tail).cast("B")
        self.tail_start = size - <uint64_t>view.shape[0]
        cursor_over(&c, view, self.tail_start)
        named = _trailer(&c, size)
        _read_frame(&c, &self.frame)
        if named != size and named != self.frame.metadata_start:
            return corrupt_at(size - TRAILER_SIZE, b"trailer contradicts the footer")
        cursor_seek(&c, self.frame.metadata_start - self.tail_start)
        cursor_sub(&c, self.frame.metadata_end - self.frame.metadata_start, &inner)
        self.form = _read_form(&inner)
        self.files = _metadata(&inner, self.frame.metadata_start)
        return 0

    @staticmethod
    def parse(buffer):
        """The bundle that fills ``buffer``."""
        cdef Bundle bundle = Bundle.__new__(Bundle)
        bundle._read(buffer, memoryview(buffer).nbytes)
        return bundle

    @staticmethod
    def parse_footer(footer, uint64_t file_size):
        """A bundle of ``file_size`` bytes, given those from the start of its footer to the end."""
        cdef Bundle bundle = Bundle.__new__(Bundle)
        if <uint64_t>memoryview(footer).nbytes > file_size:
            raise CorruptFileError("the footer is longer than the file", offset=0)
        bundle._read(footer, file_size)
        return bundle

    @property
    def footer_range(self):
        """(start, end) of the bytes that ``parse_footer`` needs."""
        return self.frame.metadata_start, self.size

    @property
    def hotcache(self):
        """The bytes of the hotcache, a memoryview (often empty)."""
        return self._slice(self.frame.hotcache_start, self.frame.hotcache_end)

    def member(self, name):
        """The bytes of one file, a memoryview of the buffer."""
        if name not in self.files:
            known = ", ".join(sorted(self.files)[:20])
            raise CorruptFileError(f"the bundle has no file '{name}' (it has: {known})")
        return self._slice(*self.files[name])

    def _slice(self, uint64_t start, uint64_t end):
        if start < self.tail_start:
            raise CorruptFileError(
                "these bytes of the bundle were not read", offset=start,
                hint="Read the range that `files` names, or parse the whole bundle",
            )
        return self.tail[start - self.tail_start:end - self.tail_start]

    def __repr__(self):
        return f"Bundle({len(self.files)} files, {self.size} bytes, form {self.form!r})"


# -- writing ------------------------------------------------------------------------------------


class BundleWriter:
    """Writes a bundle file by file to a binary file object, which stands at its start."""

    def __init__(self, file, form="split"):
        if form not in FORMS:
            raise ValueError(f"unknown bundle form {form!r}; known: {', '.join(FORMS)}")
        self.file = file
        self.form = form
        self.files = {}
        self.position = 0

    def add(self, name, data):
        """Append one file; ``data`` is bytes, or an iterable of bytes."""
        if name in self.files:
            raise ValueError(f"two files of the bundle are named '{name}'")
        start = self.position
        chunks = (data,) if isinstance(data, (bytes, bytearray, memoryview)) else data
        for chunk in chunks:
            self._write(chunk)
        self.files[name] = {"start": start, "end": self.position}
        return start, self.position

    def finish(self, hotcache=b"", trailer=False):
        """Write the footer; returns (footer start, footer end)."""
        footer_start = self.position
        table = json.dumps({"files": self.files}, separators=(",", ":"), ensure_ascii=False)
        head = struct.pack("<II", MAGIC, VERSION) if self.form == "split" else b""
        metadata = head + table.encode("utf-8")
        for part in (metadata, hotcache):
            self._write(part)
            self._write(struct.pack("<I", memoryview(part).nbytes))
        if trailer:
            self._write(struct.pack("<QI4s", footer_start, 1, TRAILER_MAGIC))
        return footer_start, self.position

    def _write(self, data):
        self.file.write(data)
        self.position += memoryview(data).nbytes


class _Parts(list):
    """A file object that keeps what is written to it."""

    write = list.append


def write_bundle(members, hotcache=b"", form="split", trailer=False):
    """The bytes of a bundle of ``members``, a mapping (or pairs) of names and bytes, in order."""
    parts = _Parts()
    writer = BundleWriter(parts, form)
    for name, data in members.items() if hasattr(members, "items") else members:
        writer.add(name, data)
    writer.finish(hotcache, trailer)
    return b"".join(parts)
