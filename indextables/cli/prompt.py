"""The interactive prompt: reads statements, runs each, shows its rows or its error, and goes on.

Line editing, history and completion are Python's ``readline`` where it is there. Without a terminal
(a pipe, a test) the same loop reads standard input and prints no prompt. An error ends a statement,
not the session; the exit code of a piped session is 1 if any statement failed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from indextables.cli.app import EXIT_ERROR, Context
from indextables.errors import IndexTablesError
from indextables.expr.infix import OPERATORS
from indextables.verbs import REGISTRY
from indextables.verbs.grammar import leading_words

PROMPT, MORE = "indextables> ", "        ...> "
LEAVE = ("\\q", "quit", "exit")
WORDS = (
    "SELECT", "FROM", "WHERE", "GROUP", "BY", "ORDER", "LIMIT", "JOIN", "LEFT", "ON", "AND", "OR",
    "NOT", "IN", "LIKE", "BETWEEN", "IS", "NULL", "AS", "HAVING", "WITH", "DISTINCT", "COUNT",
    "SUM", "AVG", "MIN", "MAX", "CASE", "WHEN", "THEN", "ELSE", "END",
)  # fmt: skip


class Prompt:
    """One session at the prompt."""

    def __init__(self, context: Context, history: Path, interactive: bool) -> None:
        self.context = context
        self.history = history
        self.interactive = interactive
        self.failed = False

    def run(self) -> None:
        """Read and run statements until the input ends."""
        if self.interactive:
            self._prepare_lines()
        for statement in self._statements():
            self._run(statement)
        if self.failed and not self.interactive:
            sys.exit(EXIT_ERROR)

    def _run(self, statement: str) -> None:
        from indextables.cli.output import say
        from indextables.sql import run

        given = {"storage_options": self.context.storage_options, "options": self.context.settings}
        try:
            self.context.emit_table(run(None, statement, **given))
        except IndexTablesError as error:
            self.failed = True
            say(f"error: {error}", stream=sys.stderr)

    def _statements(self) -> Iterator[str]:
        """Texts up to a semicolon at the end of a line, or up to the end of the input."""
        lines: list[str] = []
        while (line := self._line(MORE if lines else PROMPT)) is not None:
            if not lines and line.strip().lower().rstrip(";") in LEAVE:
                return
            lines.append(line)
            if line.rstrip().endswith(";"):
                yield "\n".join(lines)
                lines = []
            elif not any(part.strip() for part in lines):
                lines = []
        if any(line.strip() for line in lines):
            yield "\n".join(lines)

    def _line(self, prompt: str) -> str | None:
        if not self.interactive:
            read = sys.stdin.readline()
            return read.rstrip("\n") if read else None
        try:
            return input(prompt)
        except EOFError:
            print()
            return None
        except KeyboardInterrupt:
            print()
            return ""

    def _prepare_lines(self) -> None:
        """History and completion."""
        with contextlib.suppress(ImportError):
            import atexit
            import readline

            with contextlib.suppress(OSError):
                readline.read_history_file(self.history)
            words = completions()
            readline.set_completer(lambda text, n: next(iter(matches(text, words)[n:]), None))
            readline.parse_and_bind("tab: complete")
            atexit.register(self._save, readline)

    def _save(self, readline: object) -> None:
        with contextlib.suppress(OSError):
            readline.write_history_file(self.history)  # type: ignore[attr-defined]


def completions() -> list[str]:
    """The words that the tab key knows: SQL, search operators and our commands."""
    commands = {word for kind in REGISTRY for word in leading_words(kind.SQL)}
    return sorted({*WORDS, *commands, *(name.upper() for name in OPERATORS)})


def matches(text: str, words: list[str]) -> list[str]:
    """The words that begin like a text, in its case."""
    found = [word for word in words if word.startswith(text.upper())]
    return [word.lower() for word in found] if text.islower() else found
