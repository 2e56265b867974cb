"""Vectors of the kernel tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def native_dir(data_dir: Path) -> Path:
    return data_dir / "native"


@pytest.fixture(scope="session")
def vectors(native_dir: Path) -> Callable[[str], Any]:
    """Known-answer vectors by name."""
    return lambda name: json.loads((native_dir / f"{name}.json").read_text(encoding="utf-8"))
