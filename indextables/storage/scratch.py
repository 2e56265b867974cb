"""Folders for work in progress, and what to say when there is no space for one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

from indextables.errors import ConfigError, MachineError
from indextables.storage.machine import explained
from indextables.storage.workfolders import new_folder

TMPDIR = "TMPDIR"


def scratch_folder(purpose: str, parent: str | None = None, setting: str = TMPDIR) -> str:
    """A new work folder in ``parent`` (default: the system's), which ``setting`` chooses."""
    if parent is None:
        parent, setting = _system_folder(), _either(setting)
    with in_scratch(parent, setting):
        try:
            return new_folder(purpose, parent)
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise ConfigError(
                f"no work folder can be made in '{parent}': {error.strerror}",
                hint=f"Set {setting} to a folder that exists and can be written",
            ) from error


@contextlib.contextmanager
def in_scratch(folder: str, setting: str = TMPDIR) -> Iterator[None]:
    """Work in a folder: errors of the machine name the folder."""
    with explained(folder=folder, setting=setting):
        yield


def _either(setting: str) -> str:
    return setting if setting == TMPDIR else f"{setting} (or {TMPDIR})"


def _system_folder() -> str:
    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        tried = os.environ.get(TMPDIR, "/tmp")
        raise MachineError(
            f"no folder for temporary files can be written (tried {tried} and others)",
            hint=f"Free space there, raise ulimit -n, or set {TMPDIR}",
        ) from error
