"""Every verb of the registry: called by SQL, as a method and on the command line, and documented.

Nothing is listed here verb by verb: statements are spelled from the grammar, arguments from what
the statement was parsed to, and the pages are searched for what the classes say.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.errors import ProtocolError
from indextables.log.log import TransactionLog
from indextables.maintenance.rows import as_dict
from indextables.sql.parser import parse
from indextables.table.table import Table
from indextables.table.verbs import Verbs
from indextables.verbs import REGISTRY, Target, Verb, as_table, companions, invoke
from indextables.verbs.grammar import Choice, Flag, Node, Slot, compiled, shown, slots

DOCS = Path(__file__).parents[2] / "docs"
Kind = type[Verb[Any]]
each = pytest.mark.parametrize("kind", REGISTRY, ids=lambda kind: kind.__name__)
STANDINS = {
    "predicate": "m = 9", "int": "1", "hours": "7 DAYS", "size": "1G", "string": "'2026-01-01'",
    "name": "any_name", "type": "bigint", "names": "(v)", "pairs": "('a' = 'b')",
    "assignments": "v = 'z'", "purge": "(PURGE)",
    "fuse8|fuse16": "FUSE16", "modes": "('v': 'text')", "seconds": "5 SECONDS",
    "delta|iceberg|parquet": "PARQUET", "disabled|parquet_only|hybrid": "DISABLED",
}  # fmt: skip


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with partitions, versions, a cross-reference and an index of ``id``."""
    path = tmp_path_factory.mktemp("registry") / "table"
    for i in range(2):
        data = pa.table({"id": [i, i + 1], "m": [9, 10], "v": ["x", "y"]})
        indextables.write(data, str(path), partition_by=["m"])
    table = indextables.open(str(path))
    table.create_index("id")
    table.build_xref()
    table.set_properties({"a": "b", "v": "w"})
    return path


@pytest.fixture
def path(request: pytest.FixtureRequest, template: Path, tmp_path: Path) -> str:
    """A table that a verb can work on: a companion, for verbs of those."""
    kind = request.node.callspec.params["kind"]
    if kind.__module__ != companions.__name__:
        return str(shutil.copytree(template, tmp_path / "table"))
    (tmp_path / "table-source").mkdir()
    pq.write_table(pa.table({"id": [1], "v": ["x"]}), tmp_path / "table-source" / "a.parquet")
    indextables.index(tmp_path / "table-source", tmp_path / "table", format="parquet")
    return str(tmp_path / "table")


def statement(kind: Kind, path: str, everything: bool = False) -> str:
    """A statement by the grammar, with all that may be left out or without."""
    return " ".join(_spelled(compiled(kind.SQL), path, everything))


def _spelled(nodes: Sequence[Node], path: str, everything: bool) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, Choice):
            may_go = () in node.ways and not everything
            yield from _spelled(() if may_go else node.ways[0], path, everything)
        elif isinstance(node, Flag):
            yield from (word.text for word in node.words)
        elif isinstance(node, Slot):
            places = {
                "table": f"'{path}'", "path": f"'{path}'", "log": f"'{path}/_transaction_log'",
                "place": f"'{path}-new/_transaction_log'", "source": f"'{path}-source'",
            }  # fmt: skip
            yield {**places, **STANDINS}[node.kind]
        else:
            yield node.text


def fitting(kind: Kind, path: str) -> str:
    """A statement that can be run: what it drops or changes has to be there."""
    text = statement(kind, path)
    if kind.CLI in ("column rename", "column drop", "column type"):
        text = text.replace("COLUMN any_name", "COLUMN id")
    return text.replace("(v)", "(id)") if kind.CLI == "index drop" else text


def example(kind: Kind, path: str) -> Verb[Any]:
    """The verb with what it needs."""
    return parse(fitting(kind, path)).verb


def given(verb: Verb[Any]) -> dict[str, Any]:
    """The parameters that are not left at their default."""
    found = {f.name: (f, getattr(verb, f.name)) for f in type(verb).parameters()}
    return {name: value for name, (f, value) in found.items() if value != f.default}


def satisfied(kind: Kind, result: Any) -> pa.Table:
    """The rows of a result, checked against the columns that the verb promises."""
    for row in result if isinstance(result, list) else [result]:
        if is_dataclass(row):
            assert list(as_dict(row)) == kind.schema().names
    rows = as_table(kind.__new__(kind), result)
    rows.validate(full=True)
    assert rows.schema == kind.schema()
    return rows


# -- SQL -------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("everything", [False, True], ids=["shortest", "longest"])
def test_its_grammar_is_understood(kind: Kind, everything: bool) -> None:
    verb = parse(statement(kind, "p", everything)).verb
    assert type(verb) is kind
    if everything:
        alternatives = {"timestamp", "after"}
        named = set(slots(kind.SQL)) - {"table", "-"} - alternatives
        assert given(verb).keys() == named


@each
def test_its_grammar_names_fields_only(kind: Kind) -> None:
    named = set(slots(kind.SQL)) - {"table", "-"}
    known = {f.name for f in kind.parameters()}
    assert named <= known
    flags = {f.name for f in kind.parameters() if isinstance(f.default, bool)}
    assert known - named <= flags, "the command line would not know what kind it is"


@each
def test_it_runs_as_sql(kind: Kind, path: str) -> None:
    text = fitting(kind, path)
    before = contents(path)
    found = indextables.sql(None, text)
    found.validate(full=True)
    assert found.schema == kind.schema()
    assert kind.MUTATES or contents(path) == before


def contents(path: str) -> dict[str, bytes]:
    files = (p for p in Path(path).rglob("*") if p.is_file())
    return {str(p.relative_to(path)): p.read_bytes() for p in files}


# -- methods ---------------------------------------------------------------------------------------


@each
def test_it_runs_as_a_method(kind: Kind, path: str) -> None:
    result = getattr(indextables.open(path), kind.METHOD)(**given(example(kind, path)))
    satisfied(kind, result)


@each
def test_its_method_says_what_it_takes_and_gives(kind: Kind) -> None:
    method = getattr(Table, kind.METHOD)
    signature = inspect.signature(method)
    assert str(signature.return_annotation).split(".")[-1] not in ("Any", "_empty")
    assert inspect.getdoc(method)
    assert "args" not in signature.parameters
    if method.__qualname__ == f"Table.{kind.METHOD}":
        defaults = {n: p.default for n, p in signature.parameters.items() if n != "self"}
        own = {f.name: f.default for f in fields(kind)}
        assert defaults == {
            n: inspect.Parameter.empty if d is MISSING else d for n, d in own.items()
        }


def test_no_method_takes_just_anything() -> None:
    for name, method in vars(Verbs).items():
        if callable(method) and not name.startswith("_"):
            signature = inspect.signature(method)
            assert str(signature.return_annotation) not in ("Any", "list[Any]"), name
            kinds = {p.kind for p in signature.parameters.values()}
            assert inspect.Parameter.VAR_KEYWORD not in kinds, name


SNIPPET = """
from indextables.table.table import Table
from indextables.maintenance.rows import MergeResult

def good(table: Table) -> MergeResult:
    return table.merge(where="x = 1", target_size=3)

def bad(table: Table) -> None:
    table.merge(no_such_option=1)
    table.purge(dry_run="yes")
    table.delete()
    wrong: int = table.restore(3)
"""


@pytest.mark.slow
def test_type_checkers_know_the_methods(tmp_path: Path) -> None:
    file = tmp_path / "snippet.py"
    file.write_text(SNIPPET)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(file)]
    root = Path(__file__).parents[2]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=root, timeout=600, check=False
    )
    found = [int(n) for n in re.findall(r"snippet\.py:(\d+): error", done.stdout)]
    assert found == [9, 10, 11, 12], done.stdout


# -- the command line ------------------------------------------------------------------------------


def command_of(kind: Kind) -> click.Command:
    found: Any = cli
    for word in kind.CLI.split():
        found = found.commands[word]
    assert isinstance(found, click.Command)
    return found


def words(kind: Kind, path: str) -> list[str]:
    """A command line, from the arguments the command has."""
    places = {"table": path, "path": path, "log": f"{path}/_transaction_log"}
    found = kind.CLI.split()
    if "table" in slots(kind.SQL):
        found.append(places[slots(kind.SQL)["table"]])
    for value in given(example(kind, path)).values():
        if isinstance(value, dict):
            found += [f"{key}={item}" for key, item in value.items()]
        else:
            found += map(str, value) if isinstance(value, tuple) else [str(value)]
    return found


@each
def test_it_runs_on_the_command_line(kind: Kind, path: str) -> None:
    done = CliRunner().invoke(cli, ["--json", *words(kind, path)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert all(list(row) == kind.schema().names for row in rows)


@each
def test_every_field_is_on_the_command_line(kind: Kind) -> None:
    there = {p.name for p in command_of(kind).params}
    asked = {f.name for f in kind.parameters() if f.metadata["shell"]}
    assert asked - there <= {"where"}, "the handwritten ones may call it a predicate"


# -- the gate --------------------------------------------------------------------------------------


@each
def test_the_gate_comes_first(kind: Kind, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything else is done, and for those that change a table only."""
    happened: list[str] = []

    def refuse(log: TransactionLog) -> None:
        raise ProtocolError("this release must not write the table")

    monkeypatch.setattr(TransactionLog, "writable_snapshot", refuse)
    verb = example(kind, path)
    monkeypatch.setattr(kind, "apply", lambda self, on: happened.append("applied"))
    if kind.MUTATES and kind.gate is Verb.gate:
        with pytest.raises(ProtocolError):
            invoke(verb, Target(path))
        assert happened == []
    else:
        invoke(verb, Target(path))
        assert happened == ["applied"]


def test_two_verbs_ask_later() -> None:
    """A log that is damaged, or not there yet, cannot be asked; others are, see
    ``test_maintenance_gate``."""
    own = [kind.__name__ for kind in REGISTRY if kind.gate is not Verb.gate]
    assert own == ["BuildCompanion", "RepairLog"]


# -- documentation ---------------------------------------------------------------------------------


@each
def test_it_is_described(kind: Kind) -> None:
    assert (kind.__doc__ or "").strip().endswith(".")
    assert all(field.metadata["doc"].endswith(".") for field in kind.parameters())


@each
def test_the_sql_page_has_its_grammar_and_columns(kind: Kind) -> None:
    page = (DOCS / "sql.md").read_text()
    line = f"\n{shown(kind.SQL)}\n"
    assert line in page, f"add to docs/sql.md: {line}"
    section = next(s for s in page.split("\n## ") if line in s)
    listed = re.findall(r"`(\w+)`", section.rpartition("\nColumns:")[2])
    assert listed == list(_names(kind.schema()))


def _names(schema: pa.Schema | pa.StructType) -> Iterator[str]:
    for field in schema:
        yield field.name
        if pa.types.is_struct(field.type):
            yield from _names(field.type)


@each
def test_the_page_of_the_command_line_has_its_command(kind: Kind) -> None:
    command = command_of(kind)
    context = click.Context(command)
    arguments = [p.make_metavar(context) for p in command.params if isinstance(p, click.Argument)]
    usage = " ".join([kind.CLI, *arguments])
    rows = [r for r in (DOCS / "cli.md").read_text().splitlines() if f"`{usage}`" in r]
    assert len(rows) == 1, f"`{usage}` has no row in docs/cli.md"
    for option in (p for p in command.params if isinstance(p, click.Option)):
        assert f"`{option.opts[0]}" in rows[0], f"{option.opts[0]} is not in the row of {usage}"


def test_names_are_used_once() -> None:
    for names in (
        [k.SQL for k in REGISTRY],
        [k.CLI for k in REGISTRY],
        [k.METHOD for k in REGISTRY],
    ):
        assert len(names) == len(set(names))
