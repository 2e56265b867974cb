"""Work folders: where splits are built and indexes unpacked, and who clears them away.

A process has one base folder in each parent it works in (the system's temporary folder, or the one
a setting names), and gives out folders inside it. A base folder goes when its last folder goes, and
at exit. A process that is killed leaves it behind; the next one that works in the same parent
removes it.

Whether a base folder's owner lives is known from a lock, never by a process id: ids are reused, and
one that is unknown here may be alive in another container that shares the disk. The owner holds
``flock`` on the file ``lock`` in it, which ends with the process, however it ends. The lock is
taken before the file gets its name, so a base folder either has a lock that is held, or is being
made at this moment, or is left over. One without a lock is removed after a day. Where the file
system cannot lock, the file is named ``unlocked`` instead and the folder is never removed.

A forked child gives up its parent's folders without touching them.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import tempfile
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.util import Finalize

from indextables.storage.deleting import remove_tree

PREFIX = "indextables-work-"
LOCK = "lock"
UNLOCKED = "unlocked"
ABANDONED_S = 24 * 3600


@dataclass
class _Base:
    path: str
    fd: int
    folders: set[str] = field(default_factory=set)


_guard = threading.RLock()
"""Reentrant: a finalizer may release a folder while this thread is in here."""
_bases: dict[str, _Base] = {}
_swept: set[str] = set()
_count = 0


def new_folder(purpose: str, parent: str | None = None) -> str:
    """A new folder of this process; ``release`` removes it."""
    global _count
    place = os.path.abspath(parent or tempfile.gettempdir())
    with _guard:
        if place not in _swept:
            _swept.add(place)
            sweep(place)
        _count += 1
        name = f"{purpose}-{_count}"
        base = None
        while base is None or _bases.get(place) is not base:
            base = _bases.get(place) or _make_base(place)
            _bases[place] = base
            base.folders.add(os.path.join(base.path, name))
        folder = os.path.join(base.path, name)
        os.mkdir(folder, 0o700)
        return folder


def release(folder: str) -> None:
    """Remove a folder that ``new_folder`` gave to this process; any other is left alone."""
    with _guard:
        for place, base in list(_bases.items()):
            if folder in base.folders:
                base.folders.remove(folder)
                remove_tree(folder, base.path)
                if not base.folders:
                    _drop(place)


def sweep(parent: str) -> list[str]:
    """Remove base folders whose owners are gone; the paths that were removed."""
    removed = []
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX) and _is_mine(entry) and _sweep_one(entry.path):
                removed.append(entry.path)
    return removed


def _is_mine(entry: os.DirEntry[str]) -> bool:
    try:
        found = entry.stat(follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _sweep_one(path: str) -> bool:
    try:
        fd = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return _sweep_unlocked(path)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(path, os.path.dirname(path))
        return True
    except OSError:
        return False
    finally:
        os.close(fd)


def _sweep_unlocked(path: str) -> bool:
    try:
        if os.path.exists(os.path.join(path, UNLOCKED)):
            return False
        if time.time() - os.stat(path).st_mtime < ABANDONED_S:
            return False
    except OSError:
        return False
    remove_tree(path, os.path.dirname(path))
    return True


def _make_base(parent: str) -> _Base:
    path = tempfile.mkdtemp(prefix=PREFIX, dir=parent)
    draft = os.path.join(path, "draft")
    fd = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    name = LOCK
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        name = UNLOCKED
    os.rename(draft, os.path.join(path, name))
    Finalize(None, _at_exit, exitpriority=0)
    return _Base(path, fd)


def _drop(place: str) -> None:
    """Remove a base folder and give up its lock, the file of it last."""
    base = _bases.pop(place)
    for folder in base.folders:
        remove_tree(folder, base.path)
    remove_tree(base.path, place)
    os.close(base.fd)


def _at_exit() -> None:
    """Also called when a process of ``multiprocessing`` ends, which runs no ``atexit``."""
    with _guard:
        for place in list(_bases):
            _drop(place)


def _after_fork() -> None:
    """The folders are the parent's, and so is its lock: our copy of it would outlive it."""
    global _guard
    _guard = threading.RLock()
    for base in _bases.values():
        with contextlib.suppress(OSError):
            os.close(base.fd)
    _bases.clear()


os.register_at_fork(after_in_child=_after_fork)
