"""The bytes of one split: footer first, then only the members (or parts of them) that are asked.

A footer is read together with what lies just before it, where the writer puts the small members,
so that opening a split is one request. How much that is, is guessed from the number of rows and the
size of the footer. A caller that has little to read in all asks for ``whole`` splits: then all of a
small one comes at once. What came is kept and served from memory, so that nothing in it is fetched
twice.

A member is compared with its checksum the first time it is read whole; parts of members carry
checksums of their own (rows, index slices, hash pages). Any difference is a ``CorruptFileError``
that names the split.

On a local file system the file is mapped and nothing is copied; a mapping holds no descriptor, so
any number of splits may be open.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from indextables.errors import CorruptFileError, ObjectNotFoundError, StorageError
from indextables.log.actions import AddFile, DeletionVector
from indextables.native._crc32c import crc32c
from indextables.splits.format.bundle import INFO, Footer, parse_footer
from indextables.splits.format.info import SplitInfo
from indextables.storage.base import Store
from indextables.storage.machine import explained
from indextables.storage.mapped import map_file

TAIL_BYTES = 64 << 10
"""The most that is read before a footer."""
LEAST_TAIL = 8 << 10
TAIL_FOOTERS = 8
"""Members that describe columns grow with the footer, which names them: ``split.json`` most."""
_FRAME = 8

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Origin(Protocol):
    """Where the rows of a split are that does not hold them itself; small and picklable.

    ``indextables.companion`` has the only ones: files of a table of another format.
    """

    @property
    def key(self) -> str:
        """The same only where the rows, and those of them that are gone, are the same."""
        ...

    @property
    def is_bare(self) -> bool:
        """Is there no split at all, just rows?"""
        ...

    def rows(self, reader: Any) -> Any:
        """``scan`` and ``take``; of rows without a split also ``typed`` and ``mapping``."""
        ...

    def deleted(self, reader: Any) -> NDArray[np.uint32] | None:
        """The rows that are gone, ascending."""
        ...

    def whole(self) -> Origin:
        """The same with no row gone."""
        ...

    def bare(self) -> Origin:
        """The same rows without a split."""
        ...


@dataclass(frozen=True, slots=True)
class SplitRef:
    """Enough to open a split; small and picklable."""

    path: str
    size: int
    footer_start: int = -1
    footer_end: int = -1
    num_records: int = -1
    partition_values: Mapping[str, str | None] = field(default_factory=dict)
    doc_mapping: str | None = None
    vector: DeletionVector | None = None
    """Which of its rows are gone."""
    origin: Origin | None = None
    """Where its rows are, if it does not hold them itself."""

    @property
    def live_records(self) -> int:
        """Rows that are left, -1 where the log does not say."""
        gone = 0 if self.vector is None else self.vector.cardinality
        return self.num_records if self.num_records < 0 else self.num_records - gone

    def without_split(self) -> SplitRef | None:
        """The rows alone, for a split that is missing or damaged; ``None`` if it holds them."""
        if self.origin is None or self.origin.is_bare:
            return None
        return replace(self, origin=self.origin.bare())

    @property
    def origin_key(self) -> tuple[str, ...]:
        """What tells readers of one split apart, where its rows are elsewhere."""
        return () if self.origin is None else (self.origin.whole().key,)

    def physical(self) -> SplitRef:
        """The split with all its rows, for what is built over row numbers."""
        if self.vector is None:
            return self
        origin = None if self.origin is None else self.origin.whole()
        return replace(self, vector=None, origin=origin)

    @classmethod
    def of(cls, add: AddFile | SplitRef) -> SplitRef:
        if isinstance(add, SplitRef):
            return add
        known = add.has_footer_offsets and add.footer_start_offset is not None
        return cls(
            path=add.path,
            size=add.size,
            footer_start=int(add.footer_start_offset or 0) if known else -1,
            footer_end=int(add.footer_end_offset or add.size) if known else -1,
            num_records=-1 if add.num_records is None else add.num_records,
            partition_values=dict(add.partition_values),
            doc_mapping=add.doc_mapping_json,
            vector=add.deletion_vector,
        )


class SplitSource:
    """Reads members of one split; safe to share between threads."""

    def __init__(self, store: Store, ref: SplitRef, *, whole: bool = False) -> None:
        self.store = store
        self._whole = whole
        self.ref = ref
        self.path = ref.path
        self._lock = threading.Lock()
        self._members: dict[str, bytes] = {}
        self._map = self._mapped()
        self._tail_start, self._tail = 0, b""
        self.footer: Footer = self._read_footer()
        self.info: SplitInfo | None = self._read_info()

    @property
    def is_foreign(self) -> bool:
        """Was the split written by another implementation?"""
        return self.info is None

    # -- bytes ------------------------------------------------------------------------------------

    def _mapped(self) -> memoryview | None:
        local = self.store.local_path(self.path)
        if local is None:
            return None
        try:
            with explained(path=self.path):
                view = map_file(local)
        except FileNotFoundError as error:
            raise ObjectNotFoundError("the split is not there", path=self.path) from error
        except OSError as error:
            raise StorageError(f"the split cannot be read: {error}", path=self.path) from error
        if len(view) != self.ref.size:
            raise self.corrupt(f"the file is not {self.ref.size} bytes long")
        return view

    def ranges(self, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """Bytes of the file, unchecked; adjacent ranges are fetched together."""
        if self._map is not None:
            return [self._map[start:end] for start, end in ranges]
        view, first = memoryview(self._tail), self._tail_start
        absent = [r for r in ranges if not self._in_tail(*r)]
        coming = iter(self.store.read_ranges(self.path, absent) if absent else ())
        return [
            view[s - first : e - first] if self._in_tail(s, e) else next(coming) for s, e in ranges
        ]

    def _in_tail(self, start: int, end: int) -> bool:
        return self._tail_start <= start and end <= self._tail_start + len(self._tail)

    def corrupt(self, reason: str, *, offset: int | None = None) -> CorruptFileError:
        return CorruptFileError(reason, offset=offset, path=self.path)

    # -- footer -----------------------------------------------------------------------------------

    def _read_footer(self) -> Footer:
        ref = self.ref
        if ref.footer_start < 0:
            return self._find_footer()
        if not 0 < ref.footer_start < ref.footer_end <= ref.size:
            raise self.corrupt("the log's footer offsets do not fit the file")
        start = max(ref.footer_start - self._tail_bytes(), 0)
        if self._whole and ref.footer_start <= TAIL_BYTES + self.store.coalesce_gap:
            start = 0
        (raw,) = self.ranges([(start, ref.footer_end)])
        if self._map is None:
            self._tail_start, self._tail = start, bytes(raw)
        footer = bytes(raw[ref.footer_start - start :])
        return parse_footer(footer, ref.footer_start, self.path)

    def _tail_bytes(self) -> int:
        ref = self.ref
        if ref.num_records < 0:
            return TAIL_BYTES
        columns = TAIL_FOOTERS * (ref.footer_end - ref.footer_start)
        return min(TAIL_BYTES, LEAST_TAIL + columns + ref.num_records)

    def _find_footer(self) -> Footer:
        """Without offsets in the log: from the lengths at the end of the file."""
        size = self.ref.size
        end = size
        for _ in range(2):
            if end < _FRAME:
                raise self.corrupt("the file is too short for a split")
            (raw,) = self.ranges([(end - 4, end)])
            end -= 4 + int.from_bytes(raw, "little")
        (raw,) = self.ranges([(max(end, 0), size)])
        return parse_footer(bytes(raw), max(end, 0), self.path)

    def _read_info(self) -> SplitInfo | None:
        if self.footer.info_crc is None:
            return None
        (raw,) = self.ranges([self.footer.range_of(INFO, self.path)])
        if crc32c(raw) != self.footer.info_crc:
            raise self.corrupt("member 'split.json' has a wrong checksum")
        return SplitInfo.from_json(bytes(raw), self.path)

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return len(self._tail) + sum(map(len, self._members.values()))

    # -- members ----------------------------------------------------------------------------------

    @property
    def is_mapped(self) -> bool:
        """Is the split a local file, of which any part is at hand?"""
        return self._map is not None

    def holds(self, name: str) -> bool:
        """Are the bytes of a member here, with nothing to be fetched?"""
        return self.is_mapped or self._in_tail(*self.range_of(name))

    def has(self, name: str) -> bool:
        return name in self.footer.files

    def range_of(self, name: str) -> tuple[int, int]:
        return self.footer.range_of(name, self.path)

    def member(self, name: str) -> bytes:
        """A whole member, checked."""
        with self._lock:
            if name not in self._members:
                (raw,) = self.ranges([self.range_of(name)])
                self._check(name, raw)
                self._members[name] = bytes(raw)
            return self._members[name]

    def fetch(self, name: str) -> Any:
        """A whole member, checked, that is not kept."""
        (raw,) = self.ranges([self.range_of(name)])
        self._check(name, raw)
        return raw

    def fetch_many(self, names: Sequence[str]) -> list[Any]:
        """Whole members, checked, read together and not kept."""
        found = self.ranges([self.range_of(name) for name in names])
        for name, raw in zip(names, found, strict=True):
            self._check(name, raw)
        return found

    def _check(self, name: str, raw: Any) -> None:
        if self.info is None or name == INFO:
            return
        expected = self.info.checksums.get(name)
        if expected is None or crc32c(raw) != expected:
            start, _ = self.range_of(name)
            raise self.corrupt(f"member '{name}' has a wrong checksum", offset=start)

    def member_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """Parts of a member by offsets inside it; the caller checks them."""
        start, end = self.range_of(name)
        for low, high in ranges:
            if not 0 <= low <= high <= end - start:
                raise self.corrupt(f"a part of member '{name}' lies outside it", offset=start)
        return self.ranges([(start + low, start + high) for low, high in ranges])

    def mapped_member(self, name: str) -> memoryview | None:
        """A member without copying, unchecked; ``None`` where the file is not local."""
        if self._map is None:
            return None
        start, end = self.range_of(name)
        return self._map[start:end]


class BareSource(SplitSource):
    """The bytes of a split that is not there: rows of another table's file, and no member."""

    def __init__(self, store: Store, ref: SplitRef) -> None:
        self.store = store
        self.ref = ref
        self.path = ref.path
        self._map = memoryview(b"")
        self._tail_start, self._tail = 0, b""
        self._members = {}
        self.footer = Footer({}, None)
        self.info = None
