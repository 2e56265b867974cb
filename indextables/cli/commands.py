"""The commands: reading a table first, then looking after it. Each is a thin call of a verb."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from indextables.cli.app import EXIT_DAMAGE, Context, cli
from indextables.sql import commands as c

PATH = click.argument("path")
VERSION = click.option("--version", "-v", "at", type=int, default=None, help="At this version.")
TIMESTAMP = click.option("--timestamp", "when", default=None, help="At this moment.")
DRY_RUN = click.option("--dry-run", is_flag=True, help="Only say what would be done.")
WHERE = click.option("--where", default=None, help="Predicate on partition columns.")


def _run(obj: Context, command: c.Command) -> None:
    obj.emit_table(_result(obj, command))


def _result(obj: Context, command: c.Command) -> Any:
    """The rows of a command, run as it is: a name is never spelled as SQL and read again."""
    from indextables.sql.executor import Session, run_command

    return run_command(command, Session(None, obj.storage_options, obj.settings))


def _named(path: str) -> c.TableName:
    return c.TableName(path=path)


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
            "rows": f.num_records,
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
@click.option("--columns", default=None, help="Comma-separated columns.")
@click.pass_obj
def head(
    obj: Context,
    path: str,
    predicate: str | None,
    at: int | None,
    columns: str | None,
) -> None:
    """Rows that match a predicate (10 unless --limit says otherwise)."""
    names = [c.strip() for c in columns.split(",")] if columns else None
    table = obj.table(path, at)
    obj.emit_table(table.to_arrow(predicate, names, 10 if obj.limit is None else obj.limit))


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
@click.option("--columns", default=None, help="Comma-separated columns.")
@click.option("--fields", default=None, help="Columns to search where the query names none.")
@click.pass_obj
def search(
    obj: Context,
    path: str,
    query: str,
    at: int | None,
    columns: str | None,
    fields: str | None,
) -> None:
    """The best rows for a search string, with their scores (10 unless --limit)."""
    limit = 10 if obj.limit is None else obj.limit
    names = [c.strip() for c in columns.split(",")] if columns else None
    found = [c.strip() for c in fields.split(",")] if fields else None
    obj.emit_table(obj.table(path, at).search(query, names, limit, fields=found))


@cli.command()
@PATH
@click.pass_obj
def stats(obj: Context, path: str) -> None:
    """Which columns have statistics, in how many splits."""
    _run(obj, c.DescribeStatsCoverage(_named(path)))


# -- looking after it ----------------------------------------------------------------------------


@cli.command()
@PATH
@click.pass_context
def doctor(ctx: click.Context, path: str) -> None:
    """Look for damage; exit code 3 when there is some."""
    found = ctx.obj.table(path).doctor()
    ctx.obj.emit([asdict(f) for f in found])
    if any(f.severity == "error" for f in found):
        ctx.exit(EXIT_DAMAGE)


@cli.command()
@PATH
@WHERE
@click.option("--target-size", default=None, metavar="SIZE", help="For example 1G.")
@click.option("--max-dest-splits", type=int, default=None)
@click.option("--max-source-splits", type=int, default=None)
@click.pass_obj
def merge(
    obj: Context,
    path: str,
    where: str | None,
    target_size: str | None,
    max_dest_splits: int | None,
    max_source_splits: int | None,
) -> None:
    """Merge small splits into larger ones."""
    from indextables.config import parse_size
    from indextables.maintenance.rows import as_dict

    try:
        size = None if target_size is None else parse_size(target_size)
    except ValueError:
        raise click.BadParameter(
            f"'{target_size}' is not a size", param_hint="--target-size"
        ) from None
    result = obj.table(path).merge(
        where=where,
        target_size=size,
        max_dest_splits=max_dest_splits,
        max_source_splits=max_source_splits,
    )
    obj.emit([as_dict(result)])


@cli.command()
@PATH
@click.option("--older-than-hours", type=int, default=None)
@click.option("--log-retention-hours", type=int, default=None)
@DRY_RUN
@click.pass_obj
def purge(
    obj: Context,
    path: str,
    older_than_hours: int | None,
    log_retention_hours: int | None,
    dry_run: bool,
) -> None:
    """Delete files no readable version needs."""
    from indextables.maintenance.rows import as_dict

    result = obj.table(path).purge(
        older_than_hours=older_than_hours,
        log_retention_hours=log_retention_hours,
        dry_run=dry_run,
    )
    obj.emit([as_dict(result)])


@cli.command()
@PATH
@click.pass_obj
def checkpoint(obj: Context, path: str) -> None:
    """Write a checkpoint of the newest version."""
    _run(obj, c.Checkpoint(_named(path)))


@cli.command()
@PATH
@click.pass_obj
def compact(obj: Context, path: str) -> None:
    """Write a checkpoint with its manifests rewritten."""
    _run(obj, c.Checkpoint(_named(path), compact=True))


@cli.command("drop-partitions")
@PATH
@click.argument("predicate")
@click.pass_obj
def drop_partitions(obj: Context, path: str, predicate: str) -> None:
    """Remove the partitions that match."""
    from indextables.maintenance.rows import as_dict

    obj.emit([as_dict(obj.table(path).drop_partitions(predicate))])


@cli.command()
@PATH
@click.argument("predicate", required=False)
@click.option("--all", "everything", is_flag=True, help="Delete all rows.")
@DRY_RUN
@click.pass_obj
def delete(obj: Context, path: str, predicate: str | None, everything: bool, dry_run: bool) -> None:
    """Delete the rows that match, or all of them with --all."""
    from indextables.maintenance.rows import as_dict

    if everything == (predicate is not None):
        raise click.UsageError("give a predicate, or --all to delete all rows")
    table = obj.table(path)
    found = table.truncate(dry_run) if everything else table.delete(predicate, dry_run=dry_run)
    obj.emit([as_dict(found)])


@cli.command()
@PATH
@click.argument("version", type=int)
@click.pass_obj
def restore(obj: Context, path: str, version: int) -> None:
    """Make the table what it was at a version."""
    from indextables.maintenance.rows import as_dict

    obj.emit([as_dict(obj.table(path).restore(version))])


@cli.command("truncate-time-travel")
@PATH
@DRY_RUN
@click.pass_obj
def truncate(obj: Context, path: str, dry_run: bool) -> None:
    """Forget old versions of the log."""
    from indextables.maintenance.rows import as_dict

    obj.emit([as_dict(obj.table(path).truncate_time_travel(dry_run=dry_run))])


@cli.command()
@click.argument("source")
@click.argument("target")
@click.pass_obj
def repair(obj: Context, source: str, target: str) -> None:
    """Write a fresh log at TARGET of the splits of SOURCE that still exist."""
    _run(obj, c.RepairLog(source, target))


@cli.command()
@click.argument("text")
@click.pass_obj
def sql(obj: Context, text: str) -> None:
    """Run one of our SQL commands."""
    from indextables.sql.parser import parse

    _run(obj, parse(text))


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


@cli.group()
def xref() -> None:
    """Cross-references: which splits hold a term."""


@xref.command("build")
@PATH
@WHERE
@click.option("--force", is_flag=True, help="Rebuild also what is up to date.")
@DRY_RUN
@click.pass_obj
def xref_build(obj: Context, path: str, where: str | None, force: bool, dry_run: bool) -> None:
    """Build or update the cross-references."""
    rows = obj.table(path).build_xref(where, force, dry_run)
    obj.emit([asdict(r) for r in rows], "nothing to cross-reference")


@xref.command("list")
@PATH
@click.pass_obj
def xref_list(obj: Context, path: str) -> None:
    """The cross-references, live and retired, and their coverage."""
    _run(obj, c.DescribeLog(_named(path), xrefs=True))


@xref.command("coverage")
@PATH
@click.pass_obj
def xref_coverage(obj: Context, path: str) -> None:
    """How many splits are covered."""
    found = obj.table(path).xref_coverage()
    obj.emit([{**asdict(found), "uncovered": found.uncovered, "percent": found.percent}])


@cli.group()
def index() -> None:
    """Column indexes: value to row numbers."""


@index.command("create")
@PATH
@click.argument("column")
@click.pass_obj
def index_create(obj: Context, path: str, column: str) -> None:
    """Define an index and build it for all splits."""
    _run(obj, c.CreateIndex(_named(path), (column,)))


@index.command("drop")
@PATH
@click.argument("column")
@click.pass_obj
def index_drop(obj: Context, path: str, column: str) -> None:
    """Forget an index."""
    _run(obj, c.DropIndex(_named(path), (column,)))


@index.command("build")
@PATH
@DRY_RUN
@click.pass_obj
def index_build(obj: Context, path: str, dry_run: bool) -> None:
    """Build the defined indexes where they are missing."""
    _run(obj, c.IndexSplits(_named(path), dry_run=dry_run))


@index.command("list")
@PATH
@click.pass_obj
def index_list(obj: Context, path: str) -> None:
    """The defined indexes and their coverage; --wide and --json: split by split."""
    found = _result(obj, c.DescribeIndexes(_named(path)))
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
