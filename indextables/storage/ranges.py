"""Coalescing of byte ranges: one larger request is cheaper than several small ones.

Two ranges of a file are fetched together when the bytes between them are at most ``gap`` and the
joint request stays within ``limit``. The answer of every asked range is then cut out of the joint
one, so callers see exactly what they asked for, in their order, duplicates and overlaps included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from indextables.errors import CorruptFileError

DEFAULT_LIMIT = 16 << 20


@dataclass(slots=True)
class Request:
    """One fetch of ``[start, end)`` that serves the asked ranges with these indices."""

    start: int
    end: int
    serves: list[int] = field(default_factory=list)


def check_range(path: str, start: int, end: int) -> None:
    """Refuse a range that no file can have; such a range comes from a corrupt footer or log."""
    if start < 0 or end < start:
        raise CorruptFileError(
            f"impossible byte range [{start}, {end})",
            path=path,
            hint="The offsets recorded for this file are damaged",
        )


def check_length(path: str, start: int, end: int, data: bytes) -> bytes:
    """The bytes of a range when all of them arrived."""
    if len(data) != end - start:
        raise CorruptFileError(
            f"range [{start}, {end}) gave {len(data)} of {end - start} bytes",
            offset=start + len(data),
            path=path,
            hint="The file is shorter than its recorded length, or was replaced",
        )
    return data


def coalesce(
    ranges: Sequence[tuple[int, int]], gap: int, limit: int = DEFAULT_LIMIT
) -> list[Request]:
    """Requests in file order that together cover every non-empty range."""
    order = sorted((i for i, (a, b) in enumerate(ranges) if b > a), key=ranges.__getitem__)
    requests: list[Request] = []
    for index in order:
        start, end = ranges[index]
        last = requests[-1] if requests else None
        if last and start <= last.end + gap and max(end, last.end) - last.start <= limit:
            last.end = max(last.end, end)
            last.serves.append(index)
        else:
            requests.append(Request(start, end, [index]))
    return requests


def cut(
    ranges: Sequence[tuple[int, int]], requests: Sequence[Request], blobs: Sequence[bytes]
) -> list[bytes]:
    """The asked ranges, in their order, out of the fetched requests."""
    answers = [b""] * len(ranges)
    for request, blob in zip(requests, blobs, strict=True):
        for index in request.serves:
            start, end = ranges[index]
            answers[index] = blob[start - request.start : end - request.start]
    return answers
