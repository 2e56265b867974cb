"""Without a compiler the build ends with a sentence that helps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_build_without_a_compiler_says_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("Cython")
    if not (ROOT / "build" / "cython").is_dir():
        pytest.skip("nothing was built here, and Cython alone would take minutes")
    environment = {**os.environ, "CC": "no-such-compiler", "CXX": "no-such-compiler"}
    places = ["--build-lib", str(tmp_path / "lib"), "--build-temp", str(tmp_path / "temp")]
    done = subprocess.run(
        [sys.executable, "setup.py", "build_ext", *places],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr, done.stderr[-2000:]
    last = done.stderr.strip().splitlines()[-8:]
    assert any("apt install build-essential python3-dev" in line for line in last), last
    assert last[-1].endswith("for this Python.")
