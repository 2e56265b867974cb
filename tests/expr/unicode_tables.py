"""Derives the tables of ``pyx/index/_tokenize_tables.pxi`` from the tantivy wheel in use.

tantivy's own idea of "alphanumeric" and "lower case" decides what is in an index, and it differs
from Python's by thousands of code points. So the wheel itself is asked, once for every code point.
Run this file to rewrite the table after a change of the wheel.
"""

from __future__ import annotations

import base64
import struct
import zlib
from pathlib import Path

from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

TARGET = Path(__file__).parents[2] / "pyx" / "index" / "_tokenize_tables.pxi"


def derive() -> bytes:
    """Ranges of alphanumeric code points, then lower-case mappings, as little-endian int32."""
    analyzer = TextAnalyzerBuilder(Tokenizer.simple()).filter(Filter.lowercase()).build()
    alnum: list[int] = []
    lower: list[tuple[int, int, int]] = []
    for code in range(0x110000):
        if 0xD800 <= code < 0xE000:
            continue
        found = analyzer.analyze(f"a{chr(code)}b")
        if len(found) != 1:
            continue
        alnum.append(code)
        mapped = [ord(c) for c in found[0][1:-1]]
        assert len(mapped) <= 2
        if mapped != [code]:
            lower.append((code, mapped[0], mapped[1] if len(mapped) == 2 else 0))
    ranges = _ranges(alnum)
    flat = [len(ranges), *(v for r in ranges for v in r)]
    flat += [len(lower), *(v for m in lower for v in m)]
    return struct.pack(f"<{len(flat)}i", *flat)


def _ranges(codes: list[int]) -> list[tuple[int, int]]:
    """Half-open runs of consecutive code points."""
    found: list[tuple[int, int]] = []
    for code in codes:
        if found and found[-1][1] == code:
            found[-1] = (found[-1][0], code + 1)
        else:
            found.append((code, code + 1))
    return found


def render(raw: bytes) -> str:
    text = base64.b85encode(zlib.compress(raw, 9)).decode()
    lines = [text[i : i + 88] for i in range(0, len(text), 88)]
    body = "\n".join(f'    b"{line}"' for line in lines)
    return (
        "# Written by tests/expr/unicode_tables.py from the tantivy wheel; do not edit.\n"
        f"cdef bytes UNICODE_TABLES = (\n{body}\n)\n"
    )


if __name__ == "__main__":
    TARGET.write_text(render(derive()))
