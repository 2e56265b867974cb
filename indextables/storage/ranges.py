"""Coalescing of byte ranges: one larger request is cheaper than several small ones.

Two ranges of a file are fetched together when the bytes between them are at most ``gap`` and the
joint request stays within ``limit``. The answer of every asked range is then cut out of the joint
one, so callers see exactly what they asked for, in their order, duplicates and overlaps included.

How many bytes a request is worth is decided here, for all object stores, by what they cost in time:

    bytes worth a cost of s seconds = s * LINE / (requests that share the line)

A request beside others costs no waiting, only the work of sending it (``REQUEST_S``, two thirds
of it in the client): ``NEAR`` bytes. A trip that has to be waited for costs the latency
(``TRIP_S``), but the bytes that would save it come while ``AT_ONCE`` splits or more are read, and
share the line with theirs: ``TRIP`` bytes. So ranges nearer than ``NEAR`` are one request, and up
to ``TRIP`` bytes are read that may not be needed if that saves a trip: small splits whole, tables
of hashes with their heads, cross-references in place of splits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from indextables.errors import CorruptFileError

DEFAULT_LIMIT = 16 << 20
LINE = 100 << 20
"""Bytes a second of one connection to an object store."""
REQUEST_S = 0.00125
TRIP_S = 0.03
AT_ONCE = 6


def bytes_worth(seconds: float, at_once: int = 1) -> int:
    """How many bytes arrive in that time, when so many requests share the line."""
    return round(seconds * LINE / at_once)


NEAR = bytes_worth(REQUEST_S)
TRIP = bytes_worth(TRIP_S, AT_ONCE)


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
