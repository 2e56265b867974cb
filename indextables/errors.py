"""One tree of errors: what happened, where (path, version), and what to do next.

``IndexTablesError`` is the only class a caller needs to catch. Two outcomes of a commit are kept
apart on purpose: ``CommitConflictError`` (another writer won, nothing of ours is visible, retry)
and ``CommitStateUnknownError`` (the reply was lost and the log could not be read back: our files
must be kept, because the commit may have landed).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import ClassVar


class IndexTablesError(Exception):
    """Base of every error of this package.

    ``code`` is stable and has a paragraph in ``docs/errors.md``; ``hint`` says what to do next.
    """

    code: ClassVar[str] = "ITX-1000"

    def __init__(
        self,
        message: str,
        *,
        path: str | None = None,
        version: int | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.version = version
        self.hint = hint
        self.table: str | None = None

    def __str__(self) -> str:
        where = []
        if self.table is not None and self.table != self.path:
            where.append(f"table: {self.table}")
        if self.path is not None:
            where.append(f"path: {self._full_path(self.path)}")
        if self.version is not None:
            where.append(f"version: {self.version}")
        text = f"{self.code} {self.message}"
        if where:
            text += f" ({', '.join(where)})"
        if self.hint:
            text += f"\n{self.hint}" if "\n" in self.message else f". {self.hint}"
        return text.encode("utf-8", "backslashreplace").decode("utf-8")

    def _full_path(self, path: str) -> str:
        """The path with the table's, where it is one inside the table."""
        inside = self.table is not None and "://" not in path and not path.startswith("/")
        return f"{(self.table or '').rstrip('/')}/{path}" if inside else path

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())


def _rebuild(
    cls: type[IndexTablesError], args: tuple[object, ...], state: dict[str, object]
) -> IndexTablesError:
    error = cls.__new__(cls, *args)
    Exception.__init__(error, *args)
    error.__dict__.update(state)
    return error


class ConfigError(IndexTablesError):
    """An option has an unknown name or a value outside its type."""

    code = "ITX-1100"


class MissingLibraryError(IndexTablesError, ImportError):
    """A library that this call needs, and that not everybody needs, is not installed."""

    code = "ITX-1200"

    @classmethod
    def of(cls, library: str, extra: str) -> MissingLibraryError:
        """The error for a library that an optional extra of this package brings."""
        hint = f"pip install 'indextables[{extra}]'"
        return cls(f"this needs {library}, which is not installed", hint=hint)


# -- bytes and stores ---------------------------------------------------------------------------


class CorruptFileError(IndexTablesError):
    """Bytes are not what their format says; ``offset`` and ``reason`` point at the place."""

    code = "ITX-2000"

    def __init__(
        self,
        reason: str,
        *,
        offset: int | None = None,
        path: str | None = None,
        version: int | None = None,
        hint: str | None = None,
    ) -> None:
        at = f" at byte {offset}" if offset is not None else ""
        super().__init__(f"corrupt file: {reason}{at}", path=path, version=version, hint=hint)
        self.reason = reason
        self.offset = offset


class StorageError(IndexTablesError):
    """The store refused or failed an operation."""

    code = "ITX-2100"


class ObjectNotFoundError(StorageError, FileNotFoundError):
    """No object at that path."""

    code = "ITX-2101"


class ObjectExistsError(StorageError, FileExistsError):
    """A conditional create found an object there (perhaps our own, after a lost reply)."""

    code = "ITX-2102"


class AmbiguousWriteError(StorageError):
    """A write may or may not have been applied (timeout, reset, 5xx, 409)."""

    code = "ITX-2103"


class UnsafePathError(StorageError):
    """A path points outside the table."""

    code = "ITX-2104"


class UnsupportedStoreError(StorageError):
    """The store lacks what the table needs (conditional create, or the client library)."""

    code = "ITX-2105"


class TransientStorageError(StorageError):
    """A failure that passes by itself (throttling, 5xx, reset); it outlived the retries."""

    code = "ITX-2106"


class MachineError(IndexTablesError):
    """This machine or process ran short (descriptors, memory, space, time).

    It says nothing about the table: no file is damaged because of it, and the same call succeeds
    once there is space. Not a ``StorageError``: code that judges data by its errors must not catch
    it.
    """

    code = "ITX-2200"


# -- the transaction log ------------------------------------------------------------------------


class TableNotFoundError(IndexTablesError):
    """No transaction log at that path."""

    code = "ITX-3000"


class TableExistsError(IndexTablesError):
    """A table is already there."""

    code = "ITX-3001"


class VersionNotFoundError(IndexTablesError):
    """The asked version or timestamp is not in the log (never was, or cleaned away)."""

    code = "ITX-3002"


class ProtocolError(IndexTablesError):
    """The table needs a newer reader or writer, or a feature this release does not know."""

    code = "ITX-3003"


class DivergedLogError(IndexTablesError):
    """Two programs made different versions of the same number, which cannot be united."""

    code = "ITX-3004"


class CommitFailedError(IndexTablesError):
    """The store definitely rejected the commit; nothing was written."""

    code = "ITX-3100"


class CommitConflictError(IndexTablesError):
    """Another writer changed what this transaction depends on; refresh and run it again."""

    code = "ITX-3101"


class CommitStateUnknownError(IndexTablesError):
    """The commit may have landed. Keep every file; look the commit id up before running again."""

    code = "ITX-3102"


# -- schema, planning, queries ------------------------------------------------------------------


class SchemaMismatchError(IndexTablesError):
    """Data does not fit the table's schema."""

    code = "ITX-4000"


class PlanningError(IndexTablesError):
    """A filter or query cannot be planned."""

    code = "ITX-4100"


class UnknownColumnError(PlanningError):
    """A filter or projection names a column the table does not have."""

    code = "ITX-4101"

    @classmethod
    def of(cls, name: str, known: Iterable[str], *, path: str | None = None) -> UnknownColumnError:
        columns = list(known)
        return cls(f"unknown column '{name}'", path=path, hint=did_you_mean(name, columns))


class AmbiguousColumnError(PlanningError):
    """A case-insensitive name fits two columns."""

    code = "ITX-4102"


class TypeMismatchError(PlanningError):
    """A literal cannot be compared with the column's type."""

    code = "ITX-4103"


class QuerySyntaxError(PlanningError):
    """A search string or SQL predicate is malformed; ``position`` counts characters from 0."""

    code = "ITX-4104"

    def __init__(
        self, message: str, *, query: str, position: int | None = None, hint: str | None = None
    ) -> None:
        pointer = ""
        if position is not None:
            pointer = f"\n  {query}\n  {' ' * position}^"
        super().__init__(message + pointer, hint=hint)
        self.query = query
        self.position = position


def is_text(value: object) -> bool:
    """Is it a string that UTF-8 can spell? One with half of a surrogate pair is not."""
    if not isinstance(value, str):
        return False
    try:
        return value.isascii() or bool(value.encode("utf-8"))
    except UnicodeEncodeError:
        return False


def require_characters(text: str) -> None:
    """Refuse text that holds half of a surrogate pair: it is in no file and in no index."""
    if not isinstance(text, str):
        raise PlanningError(f"a query is text, not a {type(text).__name__}")
    if text.isascii():
        return
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        shown = text.encode("utf-8", "replace").decode("utf-8")
        raise QuerySyntaxError(
            "half of a surrogate pair is no character", query=shown, position=error.start
        ) from None


class EvaluationError(IndexTablesError):
    """A row's value makes an expression fail, as under ANSI mode (bad cast, overflow)."""

    code = "ITX-4105"


class CommandSyntaxError(IndexTablesError):
    """A command of ours is malformed; names the position and the expected words."""

    code = "ITX-5000"

    def __init__(
        self,
        message: str,
        *,
        text: str,
        position: int,
        expected: Iterable[str] = (),
    ) -> None:
        line = text[:position].count("\n")
        start = text.rfind("\n", 0, position) + 1
        end = text.find("\n", position)
        shown = text[start : end if end >= 0 else len(text)]
        words = ", ".join(expected)
        pointer = f" at line {line + 1}, column {position - start + 1}"
        detail = f"\n  {shown}\n  {' ' * (position - start)}^"
        super().__init__(
            f"{message}{pointer}{detail}", hint=f"Expected: {words}" if words else None
        )
        self.position = position
        self.expected = tuple(expected)


class MaintenanceError(IndexTablesError):
    """A maintenance verb was asked for something it will not do (retention, scope, state)."""

    code = "ITX-5100"


@contextmanager
def placed(table: str | None) -> Iterator[None]:
    """Errors about files of a table say which table it is, and what to do."""
    try:
        yield
    except (StorageError, CorruptFileError) as error:
        if error.table is None and table:
            error.table = table
            error.hint = error.hint or _cure(error)
        raise


def _cure(error: IndexTablesError) -> str:
    if isinstance(error, ObjectNotFoundError | CorruptFileError):
        return (
            "Run DOCTOR to see what else is missing or damaged; then RESTORE a version that does "
            "not need the file, or bring it back from a copy"
        )
    return (
        "Check that the store answers and that the credentials may read the table; then try again"
    )


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known word that a name is nearly, ``None`` if there is none."""
    near = get_close_matches(name.lower(), list(known), n=1, cutoff=0.85)
    return near[0] if near else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known words, or lists them all when none is near."""
    words = list(known)
    by_lower = {word.lower(): word for word in words}
    near = get_close_matches(name.lower(), list(by_lower), n=3, cutoff=0.6)
    if near:
        return "Did you mean " + ", ".join(f"'{by_lower[word]}'" for word in near) + "?"
    shown = ", ".join(words[:40]) + (", ..." if len(words) > 40 else "")
    return f"Known names: {shown}" if words else "There are none."
