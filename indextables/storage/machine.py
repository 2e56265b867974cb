"""The condition of the machine, told apart from the condition of the data.

Descriptors, memory, space and time run out, and then good files cannot be opened, read or written.
Such a failure proves nothing about them: code that meets it while judging data (is the split
damaged, does it stay uncovered, is the index to be rebuilt) must not judge. So there is one list of
what counts, here, and three ways to use it:

* ``machine_error`` gives the ``MachineError`` behind an exception, if there is one. The whole chain
  is looked at, because libraries wrap what the system said; tantivy only keeps the number, as text.
* ``explained`` lets such failures leave a block of work as ``MachineError``, with the folder that
  ran full and the setting that moves it.
* ``refuse_to_judge`` stands first in a handler that would draw a conclusion. It raises where there
  is none to draw: for the machine's failures, and for those of a store that did not answer.
"""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator

from indextables.errors import AmbiguousWriteError, MachineError, TransientStorageError

_DESCRIPTORS = "Raise the limit of open files (ulimit -n) or run fewer things at once"
_MEMORY = "Free memory, lower the parallelism, or give the process more"
_SPACE = "Free space there"
_TIME = "Run it again when the machine is less busy"

_CONDITIONS: dict[int, tuple[str, str]] = {
    errno.EMFILE: ("this process has no file descriptor left", _DESCRIPTORS),
    errno.ENFILE: ("this machine has no file descriptor left", _DESCRIPTORS),
    errno.ENOMEM: ("there is not enough memory", _MEMORY),
    errno.ENOSPC: ("there is no space left", _SPACE),
    errno.EDQUOT: ("the disk quota is used up", _SPACE),
    errno.EFBIG: ("a file grew beyond the limit of this process (ulimit -f)", "Raise the limit"),
    errno.EAGAIN: ("this machine is out of threads, locks or buffers", _TIME),
    errno.EINTR: ("a call was interrupted", _TIME),
    errno.ETIMEDOUT: ("a call took too long", _TIME),
}
_FULL = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
_RAN_OUT = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM, *_FULL))
_NUMBER_IN_TEXT = re.compile(r"\(?os error (\d+)\)?|Os \{ code: (\d+)")
_NO_THREAD = "can't start new thread"


def chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, then what it was raised from, each once."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def machine_error(
    error: BaseException,
    *,
    path: str | None = None,
    folder: str | None = None,
    setting: str | None = None,
) -> MachineError | None:
    """The machine's condition behind an exception; ``None`` where it is about something else."""
    for current in chain(error):
        if isinstance(current, MachineError):
            return current
        number = _number(current)
        if number in _CONDITIONS:
            return _described(number, path, folder, setting)
    return None


def ran_out(error: BaseException) -> bool:
    """Is this very exception one of a resource that ran out here (and not one of time)?"""
    return isinstance(error, MachineError) or _number(error) in _RAN_OUT


def _number(error: BaseException) -> int | None:
    if isinstance(error, MemoryError):
        return errno.ENOMEM
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno
    if isinstance(error, TimeoutError):
        return errno.ETIMEDOUT
    told = isinstance(error, (ValueError, RuntimeError, OSError))
    told = told or type(error).__module__.startswith("obstore.")
    text = str(error) if told or type(error).__name__ == "PanicException" else ""
    if _NO_THREAD in text:
        return errno.EAGAIN
    found = _NUMBER_IN_TEXT.search(text)
    return int(found.group(1) or found.group(2)) if found else None


def _described(
    number: int, path: str | None, folder: str | None, setting: str | None
) -> MachineError:
    what, hint = _CONDITIONS[number]
    if number in _FULL and folder is not None:
        what += f" in {folder}"
        if setting is not None:
            hint += f", or set {setting} to a folder with more"
    return MachineError(what, path=path, hint=f"{hint}; nothing is wrong with the table's files")


@contextlib.contextmanager
def explained(
    *, path: str | None = None, folder: str | None = None, setting: str | None = None
) -> Iterator[None]:
    """Failures of the machine leave the block as ``MachineError``; all others as they are."""
    try:
        yield
    except MachineError:
        raise
    except Exception as error:
        found = machine_error(error, path=path, folder=folder, setting=setting)
        if found is None:
            raise
        raise found from error


def refuse_to_judge(error: BaseException, *, path: str | None = None) -> None:
    """Raise where an exception says nothing about the data; return where it may be judged."""
    found = machine_error(error, path=path)
    if found is not None:
        if found in chain(error):
            raise found
        raise found from error
    if any(isinstance(e, (TransientStorageError, AmbiguousWriteError)) for e in chain(error)):
        raise error
