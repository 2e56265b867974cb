"""Values inside values: arrays, maps, and JSON text, read as Spark reads them.

``array_contains`` is NULL where the array or the value is, and where the value is not found but the
array holds a NULL. ``size`` of NULL is NULL, as in ANSI mode.

``get_json_object`` takes paths of names and positions (``$.a.b[0]``, ``$['a b']``); those with
wildcards are left to Spark. As in Spark the first of two equal names counts, text after the value
is not looked at, strings may have single quotes and hold control characters, a JSON null and text
that is not JSON are NULL. A string is returned as its characters, anything else as compact JSON;
numbers with a fraction are printed as doubles.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from indextables.expr.kernels import by_distinct

_STEP = re.compile(r"\.([^.\[*'\s][^.\[*']*)|\['([^'?*]+)'\]|\[(\d{1,9})\]")
_QUOTED = re.compile(r""""(?:[^"\\]|\\.)*"|'((?:[^'\\]|\\.)*)'""", re.S)
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SPECIAL = re.compile(r'["\\\x00-\x1f]')
Path = tuple[str | int, ...]
_NOTHING = object()


def array_contains(arrays: pa.Array, values: pa.Array) -> pa.Array:
    """Whether each array holds the value beside it."""
    rows = pc.list_parent_indices(arrays)
    items = pc.list_flatten(arrays).cast(values.type)
    sought = values.take(rows)
    same = pc.equal(items, sought)
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.and_(pc.is_nan(items), pc.is_nan(sought)))
    found = _any(rows, pc.fill_null(same, False), len(arrays))
    unsure = pc.and_(pc.invert(found), _any(rows, pc.is_null(items), len(arrays)))
    known = pc.and_(pc.and_(pc.is_valid(arrays), pc.is_valid(values)), pc.invert(unsure))
    return pc.if_else(known, found, pa.scalar(None, pa.bool_()))


def _any(rows: pa.Array, marks: pa.Array, count: int) -> pa.Array:
    hit = np.zeros(count, np.bool_)
    hit[rows.to_numpy()[marks.to_numpy(zero_copy_only=False)]] = True
    return pa.array(hit)


def size(values: pa.Array) -> pa.Array:
    """How many elements arrays, or entries maps, have."""
    if pa.types.is_map(values.type):
        values = _entries(values)
    return pc.list_value_length(values).cast(pa.int32())


def _entries(maps: Any) -> pa.Array:
    """Lists with as many elements as the maps have entries."""
    starts = maps.offsets.to_numpy()
    lengths = np.diff(starts).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    filler = pa.nulls(int(offsets[-1]))
    mask = pc.is_null(maps)
    return pa.ListArray.from_arrays(pa.array(offsets), filler, mask=mask)


# -- JSON text ------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def json_path(text: str) -> Path | None:
    """The steps of a path; ``None`` where it is not one that is understood here."""
    if not text.startswith("$"):
        return None
    steps: list[str | int] = []
    at = 1
    while at < len(text):
        match = _STEP.match(text, at)
        if match is None:
            return None
        steps.append(int(match[3]) if match[3] is not None else match[1] or match[2])
        at = match.end()
    return tuple(steps)


def get_json_object(texts: pa.Array, path: Path) -> pa.Array:
    """What lies at a path, as text."""
    return by_distinct(texts, pa.string(), lambda text: json_at(text, path))


def json_at(text: str, path: Path) -> str | None:
    """What lies at a path of one JSON text; ``None`` if nothing does."""
    value = _read(text)
    for step in path:
        value = _inside(value, step)
    if value is None or value is _NOTHING:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    try:
        return _written(value).encode("utf-8", "replace").decode("utf-8")
    except RecursionError:
        return None


class _Pairs(list[tuple[str, Any]]):
    """An object, with its names in order."""


def _refuse(name: str) -> Any:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_Pairs, parse_constant=_refuse, strict=False)


def _read(text: str) -> Any:
    text = text.lstrip(" \t\r\n")
    for attempt in (text, None):
        try:
            made = _QUOTED.sub(_double_quoted, text) if attempt is None else attempt
            return _DECODER.raw_decode(made)[0]
        except (ValueError, RecursionError):
            if "'" not in text:
                break
    return _NOTHING


def _double_quoted(match: re.Match[str]) -> str:
    inner = match[1]
    return match[0] if inner is None else '"' + inner.replace('"', '\\"') + '"'


def _inside(value: Any, step: str | int) -> Any:
    if isinstance(step, int):
        is_array = isinstance(value, list) and not isinstance(value, _Pairs)
        return value[step] if is_array and step < len(value) else _NOTHING
    if not isinstance(value, _Pairs):
        return _NOTHING
    return next((v for name, v in value if name == step and v is not None), _NOTHING)


def _written(value: Any) -> str:
    """A value as compact JSON."""
    if isinstance(value, _Pairs):
        return "{" + ",".join(f"{_string(n)}:{_written(v)}" for n, v in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    if isinstance(value, str):
        return _string(value)
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return _real(value) if isinstance(value, float) else str(value)


def _string(text: str) -> str:
    escaped = _SPECIAL.sub(lambda m: _SHORT.get(m[0]) or f"\\u{ord(m[0]):04X}", text)
    return f'"{escaped}"'


def _real(number: float) -> str:
    """A double as Java prints it."""
    if math.isinf(number):
        return '"Infinity"' if number > 0 else '"-Infinity"'
    if number == 0:
        return "-0.0" if math.copysign(1, number) < 0 else "0.0"
    digits, power = _digits(number), _power(number)
    sign = "-" if number < 0 else ""
    if -3 <= power < 7:
        return sign + _plain(digits, power)
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"


def _digits(number: float) -> str:
    """The shortest digits that mean a double."""
    mantissa = repr(abs(number)).split("e")[0].replace(".", "").lstrip("0")
    return mantissa.rstrip("0") or "0"


def _power(number: float) -> int:
    text = repr(abs(number))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if whole.strip("0"):
        return len(whole) - 1 + int(exponent or 0)
    return -(len(fraction) - len(fraction.lstrip("0")) + 1) + int(exponent or 0)


def _plain(digits: str, power: int) -> str:
    if power < 0:
        return "0." + "0" * (-power - 1) + digits
    padded = digits.ljust(power + 1, "0")
    return f"{padded[: power + 1]}.{padded[power + 1 :] or '0'}"
