"""Commands cut into tokens, each with its place in the text.

Strings stand in single or double quotes, with backslash escapes and doubled quotes; names may stand
in backticks. ``--`` and ``/* */`` comments are skipped, inside strings they are text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from indextables.errors import CommandSyntaxError

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
  | (?P<name>`(?:[^`]|``)+`)
  | (?P<number>\d+(?:\.\d+)?(?![A-Za-z_\d.]))
  | (?P<word>[A-Za-z_\d][\w$]*)
  | (?P<mark><=>|<>|!=|<=|>=|==|\|\||[^\s\w])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", "b": "\b", "Z": "\x1a"}


@dataclass(frozen=True, slots=True)
class Token:
    """``kind`` is word, name, string, number, mark or end; ``value`` is what it means."""

    kind: str
    value: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        return self.value.upper() if self.kind == "word" else ""


def tokenize(text: str) -> list[Token]:
    """All tokens, closed by one of kind ``end``."""
    tokens: list[Token] = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None or (match["mark"] or "") in ("'", '"', "`"):
            raise CommandSyntaxError("unclosed quote", text=text, position=place)
        kind = match.lastgroup or ""
        if kind == "mark" and match["mark"] == "/" and text.startswith("/*", place):
            raise CommandSyntaxError("unclosed comment", text=text, position=place)
        if kind != "space":
            tokens.append(Token(kind, _meaning(kind, match[0]), place, match.end()))
        place = match.end()
    tokens.append(Token("end", "", len(text), len(text)))
    return tokens


def _meaning(kind: str, raw: str) -> str:
    if kind == "string":
        return unquote(raw)
    if kind == "name":
        return raw[1:-1].replace("``", "`")
    return raw


def unquote(raw: str) -> str:
    """The text of a quoted string."""
    quote, body = raw[0], raw[1:-1]
    out: list[str] = []
    i = 0
    while i < len(body):
        char = body[i]
        if char == "\\" and i + 1 < len(body):
            i += 1
            out.append(_ESCAPES.get(body[i], body[i]))
        elif char == quote:
            i += 1
            out.append(quote)
        else:
            out.append(char)
        i += 1
    return "".join(out)
