"""Commands for the desk: files into tables, and a prompt for SQL."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from indextables.cli.app import Context, cli
from indextables.cli.verbs import listed

FORMATS = ("csv", "ndjson", "parquet", "text")


@cli.command()
@click.argument("files", nargs=-1, required=True)
@click.argument("table")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Default: by file name.")
@click.option("--text", callback=listed, help="Columns to tokenise, comma-separated.")
@click.option("--json-columns", callback=listed, help="Columns that hold JSON.")
@click.option("--ip", callback=listed, help="Columns that hold IP addresses.")
@click.option("--partition-by", callback=listed, help="Partition columns of a new table.")
@click.option("--delimiter", default=None, help="Of CSV; default: a comma, a tab for .tsv.")
@click.option(
    "--bad-lines",
    type=click.Choice(["stop", "skip", "keep"]),
    default="stop",
    help="Lines that cannot be read: stop, skip and count, or keep in column _raw.",
)
@click.option("--overwrite", is_flag=True, help="Replace the rows of the table.")
@click.option("--follow", is_flag=True, help="Go on with the lines that are added to the files.")
@click.pass_obj
def ingest(obj: Context, /, files: tuple[str, ...], table: str, **given: Any) -> None:
    """Bring FILES (CSV, JSON lines, Parquet or text) into TABLE, creating it if needed."""
    from indextables.table.ingest import Ingest
    from indextables.table.interchange.files import FileFormat

    how = FileFormat(given["form"], given["bad_lines"], given["delimiter"])
    work = Ingest(
        table,
        given["partition_by"] or (),
        "overwrite" if given["overwrite"] else "append",
        given["text"] or (),
        given["json_columns"] or (),
        given["ip"] or (),
        obj.storage_options,
        obj.settings,
    )
    if not given["follow"]:
        obj.emit([asdict(work.files(files, how))])
        return
    for result in work.follow(files, how):
        obj.emit([asdict(result)])


@cli.command()
@click.pass_obj
def shell(obj: Context) -> None:
    """A prompt for SQL: SELECT over tables in quotes, and our commands.

    Statements end with a semicolon. The words of earlier sessions come back with the arrow keys,
    words of SQL and of our commands with the tab key; leave with Ctrl-D or \\q.
    """
    from indextables.cli.prompt import Prompt

    history = Path(os.environ.get("INDEXTABLES_HISTORY", Path.home() / ".indextables_history"))
    Prompt(obj, history, sys.stdin.isatty()).run()


@cli.command()
@click.argument("paths", nargs=-1, required=True)
@click.pass_obj
def mcp(obj: Context, paths: tuple[str, ...]) -> None:
    """Serve tables to an agent: the Model Context Protocol over standard input and output.

    Read-only, with bounded answers. Needs the extra mcp.
    """
    from indextables.serve.mcp import server
    from indextables.serve.questions import Questions

    given = {"storage_options": obj.storage_options, "options": obj.settings}
    server(Questions.over(paths, **given)).run("stdio")


@cli.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--port", type=int, default=0, help="Default: any free port.")
@click.option("--rows", type=click.IntRange(min=1), default=1000, help="Most rows of an answer.")
@click.option("--seconds", type=float, default=30.0, help="Longest time for an answer.")
@click.pass_obj
def serve(obj: Context, paths: tuple[str, ...], port: int, rows: int, seconds: float) -> None:
    """A console in the browser, and Elasticsearch's search API, for some tables.

    Read-only, on this machine alone; the address that is printed holds the token that every
    request needs.
    """
    from indextables.serve.http import Console
    from indextables.serve.questions import Limits, Questions

    limits = Limits(rows, seconds=seconds)
    given = {"storage_options": obj.storage_options, "options": obj.settings, "limits": limits}
    console = Console(Questions.over(paths, **given), port=port)
    obj.say(f"The console is at {console.url}\nStop it with Ctrl-C.")
    sys.stdout.flush()
    console.run()
