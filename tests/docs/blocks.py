"""Code blocks of Markdown pages, and how each kind is run.

| fence | what happens |
|---|---|
| ``python`` | executed; the blocks of a page share their names |
| ``sql`` | each statement is executed: by this package, or by Spark with ``title="Spark"`` |
| ``console`` | each ``$ indextables ...`` line is executed and must give the exit code 0 |
| ``grammar`` | each line is the grammar of a verb |
| ``text`` | a picture; with ``title="output"`` compared with what the block before it printed |

A block with one of the titles ``NOT_RUN`` is not run; a test counts them. ``...`` in an expected
output stands for anything, and blanks are not compared.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
KINDS = ("python", "sql", "console", "grammar", "text")
FENCE = re.compile(r'^(?P<indent> *)```(?P<kind>[\w-]*)(?: title="(?P<title>[^"]*)")?(?P<rest>.*)$')
PLACE = "/data/"
NOT_RUN = ("in your shell", "with your own keys")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    kind: str
    title: str | None
    text: str
    odd: bool

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def runs(self) -> bool:
        return self.kind != "text" and self.title not in NOT_RUN

    @property
    def is_output(self) -> bool:
        return self.kind == "text" and self.title == "output"


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    found: list[Block] = []
    opened: tuple[int, re.Match[str]] | None = None
    lines: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        match = FENCE.match(line)
        if match is None:
            lines.append(line)
        elif opened is None:
            opened, lines = (number, match), []
        else:
            start, head = opened
            odd = bool(head["indent"] or head["rest"].strip() or head["kind"] not in KINDS)
            text = "\n".join(lines) + "\n"
            found.append(Block(page, start, head["kind"], head["title"], text, odd))
            opened = None
    assert opened is None, f"{page.name}: a fence is not closed"
    return found


def needs_spark(page: Path) -> bool:
    return any(
        b.runs and (b.title == "Spark" or re.search(r"(?<![\"'])\bspark\b[.,)]", b.text))
        for b in blocks_of(page)
    )


class Runner:
    """Runs the blocks of one page in order, in the current folder."""

    def __init__(self, names: dict[str, Any], spark: Any, place: str) -> None:
        self.names = names
        self.spark = spark
        self.place = place

    def run_page(self, page: Path) -> None:
        printed = ""
        for block in blocks_of(page):
            if block.is_output:
                compare(block.where, block.text, printed)
            elif block.runs:
                printed = self.run(block)

    def run(self, block: Block) -> str:
        text = block.text.replace(PLACE, self.place)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            getattr(self, "_" + block.kind)(block, text)
        return out.getvalue()

    def _python(self, block: Block, text: str) -> None:
        code = compile("\n" * block.line + text, str(block.page), "exec")
        exec(code, self.names)

    def _sql(self, block: Block, text: str) -> None:
        import indextables

        for statement in filter(None, (part.strip() for part in re.split(r";\s*\n", text + "\n"))):
            found = indextables.sql(self.spark if block.title == "Spark" else None, statement)
            if block.title == "Spark":
                found.collect()

    def _console(self, block: Block, text: str) -> None:
        for command, expected in commands(text):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                code = command_line(command)
            assert code == 0, f"{block.where}: {command} ended with {code}"
            if expected:
                compare(f"{block.where} {command}", expected, out.getvalue())

    def _grammar(self, block: Block, text: str) -> None:
        from indextables.verbs import REGISTRY
        from indextables.verbs.grammar import shown

        known = {shown(kind.SQL) for kind in REGISTRY}
        for line in text.splitlines():
            assert line in known, f"{block.where}: no verb has the grammar {line}"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Each ``$`` line with what it is said to print."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, expected = part.partition("\n")
        yield command, expected


def command_line(command: str) -> int:
    from indextables.cli.main import main

    words = shlex.split(command, comments=True)
    assert words[0] == "indextables", f"'{command}' is not our command"
    try:
        main(words[1:])
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


def compare(where: str, expected: str, printed: str) -> None:
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if not doctest.OutputChecker().check_output(expected, printed, options):
        raise AssertionError(f"{where} shows\n{expected}\nbut this was printed:\n{printed}")
