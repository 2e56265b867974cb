"""The pruning rules once more, one split at a time, in plain Python.

Written from the rules, not from the kernels: values instead of keys, half-open intervals of bytes
instead of cuts, ``Decimal`` and ``datetime`` instead of hand-made parsers. Every verdict comes with
the name of the rule that gave it, which is how the tests count that each rule fires.
"""

from __future__ import annotations

import datetime
import json
import math
import re
import struct
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, InvalidOperation, localcontext
from itertools import takewhile
from typing import Any

import pyarrow as pa
from planner.rows import column_truth, order, tokens
from planner.tables import EPOCH, Split

from indextables.expr import predicate as p

CANNOT, MAY, MUST = 0, 1, 2
BOTTOM, TOP = (-1,), (2,)  # below and above every ``order`` tuple
INT_MIN, INT_MAX = -(1 << 63), (1 << 63) - 1


@dataclass
class Facts:
    """What is known about one column of one split."""

    low: Any = BOTTOM
    high: Any = TOP
    no_null: bool = False
    all_null: bool = False
    empty: bool = False


def verdict(node: p.Predicate, split: Split) -> tuple[int, str]:
    """The verdict of a whole predicate and the rule that decided it."""
    if isinstance(node, p.And):
        parts = [verdict(c, split) for c in node.children]
        return min(parts, key=lambda part: part[0])
    if isinstance(node, p.Or):
        parts = [verdict(c, split) for c in node.children]
        return max(parts, key=lambda part: part[0])
    if isinstance(node, p.Constant):
        return (MUST, "constant true") if node.truth is p.Truth.TRUE else (CANNOT, "constant")
    if isinstance(node, p.TextMatch | p.Undecided):
        return MAY, "undecided"
    if node.column.is_partition:
        return partition_verdict(node, split)
    known = split.measured
    if node.column.name not in known:
        known[node.column.name] = facts_of(node.column, split)
    return bounds_verdict(node, known[node.column.name])


# -- partitions ---------------------------------------------------------------------------------


def partition_verdict(node: Any, split: Split) -> tuple[int, str]:
    text = split.partition.get(node.column.root)
    if text == "__HIVE_DEFAULT_PARTITION__":
        text = None
    if text is None:
        value, known = None, True
    else:
        value, known = partition_value(text, node.column.dtype)
    if not known and is_never_true(node):
        return CANNOT, "partition false"
    if not known:
        return MAY, "partition unreadable"
    answer = column_truth(node, value)
    return (MUST, "partition true") if answer else (CANNOT, "partition false")


def is_never_true(node: Any) -> bool:
    """A test that no value passes, so that not even an unreadable one matters."""
    if not isinstance(node, p.Compare):
        return False
    value = node.value
    is_nan = isinstance(value, float) and math.isnan(value)
    above = node.op is p.Op.GT and (is_nan or value == 2**63 - 1)
    return above or (node.op is p.Op.LT and value == -(2**63))


def partition_value(text: str, dtype: pa.DataType) -> tuple[Any, bool]:
    t = pa.types
    if t.is_string(dtype):
        return text, True
    if t.is_floating(dtype):
        if text.lower() == "nan":
            return math.nan, True
        value = number(text)
        if value is None:
            return None, False
        return (to_single(value) if t.is_float32(dtype) else value), True
    if t.is_timestamp(dtype):
        value = moment(text, None, False, exact=True)
        return value, value is not None
    value = exact_value(text, dtype, False)
    other = exact_value(text, dtype, True)
    return value, value is not None and value == other


# -- bounds -------------------------------------------------------------------------------------


def facts_of(column: p.Column, split: Split) -> Facts:
    name, dtype = column.name, column.dtype
    stats = json.loads(split.stats) if split.stats else {}
    nulls = stats.get("nullCount", {}).get(name)
    rows = split.num_records
    low, high = split.lows.get(name), split.highs.get(name)
    facts = Facts(*domain(dtype), no_null=nulls == 0, empty=rows == 0)
    if pa.types.is_string(dtype):
        bounded = text_interval(facts, low, high, nulls, name, stats)
    else:
        bounded = value_interval(facts, low, high, nulls, dtype)
    tight = stats.get("tightBounds") is not False
    facts.all_null = rows > 0 and nulls == rows and not bounded and tight
    if pa.types.is_floating(dtype):
        raise_to_nan(facts, stats.get("nanCount", {}).get(name), nulls, rows, bounded, tight)
    return facts


def raise_to_nan(
    facts: Facts, nans: int | None, nulls: int | None, rows: int, bounded: bool, tight: bool
) -> None:
    if nans != 0:
        facts.high = order(math.nan)
    if nans and nulls is not None and nans + nulls == rows > 0 and not bounded and tight:
        facts.low = order(math.nan)


def value_interval(
    facts: Facts, low: str | None, high: str | None, nulls: int | None, dtype: pa.DataType
) -> bool:
    ends = [None, None]
    for k, text in enumerate((low, high)):
        if text is not None:
            value = stat_value(text, dtype, upper=k == 1, own=nulls is not None)
            ends[k] = None if value is None else order(value)
    if ends[0] is not None and ends[1] is not None and ends[0] > ends[1]:
        return True
    facts.low = facts.low if ends[0] is None else ends[0]
    facts.high = facts.high if ends[1] is None else ends[1]
    return ends != [None, None]


def domain(dtype: pa.DataType) -> tuple[Any, Any]:
    """The ends of a type's values, where 64 bits hold them all."""
    if pa.types.is_floating(dtype):
        return BOTTOM, order(math.nan)
    if pa.types.is_string(dtype) or pa.types.is_decimal(dtype):
        return BOTTOM, TOP
    return (0, INT_MIN), (0, INT_MAX)


def stat_value(text: str, dtype: pa.DataType, upper: bool, own: bool) -> Any:
    t = pa.types
    if t.is_floating(dtype):
        return float_bound(text, t.is_float32(dtype), upper)
    if t.is_timestamp(dtype):
        if own and re.fullmatch(r"[+-]?\d+", text):
            return in_range(int(text))
        return moment(text, bool(dtype.tz), upper)
    return exact_value(text, dtype, upper)


def exact_value(text: str, dtype: pa.DataType, upper: bool) -> Any:
    t = pa.types
    if t.is_boolean(dtype):
        return {"true": True, "false": False}.get(text)
    if t.is_date(dtype):
        return date_days(text)
    if t.is_integer(dtype):
        return in_range(int(text)) if re.fullmatch(r"[+-]?[0-9]+", text) else None
    if t.is_decimal(dtype):
        return decimal_value(text, dtype.scale, upper)
    return None


def in_range(value: int) -> int | None:
    return value if INT_MIN <= value <= INT_MAX else None


def date_days(text: str) -> int | None:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) or text.startswith("0000"):
        return None
    try:
        return (datetime.date.fromisoformat(text) - EPOCH.date()).days
    except ValueError:
        return None


def decimal_value(text: str, scale: int, upper: bool) -> int | None:
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)", text):
        return None
    with localcontext() as context:
        context.prec = 2000
        scaled = Decimal(text).scaleb(scale)
        found = scaled.to_integral_value(ROUND_CEILING if upper else ROUND_FLOOR)
    return in_range(int(found))


_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]{1,9}))?(Z|[+-][0-9]{2}:[0-9]{2})?"
)


def moment(text: str, zoned: bool | None, upper: bool, exact: bool = False) -> int | None:
    """Microseconds; ``zoned`` says whether the text must have a zone, ``None`` that it may."""
    match = _MOMENT.fullmatch(text)
    days = date_days(match[1]) if match else None
    if match is None or days is None:
        return None
    hour, minute, second = (int(match[k]) for k in (2, 3, 4))
    if hour > 23 or minute > 59 or second > 59:
        return None
    if zoned is not None and (match[6] is not None) != zoned:
        return None
    digits = match[5] or ""
    micros = (
        int(digits[:6].ljust(6, "0")) + (((days * 24 + hour) * 60 + minute) * 60 + second) * 10**6
    )
    micros -= zone_seconds(match[6]) * 10**6
    beyond = digits[6:].strip("0") != ""
    if exact:
        return None if beyond else micros
    if upper:
        micros += 999_999 if not digits else 999 if len(digits) <= 3 else int(beyond)
    return micros


def zone_seconds(text: str | None) -> int:
    if text in (None, "Z"):
        return 0
    assert text is not None
    seconds = int(text[1:3]) * 3600 + int(text[4:6]) * 60
    return -seconds if text[0] == "-" else seconds


def number(text: str) -> float | None:
    if re.fullmatch(r"[+-]?(Infinity|inf|Inf)", text):
        return -math.inf if text[0] == "-" else math.inf
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
        return None
    value = float(text)
    return None if math.isinf(value) else value


def to_single(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def float_bound(text: str, single: bool, upper: bool) -> float | None:
    value = number(text)
    if value is None:
        return None
    if single:
        return to_single(value)
    try:
        digits = len(Decimal(text).as_tuple().digits)
    except InvalidOperation:
        return value
    near = to_single(value)
    if digits > 9 or math.isinf(near):
        return value
    return max(value, near) if upper else min(value, near)


# -- strings ------------------------------------------------------------------------------------


def after_prefix(data: bytes) -> bytes:
    """The first byte string behind everything that starts with ``data``."""
    return data[:-1] + bytes([data[-1] + 1])


def text_interval(
    facts: Facts, low: str | None, high: str | None, nulls: int | None, name: str, stats: Any
) -> bool:
    """Half-open: ``high`` is the first byte string that is not inside."""
    own = nulls is not None
    whole = "truncated" in stats and name not in stats["truncated"]
    first: bytes | None = None
    last: bytes | None = None
    if low is not None:
        kept = low if own else re.split("[\U00010000-\U0010ffff]", low)[0]
        first = kept.encode()
    if high is not None:
        kept = high if own else re.sub("[?\ufffd]$", "", re.split("[\ue000-\uffff]", high)[0])
        is_open = not whole or len(kept) < len(high)
        if not is_open:
            last = kept.encode() + b"\0"
        elif kept:
            last = after_prefix(kept.encode())
    if first is not None and last is not None and contradicts(first, last):
        return True
    facts.low = BOTTOM if first is None else (0, first)
    facts.high = TOP if last is None else (0, last)
    return first is not None or last is not None


def contradicts(first: bytes, last: bytes) -> bool:
    """Seen in the first eight bytes, all that the kernels look at."""
    return first[:8].ljust(8, b"\0") > last[:8].ljust(8, b"\0") and first >= last


def text_ranges(node: Any) -> list[tuple[Any, Any]] | None:
    """What the leaf asks for, as half-open ranges; ``None``: no ranges."""
    if isinstance(node, p.InSet):
        return [point(v) for v in node.values]
    if isinstance(node, p.Compare):
        low, high = point(node.value)
        return {
            p.Op.EQ: [(low, high)],
            p.Op.NE: [(low, high)],
            p.Op.LT: [(BOTTOM, low)],
            p.Op.LE: [(BOTTOM, high)],
            p.Op.GT: [(high, TOP)],
            p.Op.GE: [(low, TOP)],
        }[node.op]
    prefix = literal_prefix(node)
    if prefix is None:
        return None
    return [((0, prefix.encode()), (0, after_prefix(prefix.encode())))]


def point(value: str) -> tuple[Any, Any]:
    return (0, value.encode()), (0, value.encode() + b"\0")


def literal_prefix(node: p.StringMatch | p.Like) -> str | None:
    """The prefix, ``None`` when there is none."""
    if isinstance(node, p.StringMatch):
        return node.text if node.kind is p.Match.PREFIX else None
    kinds = tokens(str(node.pattern), "\\")
    literal = takewhile(lambda token: token[0] == "char", kinds)
    return "".join(char for _, char in literal) or None


def is_covering(node: Any) -> bool:
    """A LIKE has more than its prefix: its ranges hold too much."""
    return isinstance(node, p.Like)


# -- relations ----------------------------------------------------------------------------------


def bounds_verdict(node: Any, facts: Facts) -> tuple[int, str]:
    if isinstance(node, p.NullTest):
        return null_verdict(node.is_null, facts)
    if facts.empty:
        return CANNOT, "empty split"
    if facts.all_null:
        return CANNOT, "all null"
    ranges, half_open = ranges_of(node)
    if ranges is None:
        return MAY, "no ranges"
    disjoint, inside = relate(ranges, facts, half_open)
    avoided = node.op is p.Op.NE if isinstance(node, p.Compare) else node.negated
    name = "StringMatch" if is_covering(node) else type(node).__name__
    if disjoint:
        return proved(f"{name} avoided outside", facts) if avoided else (CANNOT, f"{name} outside")
    if inside and not is_covering(node):
        return (CANNOT, f"{name} all excluded") if avoided else proved(f"{name} inside", facts)
    return MAY, "overlap"


def proved(rule: str, facts: Facts) -> tuple[int, str]:
    return (MUST, rule) if facts.no_null else (MAY, "nulls possible")


def null_verdict(is_null: bool, facts: Facts) -> tuple[int, str]:
    if facts.empty:
        return CANNOT, "empty split"
    if facts.all_null:
        return (MUST, "is null, all are") if is_null else (CANNOT, "is not null, all are null")
    if facts.no_null:
        return (CANNOT, "is null, none is") if is_null else (MUST, "is not null, none is null")
    return MAY, "null count unknown"


def ranges_of(node: Any) -> tuple[list[tuple[Any, Any]] | None, bool]:
    dtype = node.column.dtype
    if pa.types.is_string(dtype):
        return text_ranges(node), True
    if (
        isinstance(node, p.StringMatch | p.Like)
        or pa.types.is_binary(dtype)
        or pa.types.is_nested(dtype)
    ):
        return None, False
    values = node.values if isinstance(node, p.InSet) else (node.value,)
    if pa.types.is_decimal(dtype) and not all(INT_MIN < v < INT_MAX for v in values):
        return None, False
    if isinstance(node, p.InSet):
        return [(order(v), order(v)) for v in node.values], False
    at = order(node.value)
    return {
        p.Op.EQ: [(at, at)],
        p.Op.NE: [(at, at)],
        p.Op.LE: [(BOTTOM, at)],
        p.Op.GE: [(at, TOP)],
        p.Op.LT: [(BOTTOM, ("below", at))],
        p.Op.GT: [(("above", at), TOP)],
    }[node.op], False


def relate(ranges: list[tuple[Any, Any]], facts: Facts, half_open: bool) -> tuple[bool, bool]:
    """Does the interval miss all ranges; does it lie in them?"""
    low, high = facts.low, facts.high
    if half_open:
        disjoint = all(high <= a or low >= b for a, b in ranges)
        return disjoint, any(a <= low and high <= b for a, b in ranges)
    disjoint = all(misses(a, b, low, high) for a, b in ranges)
    inside = any(holds(a, b, low, high) for a, b in ranges)
    if not inside and len(ranges) > 1 and low[0] == high[0] == 0:
        inside = all_are_points(ranges, low[1], high[1])
    return disjoint, inside


def all_are_points(ranges: list[tuple[Any, Any]], first: Any, last: Any) -> bool:
    """Is every value from ``first`` to ``last`` one of the points?"""
    points = {a[1] for a, _ in ranges if a[0] == 0}
    for _ in range(len(points)):
        if first not in points:
            return False
        if first == last:
            return True
        first = math.nextafter(first, math.inf) if isinstance(first, float) else first + 1
    return False


def misses(a: Any, b: Any, low: Any, high: Any) -> bool:
    below = high <= a[1] if a[0] == "above" else high < a
    return below or (low >= b[1] if b[0] == "below" else low > b)


def holds(a: Any, b: Any, low: Any, high: Any) -> bool:
    starts = low > a[1] if a[0] == "above" else low >= a
    return starts and (high < b[1] if b[0] == "below" else high <= b)
