"""The grammar of a verb: one line of text, compiled into nodes.

``WORD`` must stand there, ``[ ... ]`` may be left out, ``( a | b )`` chooses and ``{name:kind}`` is
a parameter: ``int``, ``string``, ``size``, ``hours``, ``seconds``, ``predicate``, ``type``,
``name``, ``names``, ``pairs``, ``modes`` (``('a': 'text', ...)``), ``source`` (where another table
is), ``assignments`` (``a = expression, ...``), ``purge`` (the word, in brackets or not) or words in
lower case to choose from (``fuse8|fuse16``). A kind in capitals (``{dry_run:DRY RUN}``) is words
that set a flag. ``{-:name}`` is read and forgotten. ``{table}`` is the table, a path in quotes or a
name; ``{table:path}`` says that Spark has the same words, so that only a path makes the statement
ours; ``{table:log}`` is the folder of a log.

A predicate or a type is raw text up to the words of a clause that may follow, so each knows those.
``INDEXTABLES`` may also be spelled ``TANTIVY4SPARK``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

OURS = "INDEXTABLES"
RAW = ("predicate", "type")
"""Kinds that are raw text up to the words of a clause that may follow."""
_PIECES = re.compile(r"\{[^}]*\}|[\[\]()|]|\w+")


@dataclass(frozen=True, slots=True)
class Word:
    text: str

    def matches(self, word: str) -> bool:
        return word == self.text or (self.text == OURS and word == "TANTIVY4SPARK")


@dataclass(frozen=True, slots=True)
class Slot:
    name: str
    kind: str
    stops: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Flag:
    name: str
    words: tuple[Word, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several ways on; an empty one may be left out."""

    ways: tuple[tuple[Node, ...], ...]


Node: TypeAlias = Word | Slot | Flag | Choice


@lru_cache(maxsize=256)
def compiled(line: str) -> tuple[Node, ...]:
    """The nodes of a grammar line."""
    nodes, rest = _ways(_PIECES.findall(line))
    if rest or len(nodes) != 1:
        raise ValueError(f"not a grammar: {line}")
    return _with_stops(nodes[0], ())


def slots(line: str) -> dict[str, str]:
    """The kind of each parameter; ``flag`` for flags."""
    found: dict[str, str] = {}
    for node in _walk(compiled(line)):
        if isinstance(node, Slot):
            found[node.name] = node.kind
        elif isinstance(node, Flag):
            found[node.name] = "flag"
    return found


def leading_words(line: str) -> tuple[str, ...]:
    """The words a statement must begin with."""
    found = []
    for node in compiled(line):
        if not isinstance(node, Word):
            break
        found.append(node.text)
    return tuple(found)


def shown(line: str) -> str:
    """The line as documentation shows it."""
    text = re.sub(r"\{\w+:([A-Z ]+)\}", r"\1", line)
    names = {
        "int": "n", "string": "'text'", "size": "1G", "hours": "n DAYS|HOURS", "predicate": "p",
        "name": "name", "type": "type", "pairs": "('key' = 'value', ...)", "table": "t",
        "modes": "('column': 'mode', ...)", "source": "'source'", "seconds": "n SECONDS|MINUTES",
        "assignments": "column = expression, ...", "purge": "(PURGE)",
        "path": "'path'", "log": "'a/_transaction_log'", "place": "'b/_transaction_log'",
    }  # fmt: skip

    def one(match: re.Match[str]) -> str:
        name, _, kind = match[1].partition(":")
        if kind == "names":
            return f"({name.removesuffix('s')}, ...)"
        return names.get(kind or name, kind.upper())

    return re.sub(r"\{([^}]*)\}", one, text)


def _walk(nodes: Sequence[Node]) -> Iterator[Node]:
    for node in nodes:
        yield node
        if isinstance(node, Choice):
            for way in node.ways:
                yield from _walk(way)


def _ways(pieces: list[str]) -> tuple[list[tuple[Node, ...]], list[str]]:
    """Alternatives up to a closing bracket, and what follows it."""
    ways: list[list[Node]] = [[]]
    while pieces and pieces[0] not in ("]", ")"):
        piece, pieces = pieces[0], pieces[1:]
        if piece == "|":
            ways.append([])
        elif piece in ("[", "("):
            inner, pieces = _ways(pieces)
            pieces = pieces[1:]
            ways[-1].append(Choice((*inner, ()) if piece == "[" else tuple(inner)))
        elif piece.startswith("{"):
            ways[-1].append(_parameter(piece[1:-1]))
        else:
            ways[-1].append(Word(piece))
    return [tuple(way) for way in ways], pieces


def _parameter(text: str) -> Slot | Flag:
    name, _, kind = text.partition(":")
    if kind.isupper():
        return Flag(name, tuple(map(Word, kind.split())))
    return Slot(name, kind or name)


def _with_stops(nodes: tuple[Node, ...], after: tuple[tuple[str, ...], ...]) -> tuple[Node, ...]:
    """The nodes with each predicate knowing the words that end it."""
    done: list[Node] = []
    for node in reversed(nodes):
        here = after
        if isinstance(node, Choice):
            node = Choice(tuple(_with_stops(way, here) for way in node.ways))
            after = (*(_first(way) for way in node.ways if way), *after)
        elif isinstance(node, Word):
            after = ((node.text,),)
        elif isinstance(node, Slot) and node.kind in RAW:
            node = Slot(node.name, node.kind, here)
        done.append(node)
    return tuple(reversed(done))


def _first(way: tuple[Node, ...]) -> tuple[str, ...]:
    """The first words of a clause, two at most."""
    words: list[str] = []
    for node in way:
        if isinstance(node, Flag):
            words += [w.text for w in node.words]
        elif isinstance(node, Word):
            words.append(node.text)
        else:
            break
    return tuple(words[:2])
