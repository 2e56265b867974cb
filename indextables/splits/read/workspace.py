"""Unpacked indexes: where tantivy finds real files, how many are open, and who cleans up.

tantivy opens folders of files. A split's index is written into a folder of its own as sparse files:
tails at once, slices of fields when a query first needs them (the files are mapped shared, so an
open index sees them). An open index holds no file descriptor, but its slices on disk, a few maps
and a thread that wakes twice a second to look at its folder. So ``MAX_OPEN`` are kept, as many as
a query of a remote table is likely to come back to, with ``OPEN_BYTES`` of slices in all; least
recently used first out. One that is still in use elsewhere lives on until it is dropped.

The folders are ``storage.workfolders``: they belong to the process that made them, and those of
dead processes are removed. A forked child starts empty and never touches its parent's.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from indextables.errors import IndexTablesError
from indextables.lazy import lazily
from indextables.lru import LRU
from indextables.native._crc32c import crc32c
from indextables.splits.read.indexfiles import SEGMENT, WHOLE
from indextables.splits.read.source import SplitSource
from indextables.storage.machine import machine_error
from indextables.storage.scratch import in_scratch, scratch_folder
from indextables.storage.workfolders import release

MAX_OPEN = 128
OPEN_BYTES = 1 << 30
STORE_BYTES, STORE_ROW = 1 << 20, 64

Part = tuple[str, str]
"""(file extension, field name) of a slice."""


class OpenIndex:
    """One unpacked tantivy index."""

    def __init__(self, source: SplitSource, folder: str, needs: Iterable[Part] = ()) -> None:
        """``needs`` are slices that come with the tails, in the same round trip."""
        import tantivy

        assert source.info is not None
        self._source = source
        self._files = source.info.index_files
        self._folder = folder
        self._lock = threading.Lock()
        self._laid: set[Part] = set()
        self.laid_bytes = 0
        self._finalizer = weakref.finalize(self, release, folder)
        try:
            with self._room():
                self._lay_first(source.info.index_meta, needs)
                index = run(lambda: tantivy.Index.open(folder), source.path)
        except BaseException:
            self._finalizer()
            raise
        self.schema = index.schema
        self._index = index
        self.searcher = index.searcher()
        if self.searcher.num_docs != source.info.num_rows:
            raise source.corrupt("the index does not hold the split's rows")

    def _lay_first(self, meta: str, needs: Iterable[Part]) -> None:
        with open(os.path.join(self._folder, "meta.json"), "w") as file:
            file.write(meta)
        parts = []
        for extension, item in self._files.items():
            self._check_size(extension, item)
            path = os.path.join(self._folder, f"{SEGMENT}.{extension}")
            with open(path, "wb") as file:
                file.truncate(item.size)
            parts.append((extension, item.tail))
        wanted = [need for need in needs if self._slice(need) is not None]
        self._lay([*parts, *((need[0], self._slice(need)) for need in wanted)])
        self._laid.update(wanted)

    def _check_size(self, extension: str, item: Any) -> None:
        """A file is as long as its member; only of the empty documents a part is left out."""
        start, end = self._source.range_of(item.member)
        left_out = item.size - (end - start)
        assert self._source.info is not None
        most = STORE_BYTES + STORE_ROW * self._source.info.num_rows if extension == "store" else 0
        if not 0 <= left_out <= most:
            raise self._source.corrupt(f"member '{item.member}' has a wrong size")

    def _lay(self, parts: list[tuple[str, Any]]) -> None:
        """Fetch slices, compare their checksums, write them to their places."""
        source = self._source
        ranges = []
        for extension, part in parts:
            item = self._files[extension]
            start, end = source.range_of(item.member)
            shift = start - (item.size - (end - start))
            ranges.append((shift + part.start, shift + part.end))
        for (extension, part), raw in zip(parts, source.ranges(ranges), strict=True):
            if crc32c(raw) != part.crc:
                member = self._files[extension].member
                raise source.corrupt(f"member '{member}' has a wrong checksum")
            path = os.path.join(self._folder, f"{SEGMENT}.{extension}")
            with open(path, "r+b") as file:
                file.seek(part.start)
                file.write(raw)
            self.laid_bytes += len(raw)

    def ensure(self, needs: Iterable[Part]) -> None:
        """Make the slices available that a query is about to read."""
        with self._lock:
            missing = [n for n in needs if n not in self._laid and self._slice(n) is not None]
            if missing:
                with self._room():
                    self._lay([(n[0], self._slice(n)) for n in missing])
                self._laid.update(missing)

    def link_into(self, folder: str) -> None:
        """Put the segment's files into another folder too; slices fetched later are seen there."""
        for extension in self._files:
            name = f"{SEGMENT}.{extension}"
            os.symlink(os.path.join(self._folder, name), os.path.join(folder, name))

    def _room(self) -> contextlib.AbstractContextManager[None]:
        """Errors of the machine while files are written name the folder for temporary files."""
        return in_scratch(os.path.dirname(os.path.dirname(self._folder)))

    def _slice(self, need: Part) -> Any:
        extension, name = need
        item = self._files.get(extension)
        return None if item is None else item.slices.get(name)


class LazyIndex:
    """An index that is opened when something of it is first asked for."""

    def __init__(self, opener: Callable[[], OpenIndex]) -> None:
        self._opener = opener

    @lazily
    def opened(self) -> OpenIndex:
        return self._opener()

    @property
    def schema(self) -> Any:
        return self.opened.schema

    @property
    def searcher(self) -> Any:
        return self.opened.searcher

    def ensure(self, needs: Iterable[Part]) -> None:
        self.opened.ensure(needs)


def parts_of(name: str, *, phrase: bool = False, scored: bool = False) -> set[Part]:
    """The slices that a search of one inverted field reads."""
    needs = {("term", name), ("idx", name)}
    if phrase:
        needs.add(("pos", name))
    if scored:
        needs.add(("fieldnorm", name))
    return needs


FAST: Part = ("fast", WHOLE)


class Workspace(LRU[Hashable, OpenIndex]):
    """The open indexes of one process; slices are added to them while they are open."""

    def __init__(self, limit: int = MAX_OPEN, most_bytes: int = OPEN_BYTES) -> None:
        super().__init__(limit, most_bytes=most_bytes, size_of=lambda i: i.laid_bytes, grows=True)

    def open(self, key: Hashable, source: SplitSource, needs: Iterable[Part] = ()) -> OpenIndex:
        """The open index of a split, opened if need be, with what is likely to be read first."""
        return self.load(key, lambda: OpenIndex(source, scratch_folder("open"), needs))


_workspace = Workspace()


def workspace() -> Workspace:
    """The open indexes of this process."""
    return _workspace


def run(action: Callable[[], Any], path: str) -> Any:
    """Call into tantivy; a panic there is an error here."""
    try:
        return action()
    except Exception as error:
        if (short := machine_error(error, path=path)) is not None:
            raise short from error
        raise IndexTablesError(f"the index refused a query: {error}", path=path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        if (short := machine_error(error, path=path)) is not None:
            raise short from error
        raise IndexTablesError(f"the index failed: {error}", path=path) from error
