"""The newest rows of a table, and those that come."""

from __future__ import annotations

import sys

import click

from indextables.cli.app import Context, cli
from indextables.cli.verbs import listed


@cli.command()
@click.argument("path")
@click.argument("predicate", required=False)
@click.option("--columns", callback=listed, help="Comma-separated columns.")
@click.option("--follow", "-f", is_flag=True, help="Go on with the rows of new versions.")
@click.pass_obj
def tail(
    obj: Context, path: str, predicate: str | None, columns: list[str] | None, follow: bool
) -> None:
    """The newest rows that match a predicate (10 unless --limit says otherwise)."""
    from indextables.table.tailing import Tail

    found = Tail(obj.table(path), predicate, columns)
    obj.emit_table(found.last(10 if obj.limit is None else obj.limit))
    sys.stdout.flush()
    if follow:
        unlimited = Context(obj.storage_options, obj.settings, obj.as_json, obj.wide)
        for rows in found.follow():
            unlimited.emit_table(rows)
            sys.stdout.flush()
