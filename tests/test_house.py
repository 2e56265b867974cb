"""The house rules as tests: imports point one way, modules and functions stay small."""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "indextables"

FLOOR = {
    "buffers",
    "errors",
    "config",
    "settings",
    "types",
    "fitting",
    "lazy",
    "lru",
    "mapping",
    "naming",
    "clustering",
    "gridview",
    "printable",
    "progress",
    "__version__",
}
RANK = {
    "native": 0,
    "storage": 1,
    "expr": 1,
    "log": 2,
    "sources": 3,
    "splits": 3,
    "columnindex": 4,
    "xref": 4,
    "companion": 5,
    "maintenance": 5,
    "planner": 5,
    "verbs": 6,
    "table": 7,
    "functions": 7,
    "spark": 8,
    "sql": 9,
    "serve": 9,
    "cli": 10,
    "public": 11,
}
SAID_FOR_TWO_REASONS = {"'indextables'", "'zstd'"}
LONGEST_MODULE = 500
LONGEST_FUNCTION = {".py": 60}


def modules() -> list[Path]:
    return sorted(p for p in PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_rooms(tree: ast.Module) -> Iterator[tuple[str, int, bool]]:
    """(room, line, lazy) of each import of ours; lazy means inside a function."""
    lazy_lines = {
        inner.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "indextables":
                names = [f"indextables.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "indextables" and len(parts) > 1:
                yield parts[1], node.lineno, node.lineno in lazy_lines


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    tree = ast.parse(path.read_text())
    for other, line, _ in imported_rooms(tree):
        if room in FLOOR:
            allowed = other in FLOOR or (other == "storage" and room == "config")
        else:
            allowed = other in FLOOR or other == room or RANK.get(other, 99) <= RANK[room]
        assert allowed, f"{path.relative_to(ROOT)}:{line} imports {other} from {room}"


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_modules_and_functions_stay_small(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= LONGEST_MODULE, f"{path.name} has more than one idea"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= LONGEST_FUNCTION[".py"], f"{path.name}:{node.lineno} {node.name}"


def test_there_is_one_cache_with_a_bound() -> None:
    """What is kept in memory is bounded in one place, which knows threads and forks."""
    written_by_hand = re.compile(r"OrderedDict|popitem\(|move_to_end")
    for path in modules():
        if path.name != "lru.py":
            found = written_by_hand.search(path.read_text())
            assert found is None, f"{path.relative_to(ROOT)} has a cache of its own: {found}"


def test_a_name_that_is_stored_or_shown_has_one_home() -> None:
    """Two modules that assign the same text to a constant have written one decision twice."""
    homes: dict[str, list[str]] = {}
    for path in modules():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant | ast.Tuple):
                with contextlib.suppress(ValueError):
                    value = ast.literal_eval(node.value)
                    is_text = isinstance(value, str | bytes) and len(value) > 3
                    is_texts = isinstance(value, tuple) and all(isinstance(v, str) for v in value)
                    if is_text or (is_texts and len(value) > 1):
                        homes.setdefault(repr(value), []).append(str(path.relative_to(ROOT)))
    twice = {v: p for v, p in homes.items() if len(set(p)) > 1 and v not in SAID_FOR_TWO_REASONS}
    assert not twice, f"import it from one of these, or name the reason above: {twice}"


def test_every_kernel_has_stubs_and_no_empty_declarations() -> None:
    """A ``.pxd`` says what other kernels may use, or what the kernel itself declares."""
    for source in (ROOT / "pyx").rglob("*.pyx"):
        assert source.with_suffix(".pyi").exists(), f"{source.name} lacks its .pyi"
    for header in (ROOT / "pyx").rglob("*.pxd"):
        assert re.search(r"^\s*(cdef|cpdef|ctypedef)\b", header.read_text(), re.M), header.name


def test_tests_name_the_shared_tables_they_read() -> None:
    """A folder that stands beside the tables of other writers is no table of theirs."""
    walk = re.compile(
        r"(?:interop_dir|SHARED)\b[^\n]*\.(?:iterdir|glob|rglob)\(|(?:listdir|scandir|walk)\((?:interop_dir|SHARED)\b"
    )
    for file in sorted((ROOT / "tests").rglob("*.py")):
        found = None if file == Path(__file__) else walk.search(file.read_text())
        assert found is None, f"{file.relative_to(ROOT)}: {found and found[0]}"


def test_import_is_light() -> None:
    code = (
        "import sys, indextables; heavy = {'pyspark', 'pandas', 'sqlglot', 's3fs', 'py4j', 'rich'}"
        "; found = heavy & set(sys.modules); assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
