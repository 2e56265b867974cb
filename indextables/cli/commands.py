"""The commands that are written out: reading a table, and verbs that need more than their rows.

All other verbs become commands by themselves (``cli.verbs``).
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from indextables.cli.app import EXIT_DAMAGE, Context, cli
from indextables.cli.verbs import add_commands, group, listed, result, run
from indextables.verbs.indexes import DescribeIndexes
from indextables.verbs.looking import Doctor
from indextables.verbs.splits import Delete, Truncate

PATH = click.argument("path")
VERSION = click.option("--version", "-v", "at", type=int, default=None, help="At this version.")
TIMESTAMP = click.option("--timestamp", "when", default=None, help="At this moment.")
COLUMNS = click.option("--columns", callback=listed, help="Comma-separated columns.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
# -- reading -------------------------------------------------------------------------------------


@cli.command()
@PATH
@VERSION
@TIMESTAMP
@click.pass_obj
def describe(obj: Context, path: str, at: int | None, when: str | None) -> None:
    """What the table is: version, splits, rows, columns."""
    table = obj.table(path, at, when)
    if not obj.as_json:
        obj.say(str(table))
        return
    s = table.snapshot
    facts = {
        "path": table.path,
        "version": s.version,
        "splits": s.num_files,
        "rows": s.num_rows,
        "bytes": s.num_bytes,
        "partition_columns": list(s.partition_columns),
        "columns": _columns(table),
        "xrefs": len(s.xrefs),
    }
    obj.emit([facts])


def _columns(table: Any) -> list[dict[str, Any]]:
    from indextables.types import type_name

    mapping = table.mapping
    rows = []
    for field in table.schema:
        known = mapping.get(field.name)
        if field.name in table.partition_columns:
            indexed = "partition"
        elif known is None:
            indexed = "no"
        elif known.type == "text":
            indexed = f"text ({known.tokenizer})" if known.is_tokenized else "exact"
        else:
            indexed = known.type
        rows.append(
            {
                "column": field.name,
                "type": type_name(field.type),
                "nullable": field.nullable,
                "indexed": indexed,
            }
        )
    return rows


@cli.command()
@PATH
@VERSION
@click.pass_obj
def schema(obj: Context, path: str, at: int | None) -> None:
    """The columns, their types, and how each is indexed."""
    obj.emit(_columns(obj.table(path, at)))


@cli.command()
@PATH
@click.pass_obj
def history(obj: Context, path: str) -> None:
    """What was committed, newest first."""
    from indextables.log.read.moments import moment_of, moment_text

    rows = []
    for entry in obj.table(path).history(obj.limit):
        moment = moment_of(entry.timestamp) or moment_text(entry.timestamp)
        rows.append(
            {
                "version": entry.version,
                "time": moment,
                "operation": entry.operation,
                "added": entry.num_added,
                "removed": entry.num_removed,
                "parameters": entry.parameters or None,
            }
        )
    obj.emit(rows)


@cli.command()
@PATH
@VERSION
@click.pass_obj
def splits(obj: Context, path: str, at: int | None) -> None:
    """The live splits."""
    rows = [
        {
            "path": f.path,
            "rows": f.num_live,
            "bytes": f.size,
            "partition": dict(f.partition_values) or None,
        }
        for f in obj.table(path, at).snapshot.files()[: obj.limit]
    ]
    obj.emit(rows, "no splits")


@cli.command()
@PATH
@click.argument("predicate", required=False)
@VERSION
@COLUMNS
@click.pass_obj
def head(
    obj: Context, path: str, predicate: str | None, at: int | None, columns: list[str] | None
) -> None:
    """Rows that match a predicate (10 unless --limit says otherwise)."""
    table = obj.table(path, at)
    obj.emit_table(table.to_arrow(predicate, columns, 10 if obj.limit is None else obj.limit))


@cli.command()
@PATH
@click.argument("predicate", required=False)
@VERSION
@click.pass_obj
def count(obj: Context, path: str, predicate: str | None, at: int | None) -> None:
    """How many rows match."""
    rows = obj.table(path, at).count(predicate)
    if obj.as_json:
        obj.emit([{"count": rows}])
    else:
        obj.say(str(rows))


@cli.command()
@PATH
@click.argument("predicate")
@VERSION
@click.option("--format", "shape", type=click.Choice(["text", "json", "html"]), default="text")
@click.option("--why", default=None, metavar="SPLIT", help="Why this split was kept or dropped.")
@click.pass_obj
def explain(
    obj: Context, path: str, predicate: str, at: int | None, shape: str, why: str | None
) -> None:
    """Which splits a predicate needs, and why."""
    plan = obj.table(path, at).plan(predicate)
    if why:
        obj.say(plan.why(why))
    elif obj.as_json or shape == "json":
        from indextables.cli.output import show_json

        show_json(plan.explain("json"))
    elif shape == "html":
        from indextables.cli.output import show

        show(plan.explain("html"))
    else:
        obj.say(plan.explain("text"))


@cli.command()
@PATH
@click.argument("query")
@VERSION
@COLUMNS
@click.option("--fields", callback=listed, help="Columns to search where the query names none.")
@click.option("--offset", type=click.IntRange(min=0), default=0, help="Skip this many rows.")
@click.option("--literal", is_flag=True, help="Search for the text as it stands.")
@click.pass_obj
def search(
    obj: Context,
    path: str,
    query: str,
    at: int | None,
    columns: list[str] | None,
    fields: list[str] | None,
    offset: int,
    literal: bool,
) -> None:
    """The best rows for a search string, with their scores (10 unless --limit)."""
    limit = 10 if obj.limit is None else obj.limit
    how: dict[str, Any] = {"fields": fields, "offset": offset, "literal": literal}
    obj.emit_table(obj.table(path, at).search(query, columns, limit, **how))


# -- verbs ---------------------------------------------------------------------------------------


@cli.command()
@PATH
@click.option("--checksums/--no-checksums", default=True, help="Read every byte of every split.")
@click.pass_context
def doctor(ctx: click.Context, path: str, checksums: bool) -> None:
    """Look for damage; exit code 3 when there is some."""
    found = result(ctx.obj, Doctor(checksums), path)
    ctx.obj.emit([asdict(f) for f in found])
    if any(f.severity == "error" for f in found):
        ctx.exit(EXIT_DAMAGE)


@cli.command()
@PATH
@click.argument("predicate", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete all rows.")
@DRY_RUN
@click.pass_obj
def delete(obj: Context, path: str, predicate: str | None, everything: bool, dry_run: bool) -> None:
    """Delete the rows that match, or all of them with --all."""
    if everything == (predicate is not None):
        raise click.UsageError("give a predicate, or --all to delete all rows")
    verb = Truncate(dry_run) if everything else Delete(predicate, dry_run)
    obj.emit_table(run(obj, verb, path))


@cli.command()
@click.argument("text")
@click.pass_obj
def sql(obj: Context, text: str) -> None:
    """Run a SELECT statement or one of our SQL commands.

    SELECT needs DuckDB; tables are paths in quotes:
    SELECT host, count(*) FROM 'events' WHERE message TEXTSEARCH 'timeout' GROUP BY host
    """
    from indextables.sql import run

    found = run(None, text, storage_options=obj.storage_options, options=obj.settings)
    obj.emit_table(found)


@cli.command()
@click.argument("words", nargs=-1)
@click.pass_obj
def config(obj: Context, words: tuple[str, ...]) -> None:
    """The settings and their defaults; WORDS narrow the list."""
    from indextables.cli.output import text
    from indextables.config import SETTINGS

    rows = [
        {"key": s.full_key, "type": s.kind, "default": s.default, "meaning": s.doc}
        for s in SETTINGS
        if all(w.lower() in s.full_key.lower() for w in words)
    ]
    if obj.as_json or obj.wide or not rows:
        obj.emit(rows, "no such setting")
        return
    for row in rows[: obj.limit]:
        obj.say(f"{row['key']} ({row['type']}, {text(row['default'])})\n  {row['meaning']}")


@group("xref").command("coverage")
@PATH
@click.pass_obj
def xref_coverage(obj: Context, path: str) -> None:
    """How many splits are covered."""
    found = obj.table(path).xref_coverage()
    obj.emit([{**asdict(found), "uncovered": found.uncovered, "percent": found.percent}])


@group("index").command("list")
@PATH
@click.pass_obj
def index_list(obj: Context, path: str) -> None:
    """The defined indexes and their coverage; --wide and --json: split by split."""
    found = run(obj, DescribeIndexes(), path)
    if obj.as_json or obj.wide:
        obj.emit_table(found)
        return
    rows: dict[str, dict[str, int]] = {}
    for row in found.to_pylist():
        one = rows.setdefault(row["column"], dict.fromkeys(("splits", "indexed", "size_bytes"), 0))
        one["splits"] += 1
        one["indexed"] += row["index_path"] is not None
        one["size_bytes"] += row["size_bytes"] or 0
    obj.emit([{"column": column, **sums} for column, sums in rows.items()], "no indexes")


add_commands()
