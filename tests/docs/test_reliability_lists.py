"""docs/reliability.md lists every place that deletes, changes a table or parses text; no other.

The package is read, not run: a new call that deletes, a new commit, a new write to a store, a new
parser is found by its name and must be in its table; a row whose place is gone must go.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from indextables.table.verbs import Verbs
from indextables.verbs import REGISTRY

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "indextables"
PAGE = ROOT / "docs" / "reliability.md"
GUARD = "storage/deleting.py"

GUARDED = {
    "indextables.storage.deleting": {"delete", "delete_state_folder", "remove_file", "remove_tree"},
    "indextables.storage.workfolders": {"release", "sweep"},
    "indextables.log.retention.rules": {"discard"},
}
RAW = {"delete", "unlink", "rmdir", "rmtree", "removedirs", "delete_blob", "delete_blobs",
       "delete_object", "delete_objects", "rm", "_rm", "_rm_file"}  # fmt: skip
RAW_TEXTS = {"delete_objects", "DELETE", "delete_blob"}
WRITES = {"put", "put_file", "put_if_absent"}
PARSER = re.compile(
    r"parse(_\w+)?|(\w+_)?from_(json|text|string|sql|dict|catalyst|datasource)|tokenize|unquote"
)

Calls = Callable[[ast.Call, dict[str, str]], bool]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text("utf-8"))


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Top functions and methods with their names; what is nested belongs to them."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                    yield f"{node.name}.{inner.name}", inner
        else:
            yield "", node


def imported(tree: ast.Module) -> dict[str, str]:
    """Names a module imports, and where from."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def places(wanted: Calls) -> set[str]:
    """``module::function`` of each function with a call that is wanted."""
    found = set()
    for module, tree in modules():
        names = imported(tree)
        for function, node in functions(tree):
            calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
            if any(wanted(call, names) for call in calls):
                found.add(f"{module}::{function}")
    return found


def is_guarded(call: ast.Call, names: dict[str, str]) -> bool:
    """A call of the module that deletes, or of what stands on it."""
    if isinstance(call.func, ast.Name):
        home, _, name = names.get(call.func.id, "").rpartition(".")
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        home, name = names.get(call.func.value.id, ""), call.func.attr
    else:
        return False
    return name in GUARDED.get(home, ())


def is_raw(call: ast.Call, names: dict[str, str]) -> bool:
    """A call that deletes by itself: a file system's, a client's or a store's."""
    texts = {a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    if isinstance(call.func, ast.Attribute) and texts & RAW_TEXTS:
        return True
    if not isinstance(call.func, ast.Attribute):
        return names.get(getattr(call.func, "id", ""), "").rpartition(".")[2] in RAW and (
            not is_guarded(call, names)
        )
    owner = ast.unparse(call.func.value)
    if call.func.attr == "remove":
        return owner == "os"
    return call.func.attr in RAW and not is_guarded(call, names)


def is_commit(call: ast.Call, names: dict[str, str]) -> bool:
    return ast.unparse(call.func) == "Transaction"


def is_write(call: ast.Call, names: dict[str, str]) -> bool:
    if ast.unparse(call.func) == "commit_slot":
        return True
    if not isinstance(call.func, ast.Attribute) or call.func.attr not in WRITES:
        return False
    return ast.unparse(call.func.value).endswith("store")


def is_json(call: ast.Call, names: dict[str, str]) -> bool:
    return ast.unparse(call.func) in ("json.loads", "json.load", "sqlglot.parse")


def parsers() -> set[str]:
    """Modules that define a parser by its name or read JSON or SQL."""
    found = {place.partition("::")[0] for place in places(is_json)}
    for module, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and PARSER.fullmatch(node.name):
                found.add(module)
    return found


def listed(title: str) -> set[str]:
    """First cells of the table below a heading of the page."""
    text = PAGE.read_text("utf-8")
    assert f"\n## {title}\n" in text, f"the page has no section '{title}'"
    section = text.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| `([^`]+)` \|", section, re.M)
    assert len(rows) == len(set(rows)), "a place is listed twice"
    return set(rows)


def compare(title: str, there: set[str]) -> None:
    known = listed(title)
    assert not there - known, f"add to '{title}' in docs/reliability.md: {sorted(there - known)}"
    assert not known - there, f"gone, take out of '{title}': {sorted(known - there)}"


def test_every_place_that_deletes_is_listed() -> None:
    there = {p for p in places(is_guarded) if not p.startswith(GUARD)}
    compare("Places that delete", there)


def test_nothing_deletes_beside_the_module_that_decides() -> None:
    """Else than there, only the stores' own ``delete`` may; each is listed with its client."""
    there = {p for p in places(is_raw) if not p.startswith(GUARD)}
    compare("How stores delete", there)
    assert all(place.startswith("storage/") for place in there)


def test_the_scan_sees_what_it_should() -> None:
    seen = [
        "store.delete([p])",
        "self.log.store.delete(p)",
        "os.unlink(p)",
        "os.remove(p)",
        "path.unlink()",
        "shutil.rmtree(p)",
        "rmtree(p)",
        "self._call('delete_objects', Delete=x)",
    ]
    names = {"rmtree": "shutil.rmtree"}
    for text in seen:
        call = ast.parse(text).body[0].value  # type: ignore[attr-defined]
        assert is_raw(call, names), text
    for text in ("names.remove(p)", "cache.pop(p)", "delete(store, p)"):
        call = ast.parse(text).body[0].value  # type: ignore[attr-defined]
        assert not is_raw(call, {"delete": "indextables.storage.deleting.delete"}), text


def test_every_place_that_changes_a_table_is_listed() -> None:
    there = places(is_commit) | {p for p in places(is_write) if not p.startswith("storage/")}
    compare("Places that change a table", there)


def test_every_verb_is_listed() -> None:
    page = PAGE.read_text("utf-8")
    section = page.split("\n## Verbs\n", 1)[1].split("\n## ", 1)[0]
    words = set(re.findall(r"`(\w+)`", section))
    methods = {n for n in vars(Verbs) if not n.startswith("_") and n not in ("log", "snapshot")}
    kinds = {kind.__name__ for kind in REGISTRY}
    assert not (methods | kinds) - words, "add to 'Verbs' in docs/reliability.md"
    assert not words - methods - kinds - {"write", "Table"}, "gone, take out of 'Verbs'"


def test_every_text_that_is_parsed_is_listed() -> None:
    compare("Texts that are parsed", parsers())


@pytest.mark.parametrize("test", re.findall(r"`(tests/[\w/]+\.py)`", PAGE.read_text("utf-8")))
def test_the_tests_it_names_are_there(test: str) -> None:
    assert (ROOT / test).exists()
