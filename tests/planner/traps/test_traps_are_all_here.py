"""Thirty traps, each with a test that carries its number."""

from __future__ import annotations

import re
from pathlib import Path


def test_every_trap_has_a_named_test() -> None:
    here = Path(__file__).parent
    names = [
        n for f in here.glob("test_traps_*.py") for n in re.findall(r"def (\w+)", f.read_text())
    ]
    numbers = {int(m[1]) for n in names if (m := re.match(r"test_trap_(\d\d)_", n))}
    assert numbers == set(range(1, 31))


def test_every_trap_is_in_the_guide() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "pruning.md").read_text()
    numbers = {int(m) for m in re.findall(r"^\| (\d+) \|", guide, re.MULTILINE)}
    assert numbers == set(range(1, 31))
