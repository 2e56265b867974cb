"""Java regular expressions (RLIKE) in Python's dialect, where both mean the same.

Taken: literals, ``.``, classes, groups, alternation, greedy and lazy repetition, ``^ $ \\d \\w \\s
\\b`` and their opposites, ``(?i)`` and ``(?s)`` at the front over ASCII patterns. ``.`` and ``$``
are respelled because Java knows more line ends than Python. Everything else (look-around,
back-references, possessive repetition, Unicode classes, class intersections) is left to Spark.
"""

from __future__ import annotations

import re
from functools import lru_cache

from indextables.expr.coercion import NotComputableError

_LINE_ENDS = "\\n\\r\\x85\\u2028\\u2029"
_ANY = f"[^{_LINE_ENDS}]"
_END = f"(?=(?:\\r\\n|[{_LINE_ENDS}])?\\Z)"
_TOKEN = re.compile(
    r"(?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})[?+]?)"
    r"|(?P<group>\((?:\?:|(?!\?)))"
    r"|(?P<set>\[\^?\]?(?:\\.|[^\]\\\[&])*\])"
    r"|(?P<escape>\\.)"
    r"|(?P<plain>[^\\\[\](){}*+?])"
    r"|(?P<close>\))",
    re.S,
)
_FLAGS = re.compile(r"\(\?([is]+)\)")
_CLASS_ESCAPES = "dDwWsS"
_SAFE_ESCAPES = "tnrf.^$|()[]{}*+?\\/-\"'_%@:;,<>=!#&~` "


@lru_cache(maxsize=256)
def to_python_regex(pattern: str) -> re.Pattern[str]:
    """The compiled equivalent, or ``NotComputableError``."""
    flags = re.ASCII
    dot_all = False
    if match := _FLAGS.match(pattern):
        pattern = pattern[match.end() :]
        dot_all = "s" in match[1]
        if "i" in match[1]:
            if not pattern.isascii():
                raise NotComputableError
            flags |= re.IGNORECASE
    body = _translate(pattern, dot_all)
    try:
        return re.compile(body, flags)
    except re.error:
        raise NotComputableError from None


def _translate(pattern: str, dot_all: bool) -> str:
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        match = _TOKEN.match(pattern, at)
        if match is None:
            raise NotComputableError
        pieces.append(_piece(match, dot_all))
        at = match.end()
    return "".join(pieces)


def _piece(match: re.Match[str], dot_all: bool) -> str:
    text = match[0]
    if match["repeat"] and text.endswith("+") and len(text) > 1:
        raise NotComputableError
    if match["set"]:
        return _set(text)
    if match["escape"]:
        if text[1] not in _CLASS_ESCAPES + "bB" + _SAFE_ESCAPES:
            raise NotComputableError
        if text[1] in "bB":
            raise NotComputableError
        return text if text[1] in _CLASS_ESCAPES + "tnrf" else re.escape(text[1])
    if text == ".":
        return "(?s:.)" if dot_all else _ANY
    if text == "$":
        return _END
    return text


def _set(text: str) -> str:
    body = text[1:-1].removeprefix("^")
    if body.startswith("]") or not body or ("^" in body[1:] and "\\^" not in body):
        raise NotComputableError
    for escape in re.findall(r"\\(.)", body, re.S):
        if escape not in _CLASS_ESCAPES + _SAFE_ESCAPES:
            raise NotComputableError
    return text
