"""Bytes of log files: JSON lines, plain or compressed, and back.

A log file is JSON, one object a line. It may be plain text, a gzip stream, or two bytes (a magic
and a codec number, both 1) before a gzip stream; the first bytes tell which. We write gzip.

Reading refuses what cannot be trusted: an empty file, a damaged or cut stream, text that is not
UTF-8 or not JSON, an object with the same key twice, a number that is not a number, an action of
the wrong shape. Every refusal is ``CorruptFileError`` with the file, the version, the line and
what to do about it.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NoReturn

from indextables.errors import CommitFailedError, CorruptFileError, UnsafePathError
from indextables.log.actions import (
    Action,
    AddFile,
    AddXRef,
    IndexBlocks,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    parse_action,
)
from indextables.log.tablepath import table_path

GZIP_MAGIC = b"\x1f\x8b"
CODEC_PREFIX = b"\x01\x01"
MAX_TEXT_BYTES = 4 << 30
_LEVEL = 6

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


def _gunzip(data: bytes) -> bytes:
    parts: list[bytes] = []
    room = MAX_TEXT_BYTES
    while data:
        stream = zlib.decompressobj(wbits=31)
        try:
            part = stream.decompress(data, room)
        except zlib.error as error:
            raise CorruptFileError(f"the gzip stream is damaged: {error}") from error
        if not stream.eof:
            _refuse_unfinished(len(part) >= room)
        parts.append(part)
        room -= len(part)
        data = stream.unused_data
    return b"".join(parts)


def _refuse_unfinished(too_large: bool) -> NoReturn:
    if too_large:
        raise CorruptFileError(f"the text is larger than {MAX_TEXT_BYTES} bytes")
    raise CorruptFileError("the gzip stream ends early (the file is cut)")


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
    try:
        text = decode_text(data)
    except CorruptFileError as error:
        raise located(error, path, version) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                yield parse_json(line)
            except CorruptFileError as error:
                raise located(error, path, version, number) from None


def decode_actions(
    data: bytes, *, root: str, path: str, version: int | None = None
) -> list[Action]:
    """The actions of a version file or checkpoint of the table at ``root``."""
    lines = decode_lines(data, path=path, version=version)
    return actions_of(lines, root=root, path=path, version=version)


def actions_of(
    lines: Iterable[Any], *, root: str, path: str, version: int | None = None
) -> list[Action]:
    """The actions of decoded lines; kinds nobody knows are left out."""
    actions: list[Action] = []
    for number, line in enumerate(lines, 1):
        try:
            action = parse_action(line)
            if action is not None:
                actions.append(inside_table(action, root))
        except CorruptFileError as error:
            raise located(error, path, version, number) from None
        except UnsafePathError as error:
            raise UnsafePathError(
                error.message, path=path, version=version, hint=error.hint
            ) from None
    return actions


def located(
    error: CorruptFileError, path: str, version: int | None, line: int | None = None
) -> CorruptFileError:
    """The same refusal, saying where."""
    at = f"line {line}: " if line is not None else ""
    return CorruptFileError(
        at + error.reason, offset=error.offset, path=path, version=version, hint=REMEDY
    )


def encode_lines(lines: Iterable[dict[str, Any]], *, compressed: bool = True) -> bytes:
    """JSON lines as the bytes of a log file."""
    text = "".join(_ENCODER.encode(line) + "\n" for line in lines)
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError as error:
        around = text[max(0, error.start - 40) : error.end]
        raise CommitFailedError(
            f"half of a surrogate pair is no character, in {around!r}", hint="Nothing was written"
        ) from None
    return compress(data) if compressed else data


def encode_actions(actions: Iterable[Action], *, compressed: bool = True) -> bytes:
    """Actions as the bytes of a log file."""
    return encode_lines((action.envelope() for action in actions), compressed=compressed)


def inside_table(action: Action, root: str) -> Action:
    """The action with every path relative to the table; ``UnsafePathError`` when one leaves it."""
    if isinstance(action, AddFile | RemoveFile | SkipFile | RemoveXRef):
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
