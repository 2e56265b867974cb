"""Unpacked indexes: where tantivy finds real files, how many are open, and who cleans up.

tantivy opens folders of files. A split's index is laid into a folder of its own as sparse files:
tails at once, slices of fields when a query first needs them (the files are mapped shared, so an
open index sees them). An open index holds no file descriptor, but its slices on disk, a few maps
and a thread that wakes twice a second to look at its folder. So ``MAX_OPEN`` are kept, as many as
a query of a remote table is likely to come back to, with ``OPEN_BYTES`` of slices in all; least
recently used first out. One that is still in use elsewhere lives on until it is dropped.

Folders belong to the process that made them and go at its exit; those of dead processes are swept
when the first one is made. A forked child starts empty and never touches its parent's.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from indextables.errors import IndexTablesError
from indextables.native._crc32c import crc32c
from indextables.splits.indexfiles import SEGMENT, WHOLE
from indextables.splits.lazy import lazily
from indextables.splits.source import SplitSource

MAX_OPEN = 128
OPEN_BYTES = 1 << 30
PREFIX = "indextables-open-"

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
        self._lay_first(source.info.index_meta, needs)
        self._finalizer = weakref.finalize(self, _remove, folder, os.getpid())
        index = tantivy.Index.open(folder)
        self.schema = index.schema
        self._index = index
        self.searcher = index.searcher()
        if self.searcher.num_docs != source.info.num_rows:
            raise source.corrupt("the index does not hold the split's rows")

    def _lay_first(self, meta: str, needs: Iterable[Part]) -> None:
        os.makedirs(self._folder)
        with open(os.path.join(self._folder, "meta.json"), "w") as file:
            file.write(meta)
        parts = []
        for extension, item in self._files.items():
            path = os.path.join(self._folder, f"{SEGMENT}.{extension}")
            with open(path, "wb") as file:
                file.truncate(item.size)
            parts.append((extension, item.tail))
        wanted = [need for need in needs if self._slice(need) is not None]
        self._lay([*parts, *((need[0], self._slice(need)) for need in wanted)])
        self._laid.update(wanted)

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
                self._lay([(n[0], self._slice(n)) for n in missing])
                self._laid.update(missing)

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


class Workspace:
    """The open indexes of one process."""

    def __init__(self, limit: int = MAX_OPEN, most_bytes: int = OPEN_BYTES) -> None:
        self._limit = limit
        self._most_bytes = most_bytes
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._base: str | None = None
        self._count = 0
        self._open: OrderedDict[Hashable, OpenIndex] = OrderedDict()

    def get(self, key: Hashable, source: SplitSource, needs: Iterable[Part] = ()) -> OpenIndex:
        """The open index of a split, opened if need be, with what is likely to be read first."""
        with self._lock:
            found = self._open.get(key)
            if found is not None:
                self._open.move_to_end(key)
                return found
            folder = self._folder()
        made = OpenIndex(source, folder, needs)
        with self._lock:
            found = self._open.setdefault(key, made)
            self._open.move_to_end(key)
            while len(self._open) > self._limit or (len(self._open) > 1 and self._is_full()):
                self._open.popitem(last=False)
        return found

    def _is_full(self) -> bool:
        """Slices are laid later too, so the sum is taken anew by every opening."""
        return sum(index.laid_bytes for index in self._open.values()) > self._most_bytes

    def holds(self, key: Hashable) -> bool:
        """Is the index of a split open?"""
        return key in self._open

    def _folder(self) -> str:
        if self._base is None:
            _sweep(tempfile.gettempdir())
            self._base = tempfile.mkdtemp(prefix=f"{PREFIX}{self._pid}-")
            atexit.register(_remove, self._base, self._pid)
        self._count += 1
        return os.path.join(self._base, str(self._count))

    def forget(self, key: Hashable) -> None:
        with self._lock:
            self._open.pop(key, None)

    def clear(self) -> None:
        with self._lock:
            self._open.clear()

    def __len__(self) -> int:
        return len(self._open)


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(parent: str) -> None:
    """Remove what processes left behind that ended without cleaning up."""
    for name in os.listdir(parent):
        pid, _, _ = name.removeprefix(PREFIX).partition("-")
        if not name.startswith(PREFIX) or not pid.isdigit() or _is_alive(int(pid)):
            continue
        path = os.path.join(parent, name)
        with contextlib.suppress(OSError):
            if os.stat(path).st_uid == os.getuid():
                shutil.rmtree(path, ignore_errors=True)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


_workspace = Workspace()
_inherited: list[Workspace] = []


def workspace() -> Workspace:
    """The open indexes of this process."""
    return _workspace


def _after_fork() -> None:
    global _workspace
    _inherited.append(_workspace)
    _workspace = Workspace()


os.register_at_fork(after_in_child=_after_fork)


def run(action: Callable[[], Any], path: str) -> Any:
    """Call into tantivy; a panic there is an error here."""
    try:
        return action()
    except Exception as error:
        raise IndexTablesError(f"the index refused a query: {error}", path=path) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise IndexTablesError(f"the index failed: {error}", path=path) from error
