"""LIKE patterns, taken apart once, when a filter is bound.

LIKE follows Spark: ``%`` is any run of characters, ``_`` is one, and the escape character makes the
next ``%``, ``_`` or itself plain; before anything else, or at the end, it is an error. Callers get
the segments of a pattern, so no other code knows about escapes. The wildcards of a query string are
the same in other letters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from indextables.errors import PlanningError


class Wild(Enum):
    """What is not literal in a pattern."""

    RUN = "%"
    ONE = "_"


Segment: TypeAlias = str | Wild


@dataclass(frozen=True, slots=True)
class LikePattern:
    """Literal runs and wildcards; no two literals and no two ``%`` stand side by side."""

    segments: tuple[Segment, ...]

    @classmethod
    def parse(cls, pattern: str, escape: str = "\\") -> LikePattern:
        """The segments of a pattern of LIKE."""
        return cls.joined(_like_parts(pattern, escape))

    @classmethod
    def wildcards(cls, pattern: str) -> LikePattern:
        """The same of ``*`` (any run) and ``?``; a backslash makes the next character plain."""
        wild = {"*": Wild.RUN, "?": Wild.ONE}
        parts = re.findall(r"(?s)\\.|.", pattern)
        return cls.joined(wild.get(p, p) if len(p) == 1 else p[1] for p in parts)

    @classmethod
    def joined(cls, parts: Iterable[Segment]) -> LikePattern:
        found: list[Segment] = []
        for part in parts:
            last = found[-1] if found else None
            if isinstance(part, str) and isinstance(last, str):
                found[-1] = last + part
            elif part is not Wild.RUN or last is not Wild.RUN:
                found.append(part)
        return cls(tuple(found))

    @property
    def prefix(self) -> str:
        """The literal text that every match starts with."""
        return "".join(part for part in self.segments[:1] if isinstance(part, str))

    def spelled(self, literal: Callable[[str], str], run: str, one: str) -> str:
        """The pattern in another language of patterns."""
        wild = {Wild.RUN: run, Wild.ONE: one}
        return "".join(literal(p) if isinstance(p, str) else wild[p] for p in self.segments)

    @property
    def regex(self) -> str:
        """A regular expression over the whole value."""
        return rf"(?s)\A{self.spelled(re.escape, '.*', '.')}\z"

    def __str__(self) -> str:
        """As SQL spells it with a backslash for its escape."""
        return self.spelled(lambda text: re.sub(r"[\\%_]", r"\\\g<0>", text), "%", "_")


def _like_parts(pattern: str, escape: str) -> Iterator[Segment]:
    characters = iter(pattern)
    for char in characters:
        if char == escape:
            yield _escaped(pattern, next(characters, ""), escape)
        else:
            yield Wild(char) if char in "%_" else char


def _escaped(pattern: str, char: str, escape: str) -> str:
    if not char:
        raise PlanningError(
            f"the pattern '{pattern}' ends with the escape character '{escape}'",
            hint="Double it to match it literally",
        )
    if char not in ("%", "_", escape):
        raise PlanningError(
            f"the pattern '{pattern}' has '{escape}' before '{char}'",
            hint="Only %, _ and the escape character itself can be escaped",
        )
    return char
