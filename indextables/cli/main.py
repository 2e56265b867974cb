"""The ``indextables`` command.

Exit codes: 0 it worked; 1 an error, told on standard error with its code; 2 wrong usage (unknown
option, malformed argument); 3 DOCTOR found damage; 130 interrupted. Everything runs in this
process; no Spark is needed. ``--json`` prints machine-readable output everywhere.
"""

from __future__ import annotations

import sys

import click

from indextables.cli import commands  # noqa: F401
from indextables.cli.app import EXIT_ERROR, EXIT_INTERRUPTED, cli
from indextables.errors import IndexTablesError


def main(argv: list[str] | None = None) -> None:
    """Entry point: errors of ours become one clear message and exit code 1."""
    try:
        code = cli.main(args=_hoisted(argv), prog_name="indextables", standalone_mode=False)
    except click.exceptions.Abort:
        code = EXIT_INTERRUPTED
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    except IndexTablesError as error:
        _tell(f"error: {error}")
        code = EXIT_ERROR
    except (KeyboardInterrupt, BrokenPipeError):
        code = EXIT_INTERRUPTED
    sys.exit(code if isinstance(code, int) else 0)


def _tell(text: str) -> None:
    from indextables.cli.output import terminal_width
    from indextables.cli.screens import paragraphs

    print(paragraphs(text, terminal_width(sys.stderr)), file=sys.stderr)


_WITH_VALUE = ("--limit", "-n", "--storage-option", "--set")


def _hoisted(argv: list[str] | None) -> list[str]:
    """Global options may stand anywhere: move them before the command."""
    given = list(sys.argv[1:] if argv is None else argv)
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
