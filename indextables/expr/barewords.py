"""Words of a search string before anybody knows what they mean."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Word:
    """A bare word: its characters, and which of them a backslash made plain."""

    start: int
    chars: list[str] = field(default_factory=list)
    plain: list[bool] = field(default_factory=list)

    def add(self, char: str, plain: bool) -> None:
        self.chars.append(char)
        self.plain.append(plain)

    @property
    def text(self) -> str:
        return "".join(self.chars)

    @property
    def is_pattern(self) -> bool:
        return any(c in "*?" and not p for c, p in zip(self.chars, self.plain, strict=True))

    @property
    def pattern(self) -> str:
        """As a wildcard pattern: plain wildcards and backslashes get a backslash."""
        pairs = zip(self.chars, self.plain, strict=True)
        return "".join("\\" + c if c == "\\" or (plain and c in "*?") else c for c, plain in pairs)

    def is_keyword(self, *words: str) -> bool:
        return self.text in words and not any(self.plain)
