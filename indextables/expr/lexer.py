"""Spark SQL cut into tokens: the one lexer of commands, predicates and statements.

The rules are those of Spark's own lexer:

* A *word* is a run of letters of any script, digits and underscores; it may begin with a digit
  (``512M``). A *name* stands in backquotes, a backquote inside it is doubled.
* A *string* stands in single or double quotes. ``\\n \\t \\r \\b \\0 \\Z``, ``\\uXXXX``,
  ``\\UXXXXXXXX`` and three octal digits up to ``\\177`` are characters; ``\\%`` and ``\\_`` keep
  their backslash for LIKE; any other backslash is dropped; a doubled quote is one. ``r'...'`` and
  ``$tag$...$tag$`` are taken as written. Strings that follow each other are one value: the caller
  joins them (``run_of_strings``).
* ``--`` comments end with the line unless a backslash precedes its end; ``/* */`` may nest.
* ``:name`` and ``?`` are *markers* of parameters; everything else is a *mark*.

Nothing is raised here, because three callers have three errors: text that is no token (a quote
without its end, an escape that is no character) is a token of kind ``bad`` whose value says why.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--(?:\\\r?\n|[^\r\n])*)
  | (?P<string>[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*"
      |\$(?P<tag>[A-Za-z_]\w*|)\$.*?\$(?P=tag)\$)
  | (?P<name>`(?:[^`]|``)*`)
  | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLsSyYdDfF])?
      (?![\w]|[^\x00-\x7f\s]))
  | (?P<word>(?:\w|[^\x00-\x7f\s])+)
  | (?P<marker>:[^\W\d]\w*|\?)
  | (?P<mark><=>|<>|!=|<=|>=|==|\|\||.)
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[01][0-7]{2}|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "0": "\0", "Z": "\x1a"}
_UNCLOSED = {
    "'": "a string has no closing quote",
    '"': "a string has no closing quote",
    "`": "a name has no closing backquote",
}


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL: word, name, string, number, marker, mark, bad or end.

    ``text`` is what was written, ``value`` what it means.
    """

    kind: str
    text: str
    value: str
    start: int
    end: int

    @property
    def upper(self) -> str:
        """A word in capitals; nothing for all other kinds."""
        return self.value.upper() if self.kind == "word" else ""

    def is_mark(self, mark: str) -> bool:
        return self.kind == "mark" and self.text == mark


def tokenize(text: str) -> list[Token]:
    """All tokens but white space and comments, closed by one of kind ``end``."""
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        if text.startswith("/*", at):
            end = _comment_end(text, at)
            if end < 0:
                tokens.append(Token("bad", text[at:], "a comment has no end", at, len(text)))
                break
            at = end
            continue
        match = _TOKEN.match(text, at)
        assert match is not None, "the last mark matches any character"
        if match["space"] is None:
            tokens.append(_token(match))
        at = match.end()
        if tokens and tokens[-1].kind == "bad":
            break
    tokens.append(Token("end", "", "", len(text), len(text)))
    return tokens


def first_bad(tokens: Sequence[Token]) -> Token | None:
    """The token that is none; nothing after it was read."""
    return next((token for token in tokens if token.kind == "bad"), None)


def run_of_strings(tokens: Sequence[Token], first: int) -> int:
    """The place after the strings that begin at ``first``: together they are one value."""
    end = first
    while tokens[end].kind == "string":
        end += 1
    return end


def quoted_name(name: str) -> str:
    """A name as SQL text that means it and nothing else."""
    return "`" + name.replace("`", "``") + "`"


def _token(match: re.Match[str]) -> Token:
    kind, text, start = _kind(match), match[0], match.start()
    value = text
    if kind == "string":
        try:
            value = _string_value(text)
        except ValueError as error:
            return Token("bad", text, str(error), start, match.end())
    elif kind == "name":
        value = text[1:-1].replace("``", "`")
    elif kind == "mark" and text in _UNCLOSED:
        return Token("bad", text, _UNCLOSED[text], start, match.end())
    return Token(kind, text, value, start, match.end())


def _kind(match: re.Match[str]) -> str:
    return "string" if match["string"] is not None else match.lastgroup or "mark"


def _comment_end(text: str, start: int) -> int:
    """The place after a comment that may hold others; negative when it has no end."""
    depth = 0
    for mark in _COMMENT.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if depth == 0:
            return mark.end()
    return -1


def _string_value(text: str) -> str:
    if text[0] in "rR":
        return text[2:-1]
    if text[0] == "$":
        tag = text.index("$", 1) + 1
        return text[tag:-tag]
    quote, body = text[0], text[1:-1]
    if "\\" not in body:
        return body.replace(quote * 2, quote)
    pieces: list[str] = []
    at = 0
    while at < len(body):
        if body[at] == "\\":
            escape = _ESCAPE.match(body, at)
            assert escape is not None, "a backslash is never the last character of a string"
            pieces.append(_unescaped(escape[1]))
            at = escape.end()
        else:
            pieces.append(body[at])
            at += 2 if body[at] == quote else 1
    return _whole_characters("".join(pieces))


def _unescaped(body: str) -> str:
    if body[0] in "uU" and len(body) > 1:
        number = int(body[1:], 16)
        if number > 0x10FFFF:
            raise ValueError(f"'\\{body}' is no character")
        return chr(number)
    if len(body) == 3:
        return chr(int(body, 8))
    if body in ("%", "_"):
        return "\\" + body
    return _LETTERS.get(body, body)


def _whole_characters(text: str) -> str:
    """Two escaped halves of a surrogate pair are one character; a half alone is none."""
    if text.isascii():
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise ValueError("half of a surrogate pair is no character") from None
