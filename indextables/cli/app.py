"""The command group and what its global options say."""

from __future__ import annotations

from typing import Any

import click

from indextables import __version__
from indextables.config import PREFIX

EXIT_ERROR = 1
EXIT_DAMAGE = 3
EXIT_INTERRUPTED = 130


class Context:
    """What every command gets from the global options."""

    def __init__(
        self,
        storage_options: dict[str, str],
        settings: dict[str, str],
        as_json: bool = False,
        wide: bool = False,
        limit: int | None = None,
    ):
        self.storage_options = storage_options
        self.settings = settings
        self.as_json = as_json
        self.wide = wide
        self.limit = limit

    def table(self, path: str, version: int | None = None, timestamp: str | None = None) -> Any:
        import indextables

        return indextables.open(
            path,
            version,
            timestamp,
            storage_options=self.storage_options,
            options=self.settings,
        )

    def emit(self, rows: list[dict[str, Any]], empty: str = "nothing found") -> None:
        from indextables.cli.output import emit

        emit(rows[: self.limit], self.as_json, empty, self.wide)

    def say(self, text: str) -> None:
        """Print text that is no table, wrapped to the screen."""
        from indextables.cli.output import say

        say(text, self.wide)

    def emit_table(self, table: Any) -> None:
        self.emit(table.to_pylist())


def _full_key(key: str) -> str:
    """A setting with our prefix, so that a misspelled one is refused."""
    return key if key.lower().startswith(PREFIX) else PREFIX + key


def pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """``KEY=VALUE`` arguments."""
    found = {}
    for item in values:
        key, mark, value = item.partition("=")
        if not mark or not key:
            raise click.BadParameter(f"'{item}' is not KEY=VALUE")
        found[key] = value
    return found


class Command(click.Command):
    """A command whose help recalls the options that all commands share."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(f"Everywhere: {EVERYWHERE}")


class Group(click.Group):
    command_class = Command
    group_class = type


EVERYWHERE = "--json  --wide  --limit N  --storage-option KEY=VALUE  --set KEY=VALUE"


@click.group(
    cls=Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80}
)
@click.version_option(__version__, prog_name="indextables")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--wide", is_flag=True, help="All columns, nothing cut.")
@click.option(
    "--limit", "-n", type=click.IntRange(min=0), default=None, help="At most this many rows."
)
@click.option(
    "--storage-option",
    "storage_options",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="Option of the object store; repeat for more.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=pairs,
    metavar="KEY=VALUE",
    help="A setting (spark.indextables. may be left out); repeat for more.",
)
@click.pass_context
def cli(
    ctx: click.Context,
    as_json: bool,
    wide: bool,
    limit: int | None,
    storage_options: dict[str, str],
    settings: dict[str, str],
) -> None:
    """Tables that are searched instead of scanned.

    The options below may stand anywhere, before or after the command.
    """
    keys = {_full_key(k): v for k, v in settings.items()}
    ctx.obj = Context(storage_options, keys, as_json, wide, limit)
