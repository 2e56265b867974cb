"""Debian's package index as a table: ingested by the command line, asked ten questions.

    python examples/debian_packages.py [PACKAGES]

The index is the one that apt keeps on this machine (``apt update`` fetches it). Every answer is
checked against DuckDB, which reads the same file from end to end.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import indextables

LISTS = Path("/var/lib/apt/lists")
FIELDS = ("Package", "Version", "Architecture", "Maintainer", "Description", "Section", "Priority",
          "Homepage", "Depends", "Filename")  # fmt: skip
QUESTIONS = {
    "how many packages are there": "SELECT count(*) FROM {t}",
    "the package of a name": "SELECT version FROM {t} WHERE package = 'bash'",
    "a word in the description": "SELECT count(*) FROM {t} WHERE {words:game}",
    "two words next to each other": "SELECT count(*) FROM {t} WHERE {words:command line}",
    "the largest sections": (
        "SELECT section, count(*) AS n FROM {t} GROUP BY section ORDER BY n DESC, section LIMIT 5"
    ),
    "libraries in Python's section": (
        "SELECT count(*) FROM {t} WHERE section = 'python' AND {words:library}"
    ),
    "the largest downloads": "SELECT package, size FROM {t} ORDER BY size DESC, package LIMIT 3",
    "how large packages are, by priority": (
        "SELECT priority, sum(size) AS bytes, max(installed_size) AS kb FROM {t} "
        "GROUP BY priority ORDER BY priority"
    ),
    "packages without a home page": "SELECT count(*) FROM {t} WHERE homepage IS NULL",
    "who maintains most of the games": (
        "SELECT maintainer, count(*) AS n FROM {t} WHERE section = 'games' "
        "GROUP BY maintainer ORDER BY n DESC, maintainer LIMIT 3"
    ),
}
WORDS = re.compile(r"\{words:([^}]+)\}")


def ours(question: str, table: Path) -> str:
    """The question with a search."""
    searched = WORDS.sub(lambda m: f"description TEXTSEARCH '\"{m[1]}\"'", question)
    return searched.replace("{t}", f"'{table}'")


def theirs(question: str, file: Path) -> str:
    """The question with a regular expression over every description."""
    gap = r"[^\pL\pN]"

    def matched(words: re.Match[str]) -> str:
        inner = f"{gap}+".join(words[1].split())
        return f"regexp_matches(lower(description), '(^|{gap}){inner}({gap}|$)')"

    whole = f"read_json('{file}', format = 'newline_delimited', sample_size = -1)"
    return WORDS.sub(matched, question).replace("{t}", whole)


def index_files() -> list[Path]:
    """The package indexes that apt has fetched."""
    return sorted(LISTS.glob("*_Packages*")) if LISTS.is_dir() else []


def can_run() -> bool:
    """Is there an index, and something that reads it?"""
    return bool(index_files()) and shutil.which("apt-cache") is not None


def paragraphs() -> Iterator[dict[str, str]]:
    """The packages as apt prints them, one paragraph each."""
    with subprocess.Popen(["apt-cache", "dumpavail"], stdout=subprocess.PIPE, text=True) as apt:
        assert apt.stdout is not None
        yield from parsed(apt.stdout)
        apt.kill()


def parsed(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Paragraphs of ``Name: value`` lines; a line that begins with a blank goes on."""
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        if not line.strip():
            if found:
                yield found
            found, name = {}, ""
        elif line[0] in " \t":
            found[name] += "\n" + line.strip()
        else:
            name, _, value = line.partition(":")
            found[name] = value.strip()
    if found:
        yield found


def row(paragraph: dict[str, str]) -> dict[str, Any]:
    """A package as a row."""
    texts: dict[str, Any] = {name.lower(): paragraph.get(name) for name in FIELDS}
    sizes = {"size": "Size", "installed_size": "Installed-Size"}
    numbers = {key: int(paragraph.get(name, 0)) for key, name in sizes.items()}
    return texts | numbers


def ingest(file: Path, table: Path) -> None:
    """What a user types."""
    command = [sys.executable, "-m", "indextables", "ingest", str(file), str(table)]
    subprocess.run([*command, "--text", "description,depends"], check=True)


def answers(file: Path, table: Path) -> Iterator[tuple[str, list[Any], list[Any]]]:
    """Each question with our answer and DuckDB's."""
    import duckdb

    for name, question in QUESTIONS.items():
        found = indextables.sql(None, ours(question, table))
        mine = [tuple(r.values()) for r in found.to_pylist()]
        yield name, mine, duckdb.sql(theirs(question, file)).fetchall()


def main(most: int | None = None) -> int:
    """Walk through the questions; the number of answers that differ."""
    if not can_run():
        print("apt has no package index on this machine: run apt update first")
        return 0
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        file, table = Path(folder, "packages.ndjson"), Path(folder, "packages")
        with file.open("w") as out:
            for paragraph in itertools.islice(paragraphs(), most):
                out.write(json.dumps(row(paragraph)) + "\n")
        ingest(file, table)
        for question, mine, other in answers(file, table):
            same = [tuple(map(str, r)) for r in mine] == [tuple(map(str, r)) for r in other]
            wrong += not same
            print(f"{'ok   ' if same else 'WRONG'} {question}: {mine[0] if mine else 'nothing'}")
            if not same:
                print(f"      DuckDB says {other[:3]}")
    print("Try next: indextables serve TABLE, indextables shell")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else None))
