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

    def __init__(self, as_json: bool, storage_options: dict[str, str], settings: dict[str, str]):
        self.as_json = as_json
        self.storage_options = storage_options
        self.settings = settings

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

        emit(rows, self.as_json, empty)

    def emit_table(self, table: Any) -> None:
        self.emit(table.to_pylist())


def _full_key(key: str) -> str:
    """A setting with our prefix, so that a misspelled one is refused."""
    return key if key.lower().startswith(PREFIX) else PREFIX + key


def _pairs(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for item in values:
        key, mark, value = item.partition("=")
        if not mark or not key:
            raise click.BadParameter(f"'{item}' is not KEY=VALUE")
        found[key] = value
    return found


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, prog_name="indextables")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--storage-option",
    "storage_options",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="Option of the object store; repeat for more.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    callback=_pairs,
    metavar="KEY=VALUE",
    help="A setting (spark.indextables. may be left out); repeat for more.",
)
@click.pass_context
def cli(
    ctx: click.Context, as_json: bool, storage_options: dict[str, str], settings: dict[str, str]
) -> None:
    """Tables that are searched instead of scanned."""
    ctx.obj = Context(as_json, storage_options, {_full_key(k): v for k, v in settings.items()})
