"""The commands about searching: tokens of a text, detections by Sigma rules."""

from __future__ import annotations

from typing import Any

import click

from indextables.cli.app import Context, cli, pairs


@cli.command()
@click.argument("text")
@click.argument("analyzer", default="default")
@click.pass_obj
def analyze(obj: Context, text: str, analyzer: str) -> None:
    """The tokens that an analyzer makes of a text."""
    from indextables.expr.analyzers import analyze_tokens

    found = analyze_tokens(analyzer, text)
    obj.emit([token._asdict() for token in found], "no tokens")


@cli.command()
@click.argument("rules", nargs=-1, required=True)
@click.option("--table", "path", required=True, help="The table whose rows are tested.")
@click.option("--map", "fields", multiple=True, callback=pairs, help="FIELD=COLUMN, repeatable.")
@click.option("--rows", is_flag=True, help="Show the rows, not only how many there are.")
@click.pass_obj
def sigma(
    obj: Context, rules: tuple[str, ...], path: str, fields: dict[str, str], rows: bool
) -> None:
    """What Sigma rules (files or folders) detect in a table."""
    from indextables.table.detections import sigma as detections

    table = obj.table(path)
    found = detections(list(rules), fields)
    if rows:
        for detection in found:
            obj.emit_table(detection.matches(table, limit=obj.limit))
        return
    obj.emit([_summary(detection, table) for detection in found], "no rules")


def _summary(detection: Any, table: Any) -> dict[str, Any]:
    return {
        "rule": detection.title,
        "level": detection.level,
        "matches": detection.count(table),
        "id": detection.id,
    }
