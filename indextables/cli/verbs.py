"""The verbs as commands, derived from their classes: arguments and options from the fields.

A required field is an argument, one with a default an option. Its kind is that of the grammar. A
command of two words belongs to a group. What a screen needs beyond that (an exit code, a summary)
is written out in ``cli.commands``; such names are left alone here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field
from typing import Any

import click

from indextables.cli.app import Command, Context, Group, cli, pairs
from indextables.verbs import REGISTRY, Target, Verb, as_table, invoke
from indextables.verbs.grammar import slots

GROUPS = {
    "cache": "Caches of this machine.",
    "companion": "Indexes over Delta, Iceberg and Parquet tables of others.",
    "column": "Columns of a table: add, rename, drop, widen.",
    "index": "Column indexes: value to row numbers.",
    "properties": "Properties of a table, and its protocol.",
    "xref": "Cross-references: which splits hold a term.",
}


class Size(click.ParamType):  # type: ignore[type-arg]
    """``512M``, ``1G`` or bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from indextables.config import parse_size

        try:
            return parse_size(value)
        except ValueError:
            self.fail(f"'{value}' is not a size", param, ctx)


def listed(ctx: click.Context, param: click.Parameter, value: str | None) -> list[str] | None:
    """Names with commas between them."""
    return None if value is None else [part.strip() for part in value.split(",")]


def paired(ctx: click.Context, param: click.Parameter, value: str | None) -> dict[str, str] | None:
    """``a=b,c=d``."""
    if value is None:
        return None
    parts = [part.partition("=") for part in value.split(",")]
    if not all(mark for _, mark, _ in parts):
        raise click.BadParameter("write a=b,c=d", ctx, param)
    return {key.strip(): text.strip() for key, _, text in parts}


TYPES: dict[str, Any] = {"int": int, "hours": int, "seconds": int, "size": Size()}
MANY = {
    "names": "NAME...",
    "pairs": "KEY=VALUE...",
    "assignments": "COLUMN=EXPRESSION...",
}
METAVARS = {
    "source": "SOURCE",
    "predicate": "PREDICATE",
    "names": "NAME,...",
    "pairs": "KEY=VALUE,...",
    "modes": "COLUMN=MODE,...",
    "size": "SIZE",
    "place": "TARGET",
}


def run(obj: Context, verb: Verb[Any], path: str | None = None) -> Any:
    """The rows of a verb; names are never pasted into SQL text."""
    return as_table(verb, result(obj, verb, path))


def result(obj: Context, verb: Verb[Any], path: str | None = None) -> Any:
    """What a verb returns."""
    from indextables.config import Config

    config = Config.of(obj.settings)
    return invoke(verb, Target(path, config=config, storage_options=obj.storage_options))


def command(kind: type[Verb[Any]]) -> click.Command:
    """The command of a verb."""

    @click.pass_obj
    def call(obj: Context, /, path: str | None = None, **given: Any) -> None:
        values = {name: value for name, value in given.items() if value is not None}
        obj.emit_table(run(obj, kind(**values), path))

    params: list[click.Parameter] = []
    kinds = slots(kind.SQL)
    if "table" in kinds:
        shown = "SOURCE" if kinds["table"] == "log" else None
        needed = "[FOR {table" not in kind.SQL
        params.append(click.Argument(["path"], required=needed, metavar=shown))
    for field in kind.parameters():
        if field.metadata["shell"]:
            params.append(_parameter(field, kinds.get(field.name, "flag")))
    return Command(kind.CLI.split()[-1], callback=call, params=params, help=kind.__doc__)


def _parameter(field: Field[Any], kind: str) -> click.Parameter:
    required = field.default is MISSING
    if required or field.metadata["argument"]:
        many = kind in ("names", "pairs", "assignments")
        return click.Argument(
            [field.name],
            required=required,
            nargs=-1 if many else 1,
            type=TYPES.get(kind),
            callback=pairs if kind in ("pairs", "assignments") else None,
            metavar=MANY.get(kind, METAVARS.get(kind)),
        )
    return _option(field, kind)


def _option(field: Field[Any], kind: str) -> click.Option:
    name = "--" + field.name.replace("_", "-")
    doc = field.metadata["doc"]
    if kind == "flag":
        both = f"{name}/--no-{name[2:]}" if field.default else name
        return click.Option([both, field.name], is_flag=True, default=field.default, help=doc)
    kinds = click.Choice(kind.split("|")) if "|" in kind else TYPES.get(kind)
    several: dict[str, Callable[..., Any]] = {"names": listed, "pairs": paired, "modes": paired}
    return click.Option(
        [name, field.name],
        type=kinds,
        help=doc,
        callback=several.get(kind),
        metavar=METAVARS.get(kind),
    )


def group(name: str) -> click.Group:
    """A group of commands, made when it is first asked for."""
    known = cli.commands.get(name)
    if not isinstance(known, click.Group):
        known = Group(name, help=GROUPS[name])
        cli.add_command(known)
    return known


def add_commands() -> None:
    """Add what is not written out already."""
    for kind in REGISTRY:
        *first, last = kind.CLI.split()
        home = group(first[0]) if first else cli
        if last not in home.commands:
            home.add_command(command(kind))
