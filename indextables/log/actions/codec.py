"""Bytes of log files: JSON lines, plain or compressed, and back.

A log file is JSON, one object a line. It may be plain text, a gzip stream, or two bytes (a magic
and a codec number, both 1) before a gzip stream; the first bytes tell which. We write gzip, with
the two bytes where ``transaction.compression.codecPrefix`` asks for them.

Reading refuses what cannot be trusted: an empty file, a damaged or cut stream, text that is not
UTF-8 or not JSON, an object with the same key twice, a number that is not a number, an action of
the wrong shape, two actions in one line. Every refusal is ``CorruptFileError`` with the file, the
version, the line and what to do about it.

**How much text a file may hold.** A gzip stream can unpack to a thousand times its size, so a few
hundred kilobytes could take all memory. To repeat 258 bytes from more than some kilobytes back, a
stream needs about 15 bits, which is a ratio of 140; repeats from nearer by are shorter than an
action, and actions differ at least in their paths. Real logs therefore stay below that, whatever
their schema. A file may hold ``TEXT_RATIO`` times its size, and small files, where a ratio says
little, ``TEXT_FLOOR`` bytes in any case. Lines are decoded one at a time, and lines of unknown
kinds knows stay text.
"""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn, TypedDict

from indextables.config import Config
from indextables.errors import CommitFailedError, CorruptFileError, UnsafePathError
from indextables.log.actions import (
    Action,
    AddFile,
    AddKeyMap,
    AddXRef,
    IndexBlocks,
    Protocol,
    RemoveFile,
    RemoveKeyMap,
    RemoveXRef,
    SkipFile,
    UnknownActions,
    parse_action,
)
from indextables.log.actions.tablepath import table_path

GZIP_MAGIC = b"\x1f\x8b"
CODEC_PREFIX = b"\x01\x01"
TEXT_RATIO = 200
TEXT_FLOOR = 16 << 20
_LEVEL = 6
_PROTOCOL = f'"{Protocol.KEY}"'.encode()

REMEDY = (
    "Restore this file from a copy of the log. Without one, REPAIR INDEXFILES TRANSACTION LOG "
    "rebuilds a log from the splits that are still there"
)


def compress(text: bytes) -> bytes:
    """A gzip stream whose bytes depend on the text alone."""
    return gzip.compress(text, _LEVEL, mtime=0)


def decompress(data: bytes) -> bytes:
    """The text of a log file in any of the three forms."""
    if data[:2] == GZIP_MAGIC:
        return _gunzip(data)
    if data[:2] == CODEC_PREFIX and data[2:4] == GZIP_MAGIC:
        return _gunzip(data[2:])
    return data


def most_text(size: int) -> int:
    """How many bytes of text a compressed file of this size may hold."""
    return max(TEXT_FLOOR, TEXT_RATIO * size)


def _gunzip(data: bytes) -> bytes:
    parts: list[bytes] = []
    most = room = most_text(len(data))
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            part = stream.decompress(data, room + 1)
        except zlib.error as error:
            raise CorruptFileError(f"the gzip stream is damaged: {error}") from error
        if len(part) > room:
            raise CorruptFileError(f"the text is larger than {most} bytes, too much for its file")
        if not stream.eof:
            raise CorruptFileError("the gzip stream ends early (the file is cut)")
        parts.append(part)
        room -= len(part)
        data = stream.unused_data
    return b"".join(parts)


def parse_json(text: str) -> Any:
    """Strict JSON: no key twice, no NaN, no infinity."""
    try:
        return _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise CorruptFileError(f"not JSON: {reason}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        double = next(key for key in keys if keys.count(key) > 1)
        raise CorruptFileError(f"the key {double!r} stands twice in one object")
    return found


def _constant(name: str) -> NoReturn:
    raise CorruptFileError(f"not JSON: {name} is not a number")


def _float(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise CorruptFileError(f"the number {digits} is too large")
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant, parse_float=_float)
_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def decode_text(data: bytes) -> str:
    """The text of a log file; an empty one is refused."""
    raw = decompress(data)
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFileError("the text is not UTF-8", offset=error.start) from None
    if not text.strip():
        raise CorruptFileError("the file is empty")
    return text


def decode_object(data: bytes, *, path: str, version: int | None = None) -> dict[str, Any]:
    """A file that holds one JSON object."""
    try:
        found = parse_json(decode_text(data))
    except CorruptFileError as error:
        raise located(error, path, version) from None
    if not isinstance(found, dict):
        raise located(CorruptFileError("not a JSON object"), path, version)
    return found


def decode_lines(data: bytes, *, path: str, version: int | None = None) -> Iterator[Any]:
    """The JSON value of every line that is not blank."""
    for number, line in _numbered_lines(_text_of(data, path, version), path, version):
        try:
            yield parse_json(line)
        except CorruptFileError as error:
            raise located(error, path, version, number) from None


def _text_of(data: bytes, path: str, version: int | None) -> bytes:
    try:
        return decompress(data)
    except CorruptFileError as error:
        raise located(error, path, version) from None


def _numbered_lines(raw: bytes, path: str, version: int | None) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers; a file without any is refused."""
    number = start = seen = 0
    try:
        while start < len(raw):
            end = raw.find(b"\n", start)
            end = len(raw) if end < 0 else end
            number += 1
            line = _utf8(raw[start:end], start)
            start = end + 1
            if line.strip():
                seen += 1
                yield number, line
        if not seen:
            raise CorruptFileError("the file is empty")
    except CorruptFileError as error:
        raise located(error, path, version) from None


def _utf8(raw: bytes, start: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptFileError("the text is not UTF-8", offset=start + error.start) from None


def sole_object(data: bytes, *, path: str, version: int | None = None) -> dict[str, Any] | None:
    """The object of a file that holds nothing else, ``None`` when it holds more lines."""
    lines = _numbered_lines(_text_of(data, path, version), path, version)
    number, first = next(lines)
    if next(lines, None) is not None:
        return None
    try:
        found = parse_json(first)
    except CorruptFileError as error:
        raise located(error, path, version, number) from None
    return found if isinstance(found, dict) else None


def decode_actions(
    data: bytes,
    *,
    root: str,
    path: str,
    version: int | None = None,
    check: Callable[[Protocol], None] | None = None,
) -> list[Action]:
    """The actions of a version file or checkpoint of the table at ``root``.

    ``check`` is asked about the protocol before any other action is looked at.
    """
    text = _text_of(data, path, version)
    if check is not None and _PROTOCOL in text:
        for number, line in _numbered_lines(text, path, version):
            if f'"{Protocol.KEY}"' in line:
                head = _read_line(line, root, path, version, number)
                if isinstance(head, Protocol):
                    check(head)
    actions: list[Action] = []
    unknown = io.StringIO()
    for number, line in _numbered_lines(text, path, version):
        action = _read_line(line, root, path, version, number)
        if isinstance(action, UnknownActions):
            unknown.write(("\n" if unknown.tell() else "") + line.strip())
        elif action is not None:
            actions.append(action)
    return [*actions, UnknownActions(unknown.getvalue())] if unknown.tell() else actions


def _read_line(line: str, root: str, path: str, version: int | None, number: int) -> Action | None:
    try:
        action = parse_action(parse_json(line))
        return None if action is None else inside_table(action, root)
    except CorruptFileError as error:
        raise located(error, path, version, number) from None
    except UnsafePathError as error:
        raise UnsafePathError(error.message, path=path, version=version, hint=error.hint) from None


def actions_of(
    lines: Iterable[Any], *, root: str, path: str, version: int | None = None
) -> list[Action]:
    """The actions of decoded lines."""
    numbered = enumerate(lines, 1)
    found = (_read_line(_ENCODER.encode(v), root, path, version, n) for n, v in numbered)
    return [action for action in found if action is not None]


def located(
    error: CorruptFileError, path: str, version: int | None, line: int | None = None
) -> CorruptFileError:
    """The same refusal, saying where."""
    at = f"line {line}: " if line is not None else ""
    return CorruptFileError(
        at + error.reason, offset=error.offset, path=path, version=version, hint=REMEDY
    )


class Encoding(TypedDict):
    """How the bytes of a log file are written."""

    compressed: bool
    prefixed: bool


def encoding(config: Config) -> Encoding:
    """The form that the settings ask for."""
    return {
        "compressed": config["transaction.compression.enabled"],
        "prefixed": config["transaction.compression.codecPrefix"],
    }


def encode_lines(
    lines: Iterable[dict[str, Any]], *, compressed: bool = True, prefixed: bool = False
) -> bytes:
    """JSON lines as the bytes of a log file."""
    return _encoded(map(_ENCODER.encode, lines), compressed, prefixed)


def encode_actions(
    actions: Iterable[Action], *, compressed: bool = True, prefixed: bool = False
) -> bytes:
    """Actions as the bytes of a log file."""
    lines = (line for action in actions for line in action.json_lines())
    return _encoded(lines, compressed, prefixed)


def _encoded(lines: Iterable[str], compressed: bool, prefixed: bool) -> bytes:
    text = "".join(line + "\n" for line in lines)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 40) : error.end]
        raise CommitFailedError(
            f"half of a surrogate pair is no character, in {around!r}", hint="Nothing was written"
        ) from None
    if not compressed:
        return data
    return (CODEC_PREFIX if prefixed else b"") + compress(data)


def inside_table(action: Action, root: str) -> Action:
    """The action with every path relative to the table; ``UnsafePathError`` when one leaves it."""
    if isinstance(action, AddFile | RemoveFile | SkipFile | RemoveXRef | AddKeyMap | RemoveKeyMap):
        path = table_path(action.path, root)
        return action if path == action.path else replace(action, path=path)
    if isinstance(action, AddXRef):
        sources = tuple(table_path(source, root) for source in action.source_split_paths)
        path = table_path(action.path, root)
        return replace(action, path=path, source_split_paths=sources)
    if isinstance(action, IndexBlocks):
        files = tuple(
            replace(f, path=table_path(f.path, root), split=table_path(f.split, root))
            for f in action.files
        )
        return replace(action, files=files)
    return action
