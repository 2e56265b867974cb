"""The ``indextables`` command.

Exit codes: 0 it worked; 1 an error, printed to standard error with its code; 2 wrong usage (unknown
option, malformed argument); 3 DOCTOR found damage; 130 interrupted. Everything runs in this
process; no Spark is needed. ``--json`` prints machine-readable output everywhere.

An error that is not one of ours is a sentence too, never a traceback unless one is asked for
(``INDEXTABLES_TRACEBACK=1``). Errors, log lines and tracebacks leave as everything else does: what
a terminal would obey in them is shown (``output``). An argument that is not UTF-8 is wrong usage:
no table holds such a name.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

import click

from indextables.cli import commands, desk, searching, tailing  # noqa: F401
from indextables.cli.app import EXIT_ERROR, EXIT_INTERRUPTED, cli
from indextables.errors import IndexTablesError
from indextables.printable import PrintableFormatter

TRACEBACK = "INDEXTABLES_TRACEBACK"


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors of ours become one clear message and exit code 1."""
    _make_log_lines_printable()
    given = list(sys.argv[1:] if argv is None else argv)
    try:
        _require_utf8(given)
        code = cli.main(args=_hoisted(given), prog_name="indextables", standalone_mode=False)
    except click.exceptions.Abort:
        code = EXIT_INTERRUPTED
    except click.ClickException as error:
        _tell(_usage(error))
        code = error.exit_code
    except IndexTablesError as error:
        _tell(f"error: {error}")
        code = EXIT_ERROR
    except (KeyboardInterrupt, BrokenPipeError):
        code = EXIT_INTERRUPTED
    except Exception as error:
        _tell_unexpected(error)
        code = EXIT_ERROR
    sys.exit(code if isinstance(code, int) else 0)


def _tell(text: str) -> None:
    from indextables.cli.output import say

    say(text, stream=sys.stderr)


def _tell_unexpected(error: Exception) -> None:
    """An error that is not ours: what it was in a line; where, for those who ask."""
    import traceback

    from indextables.cli.output import show

    if os.environ.get(TRACEBACK, "0") not in ("", "0"):
        show(traceback.format_exc().rstrip(), sys.stderr)
        return
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    _tell(
        f"error: {IndexTablesError.code} something went wrong that should not have: {what}. "
        f"Nothing that was not committed is in the table. {TRACEBACK}=1 shows where it happened; "
        "please report that as a defect"
    )


def _usage(error: click.ClickException) -> str:
    """How the command is used, where that is known, and what was wrong."""
    context = getattr(error, "ctx", None)
    lines = [f"Error: {error.format_message()}"]
    if context is not None:
        help_option = f"{context.command_path} {context.help_option_names[0]}"
        lines = [context.get_usage(), f"Try '{help_option}' for help.", "", *lines]
    return "\n".join(lines)


def _require_utf8(words: Sequence[str]) -> None:
    """Bytes that are no UTF-8 reach Python as halves of surrogate pairs."""
    for word in words:
        try:
            word.encode("utf-8")
        except UnicodeEncodeError:
            raise click.UsageError(f"not UTF-8: argument '{word}'") from None


def _make_log_lines_printable() -> None:
    """Print warnings the way Python does when logging is not configured."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(PrintableFormatter())


_WITH_VALUE = ("--limit", "-n", "--storage-option", "--set")


def _hoisted(given: list[str]) -> list[str]:
    """Global options may stand anywhere: move them before the command."""
    front: list[str] = []
    rest: list[str] = []
    i = 0
    while i < len(given):
        word = given[i]
        if word == "--":
            rest += given[i:]
            break
        if word in ("--json", "--wide"):
            front.append(word)
        elif word in _WITH_VALUE and i + 1 < len(given):
            front += given[i : i + 2]
            i += 1
        elif word.startswith(tuple(f"{name}=" for name in _WITH_VALUE)):
            front.append(word)
        else:
            rest.append(word)
        i += 1
    return [*front, *rest]


if __name__ == "__main__":
    main()
