"""Text that is nested without end is one of our errors or means nothing, never a RecursionError."""

from __future__ import annotations

import ast
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from indextables.errors import IndexTablesError
from indextables.expr import catalyst
from indextables.expr.jsonpaths import load_json
from indextables.expr.sqltext import parse_predicate
from indextables.log.actions.codec import parse_json
from indextables.log.checkpoint.avro_schema import compile_entries
from indextables.log.checkpoint.manifest import _metadata
from indextables.log.checkpoint.state import _json_record
from indextables.log.read.columns import UNKNOWN, count_in_stats
from indextables.log.read.ledger import actions_from_json
from indextables.mapping import DocMapping
from indextables.splits.format.bundle import MAGIC, parse_footer
from indextables.splits.format.info import SplitInfo
from indextables.types import schema_from_json

PACKAGE = Path(__file__).parents[2] / "indextables"
DEEP = "[" * 200_000
DEEP_OBJECT = '{"a":' * 200_000
TRUSTED = {
    "expr/scope.py::has_collation": "the notes of a schema that was just parsed",
    "log/commit/loop.py::_json_safe": "what was just written as JSON",
    "spark/driver/bridge.py": "asked by our own classes in the JVM",
    "spark/driver/opened.py": "asked by our own classes in the JVM",
    "spark/source.py": "sent by our own classes in the JVM",
    "splits/format/info.py::from_json": "caught as NO_INFO",
    "spark/driver/writing.py": "Spark's schema, and options of our own classes",
    "splits/read/indexfiles.py::sealed_meta": "the index that was just built here",
    "splits/format/info.py::to_json": "our own statistics",
    "naming.py::notes_of": "the notes of a schema that was just parsed",
    "serve/questions.py::explain": "our own explain",
    "spark/driver/changing.py::_json": "our own schema",
    "spark/driver/workers.py::_asked": "the answer of a program of ours",
    "spark/driver/workers.py::check_workers": "the answer of a program of ours",
    "splits/read/ranked.py::_lay_meta": "the parts of an index that was opened before",
    "table/interchange/polars_scan.py::to_filter": "everything is caught; Polars filters again",
    "types.py::_struct_json": "the notes of a schema that was just parsed",
    "splits/lookup/colindex/blocks.py::_parse_parts": "its caller catches it",
    "log/read/localcache.py::__init__": "its caller catches it",
    "sources/base.py::names_of": "the notes of a schema that was just made",
    "sources/iceberg_files.py::read_avro": "every exception is caught around it",
    "spark/driver/tableanswers.py": "asked by our own classes in the JVM, and our own schemas",
    "spark/tasks/searching.py": "written by the driver",
}


def footer() -> Any:
    metadata = MAGIC + DEEP_OBJECT.encode()
    raw = metadata + struct.pack("<I", len(metadata)) + struct.pack("<I", 0)
    return parse_footer(raw, 10, "a.split")


@pytest.mark.parametrize(
    "read",
    [
        lambda: schema_from_json(DEEP),
        lambda: DocMapping.from_json(DEEP),
        lambda: SplitInfo.from_json(DEEP.encode(), "a.split"),
        footer,
        lambda: _metadata(DEEP),
        lambda: _json_record(DEEP.encode()),
        lambda: actions_from_json(DEEP),
        lambda: compile_entries(DEEP),
        lambda: parse_json(DEEP),
        lambda: catalyst.from_json(DEEP),
        lambda: parse_predicate("(" * 50_000 + "a = 1" + ")" * 50_000),
    ],
)
def test_endless_nesting_is_an_error_of_ours(read: Callable[[], Any]) -> None:
    with pytest.raises(IndexTablesError):
        read()


def test_endless_nesting_of_data_means_nothing() -> None:
    assert count_in_stats(DEEP_OBJECT, "nullCount", "a") == UNKNOWN
    assert load_json(DEEP) == DEEP


def test_every_json_that_is_read_is_guarded() -> None:
    """By a handler around it, or because the text comes from this process."""
    bare, used = [], set()
    for path in sorted(PACKAGE.rglob("*.py")):
        module = str(path.relative_to(PACKAGE))
        for name, call, guarded in json_calls(ast.parse(path.read_text("utf-8"))):
            trusted = {f"{module}::{name}", module} & set(TRUSTED)
            used |= trusted
            if not guarded and not trusted:
                bare.append(f"{module}:{call.lineno} {name}")
    assert bare == []
    assert used == set(TRUSTED)


def json_calls(tree: ast.AST) -> list[tuple[str, ast.Call, bool]]:
    """(function, call, is a RecursionError caught around it) of each ``json.loads``."""
    found: list[tuple[str, ast.Call, bool]] = []

    def visit(node: ast.AST, name: str, guarded: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            name, guarded = node.name, False
        if isinstance(node, ast.Try):
            caught = any("RecursionError" in ast.unparse(h.type) for h in node.handlers if h.type)
            for inner in node.body:
                visit(inner, name, guarded or caught)
            for rest in (*node.handlers, *node.orelse, *node.finalbody):
                visit(rest, name, guarded)
            return
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.loads", "json.load"):
            found.append((name, node, guarded))
        for child in ast.iter_child_nodes(node):
            visit(child, name, guarded)

    visit(tree, "", False)
    return found
