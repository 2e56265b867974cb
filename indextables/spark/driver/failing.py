"""What went wrong in a Spark task or worker, said first and in our own words.

An error of ours that is raised in a worker reaches the user as Spark's exception, whose message
begins with stages and tracebacks; the line that says what happened, where, and what to do stands
far below. ``told_plainly`` finds that line and raises the error it belongs to, with Spark's own
exception as its cause. Workers without this package and sessions without registration are
recognised the same way. Anything else passes untouched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from indextables import errors
from indextables.errors import ConfigError, IndexTablesError
from indextables.spark.driver.workers import SparkWorkerError, cure

_OURS = re.compile(r"^(?:.*?: )?(?:[\w.]+\.)?(\w+Error): (ITX-\d{4}) (.+)$", re.MULTILINE)
_MISSING = re.compile(r"No module named '?(indextables[\w.]*)'?")
_UNKNOWN = re.compile(
    r"\[CATALOG_NOT_FOUND\] The catalog `indextables`|for direct query on files: indextables\b"
)
_END = re.compile(r"^(\s*at [\w.$]+|\s*$|Driver stacktrace:|Traceback |Caused by: |SQLSTATE: )")


@contextmanager
def told_plainly() -> Iterator[None]:
    """Raise our own error in place of a Spark exception that carries one."""
    try:
        yield
    except IndexTablesError:
        raise
    except Exception as error:
        found = explained(str(error))
        if found is None:
            raise
        raise found from error


def explained(text: str) -> IndexTablesError | None:
    """The error of ours that a message of Spark carries."""
    missing = _MISSING.search(text)
    if missing is not None:
        told = f"Spark's Python workers cannot import {missing[1]}"
        if missing[1].startswith("indextables.native"):
            told += ": their indextables was built for another platform or another Python"
        return SparkWorkerError(told, hint=cure())
    if _UNKNOWN.search(text):
        return ConfigError(
            "indextables is not registered in this Spark session",
            hint="Call indextables.register(spark) first, once for every session, also for those "
            "that newSession() makes",
        )
    matches = list(_OURS.finditer(text))
    if not matches:
        return None
    found = _of_first_traceback(matches, text)
    return _rebuilt(found[1], found[2], _whole_message(text, found))


def _of_first_traceback(matches: list[re.Match[str]], text: str) -> re.Match[str]:
    """The error that ended the first traceback: later ones repeat it, earlier ones caused it."""
    java = re.search(r"^\s+at [\w.$]+", text, re.MULTILINE)
    first = [m for m in matches if java is None or m.start() < java.start()]
    return first[-1] if first else matches[0]


def _whole_message(text: str, found: re.Match[str]) -> str:
    """The message to its end, which may be some lines further down."""
    lines = [found[3]]
    for line in text[found.end() + 1 :].split("\n"):
        if _END.match(line):
            break
        lines.append(line)
    return "\n".join(lines).rstrip()


def _rebuilt(name: str, code: str, message: str) -> IndexTablesError:
    """An error of the class that was raised; its message holds path and hint already."""
    cls: Any = getattr(errors, name, None)
    if not (isinstance(cls, type) and issubclass(cls, IndexTablesError)):
        cls = IndexTablesError
    made: IndexTablesError = cls.__new__(cls, message)
    IndexTablesError.__init__(made, message)
    if made.code != code:
        vars(made)["code"] = code
    return made
