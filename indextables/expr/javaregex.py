"""Java regular expressions (RLIKE), searched in time that is linear in the text.

A backtracking engine, Java's own and Python's among them, can take longer than anyone waits for
``^(a+)+$`` and forty letters. So patterns are never handed to one: each is respelled for RE2, the
automaton that comes with Arrow, and taken only where both provably find the same.

Taken: literals, ``.``, classes, groups, alternation, greedy and lazy repetition, ``^``, ``$``,
``\\d \\w \\s`` and their opposites, ``(?i)`` and ``(?s)`` at the front. RLIKE asks only whether
something is found, so greed does not matter. What the two dialects mean differently is spelled out:

* ``.`` leaves out all of Java's line ends, ``\\s`` takes the vertical tab.
* ``(?i)`` is about ASCII letters alone, so each letter becomes both of its cases.
* ``$`` is the end of the text or the place before a last line end (``\\r\\n`` is one). RE2 looks
  for the end only, in the text and in the text without that line end. This is the same where
  nothing can follow the ``$``; a pattern in which something can is not taken.

Everything else (look-around, back-references, possessive repetition, ``\\b``, Unicode classes,
class intersections, repetitions that RE2 finds too large) is left to Spark.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.coercion import NotComputableError

_LINE_ENDS = r"\n\r\x{85}\x{2028}\x{2029}"
_LAST_LINE_END = rf"(?:\r\n|[{_LINE_ENDS}])\z"
_TOKEN = re.compile(
    r"(?P<repeat>(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})[?+]?)"
    r"|(?P<group>\((?:\?:|(?!\?)))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\\[&])*\])"
    r"|(?P<escape>\\.)"
    r"|(?P<plain>[^\\\[\](){}*+?])"
    r"|(?P<close>\))",
    re.S,
)
_FLAGS = re.compile(r"\(\?([is]+)\)")
_CLASSES = {
    "d": r"0-9",
    "D": r"\x{0}-\x{2f}\x{3a}-\x{10ffff}",
    "w": r"0-9A-Z_a-z",
    "W": r"\x{0}-\x{2f}\x{3a}-\x{40}\x{5b}-\x{5e}\x{60}\x{7b}-\x{10ffff}",
    "s": r"\x{9}-\x{d}\x{20}",
    "S": r"\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{10ffff}",
}
_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SAFE_ESCAPES = ".^$|()[]{}*+?\\/-\"'_%@:;,<>=!#&~` "
_MEMBER = re.compile(r"\\?.", re.S)


@dataclass(frozen=True, slots=True)
class JavaRegex:
    """A pattern as RE2 reads it; ``has_end`` says that it holds a ``$``."""

    pattern: str
    has_end: bool

    def found_in(self, values: pa.Array) -> pa.Array:
        """For each text whether the pattern is found in it; NULL stays NULL."""
        found = pc.match_substring_regex(values, self.pattern)
        if not self.has_end:
            return found
        shorter = pc.replace_substring_regex(values, _LAST_LINE_END, "")
        return pc.or_(found, pc.match_substring_regex(shorter, self.pattern))


@lru_cache(maxsize=256)
def to_regex(pattern: str) -> JavaRegex:
    """The pattern for the linear engine, or ``NotComputableError``."""
    body, flags = pattern, ""
    if match := _FLAGS.match(pattern):
        body, flags = pattern[match.end() :], match[1]
    if "i" in flags and not body.isascii():
        raise NotComputableError
    tokens = list(_tokens(body))
    _require_last_ends(tokens)
    pieces = [_piece(token, "i" in flags, "s" in flags) for token in tokens]
    made = JavaRegex("".join(pieces), any(token[0] == "$" for token in tokens))
    try:
        re.compile(_skeleton(tokens))
        made.found_in(pa.array([""]))
    except (re.error, OverflowError, pa.ArrowInvalid):
        raise NotComputableError from None
    return made


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise NotComputableError
        yield match
        at = match.end()


def _skeleton(tokens: Sequence[re.Match[str]]) -> str:
    """The pattern without its characters: repetition and brackets that Java would refuse show."""
    kept = ("repeat", "group", "close")
    return "".join(t[0] if t.lastgroup in kept or t[0] in "^$|" else "a" for t in tokens)


def _require_last_ends(tokens: Sequence[re.Match[str]]) -> None:
    """Refuse a ``$`` that something can follow."""
    for i, token in enumerate(tokens):
        if token[0] == "$" and not _is_last(tokens, i + 1):
            raise NotComputableError


def _is_last(tokens: Sequence[re.Match[str]], i: int) -> bool:
    """Does nothing follow here, other branches left out and groups closed once and for all?"""
    while i < len(tokens):
        if tokens[i][0] == "|":
            i = _branches_end(tokens, i)
        elif tokens[i].lastgroup == "close":
            i += 1
            if i < len(tokens) and tokens[i].lastgroup == "repeat":
                return False
        else:
            return False
    return True


def _branches_end(tokens: Sequence[re.Match[str]], i: int) -> int:
    """The bracket that closes the group of a ``|``, or the end."""
    depth = 0
    while i < len(tokens):
        if tokens[i].lastgroup == "close" and depth == 0:
            return i
        depth += {"group": 1, "close": -1}.get(tokens[i].lastgroup or "", 0)
        i += 1
    return i


# -- one token ------------------------------------------------------------------------------------


def _piece(token: re.Match[str], both_cases: bool, dot_all: bool) -> str:
    text = token[0]
    if token["repeat"]:
        if text.endswith("+") and len(text) > 1:
            raise NotComputableError
        return text
    if token["set"]:
        return _set(text, both_cases)
    if token["escape"]:
        return (
            f"[{_CLASSES[text[1]]}]" if text[1] in _CLASSES else _literal(_escaped(text[1]), False)
        )
    if token["plain"] and text not in ".^$|":
        return _literal(text, both_cases)
    return {".": r"(?s:.)" if dot_all else f"[^{_LINE_ENDS}]", "^": r"\A", "$": r"\z"}.get(
        text, text
    )


def _escaped(letter: str) -> str:
    """The character behind a backslash."""
    if letter in _CONTROLS:
        return _CONTROLS[letter]
    if letter not in _SAFE_ESCAPES:
        raise NotComputableError
    return letter


def _literal(char: str, both_cases: bool) -> str:
    if both_cases and char in string.ascii_letters:
        return f"[{char.lower()}{char.upper()}]"
    return _code(char)


def _code(char: str) -> str:
    return rf"\x{{{ord(char):x}}}"


def _set(text: str, both_cases: bool) -> str:
    negated = text.startswith("[^")
    body = text[2 if negated else 1 : -1]
    members = _MEMBER.findall(body)
    if not body or body.startswith("]") or "^" in members[1:]:
        raise NotComputableError
    pieces: list[str] = []
    i = 0
    while i < len(members):
        if members[i + 1 : i + 2] == ["-"] and i + 2 < len(members):
            pieces.append(_range(_member(members[i]), _member(members[i + 2]), both_cases))
            i += 3
        else:
            pieces.append(_single(members[i], both_cases))
            i += 1
    return f"[{'^' if negated else ''}{''.join(pieces)}]"


def _single(member: str, both_cases: bool) -> str:
    if len(member) == 2 and member[1] in _CLASSES:
        return _CLASSES[member[1]]
    char = _member(member)
    return _range(char, char, both_cases)


def _member(member: str) -> str:
    return _escaped(member[1]) if len(member) == 2 else member


def _range(first: str, last: str, both_cases: bool) -> str:
    if first > last:
        raise NotComputableError
    plain = _code(first) + (f"-{_code(last)}" if last != first else "")
    if not both_cases:
        return plain
    return plain + "".join(c.swapcase() for c in string.ascii_letters if first <= c <= last)
