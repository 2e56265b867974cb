"""Keys: the one canonical text of every indexed value, for building filters and for probing them.

A split's filter holds the hashes of ``field ":" text`` for every value of its indexed columns. A
filter answers "not here" only about keys it was built with, so both sides must spell a value alike:

* integers in decimal; bools ``true``/``false``;
* floats widened to double, in the shortest plain decimal form without exponent (``1``, ``0.1``,
  ``NaN``, ``inf``), and ``-0.0`` as ``0``;
* dates and timestamps as decimal nanoseconds since 1970 (a date is its midnight), at any year;
* decimals in plain text at the column's scale (``1.50``);
* binary in lower-case hex;
* exact strings as they are; tokenised text by each token of the field's analyzer;
* ip as the 32 hex digits of the (mapped) IPv6 address;
* JSON by ``field.path ":" token`` for the tokens of ``jsonpaths``; numbers and bools are one token.

Words that stand next to each other have a key of their own where a builder asks for it
(``NeighbourCollector``): the mix of their two hashes, so that a phrase can be looked for.

Nulls have no key, nor have columns that are not indexed. ``None`` from a function here means "a
filter cannot decide this"; the caller must then keep the split.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.expr import jsonpaths
from indextables.expr.analyzers import TokenHashes, analyze, tokenize
from indextables.expr.ipaddr import address_array, address_bytes
from indextables.mapping import FieldMapping
from indextables.native._f64 import format_f64, format_f64_array
from indextables.native._hash import hash_terms

HASH_KIND = "xxh64"
_DAY_SECONDS = 86_400


def canonical_text(dtype: pa.DataType, value: Any) -> str:
    """The canonical text of one physical value of a column of this type.

    Physical: days for dates, microseconds for timestamps, the unscaled integer for decimals.
    """
    t = pa.types
    if t.is_boolean(dtype):
        return "true" if value else "false"
    if t.is_floating(dtype):
        return format_f64(float(value) + 0.0)
    if t.is_integer(dtype):
        return str(int(value))
    if t.is_date(dtype):
        return str(int(value) * _DAY_SECONDS * 10**9)
    if t.is_timestamp(dtype):
        return str(int(value) * 1000)
    if t.is_decimal(dtype):
        return _plain_decimal(int(value), dtype.scale)
    if t.is_binary(dtype):
        return bytes(value).hex()
    return str(value)


def _plain_decimal(unscaled: int, scale: int) -> str:
    if scale <= 0:
        return str(unscaled * 10**-scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    return f"{'-' if unscaled < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def key_for_term(
    mapping: FieldMapping, dtype: pa.DataType, value: Any, path: str = ""
) -> str | None:
    """The text under which an index term is keyed; ``None`` where a filter cannot decide.

    ``value`` is physical for typed columns, a finished token for tokenised text and JSON.
    """
    if not mapping.indexed or mapping.type == "null":
        return None
    if mapping.type == "json":
        return value if isinstance(value, str) else jsonpaths.number_text(value)
    if path:
        return None
    if mapping.type == "ip":
        raw = address_bytes(str(value))
        return None if raw is None else raw.hex()
    if mapping.type == "text":
        return value if isinstance(value, str) else None
    return canonical_text(dtype, value)


def keys_for_equality(mapping: FieldMapping, dtype: pa.DataType, value: Any) -> list[str] | None:
    """Texts that must all be keyed if some row's column *equals* ``value``; ``None``: undecided.

    A tokenised column equal to a text holds every token of the text; an ip column equal to a text
    holds its address, unless the text is none.
    """
    if mapping.type == "json":
        return None
    if mapping.is_tokenized and mapping.indexed and isinstance(value, str):
        tokens = analyze(mapping.tokenizer or "default", value, mapping.token_length)
        return list(dict.fromkeys(tokens)) or None
    key = key_for_term(mapping, dtype, value)
    return None if key is None else [key]


def key_field(field: str, path: str = "") -> str:
    """The field part of a key."""
    return f"{field}.{path}" if path else field


# -- whole columns -------------------------------------------------------------------------------


class KeyCollector:
    """Collects the distinct key hashes of one column, array by array."""

    def __init__(self, mapping: FieldMapping, kind: str = HASH_KIND) -> None:
        self._mapping = mapping
        self._kind = kind
        self._parts: list[NDArray[np.uint64]] = []
        self._tokens: dict[str, TokenHashes] = {}

    def add(self, array: Any) -> None:
        mapping = self._mapping
        if not mapping.indexed or pa.types.is_null(array.type):
            return
        if mapping.type == "json":
            is_text = pa.types.is_string(array.type)
            self.add_leaves(jsonpaths.flatten(array, is_text=is_text))
        elif mapping.is_tokenized:
            self._tokens_of(mapping.name, mapping.tokenizer or "default").add(array)
        else:
            self._add_texts(mapping.name, canonical_texts(_distinct(array), mapping))

    def add_tokens(self, tokens: Any) -> None:
        """Add tokens of a tokenised column that were found elsewhere."""
        self._add_texts(self._mapping.name, tokens)

    def add_leaves(self, leaves: list[jsonpaths.Leaf]) -> None:
        """Add a JSON column that was flattened elsewhere."""
        for leaf in leaves:
            self._add_leaf(leaf)

    def _add_leaf(self, leaf: jsonpaths.Leaf) -> None:
        field = key_field(self._mapping.name, leaf.path)
        if jsonpaths.is_analysed(leaf.values.type):
            self._tokens_of(field, "default").add(jsonpaths.scalar_texts(_distinct(leaf.values)))
        elif not pa.types.is_binary(leaf.values.type):
            self._add_texts(field, jsonpaths.scalar_texts(leaf.values.unique()))

    def _tokens_of(self, field: str, tokenizer: str) -> TokenHashes:
        if field not in self._tokens:
            length = self._mapping.token_length
            self._tokens[field] = TokenHashes(field, tokenizer, length, self._kind)
        return self._tokens[field]

    def _add_texts(self, field: str, texts: Any) -> None:
        self._parts.append(distinct(hash_terms(field, texts, self._kind)))

    def hashes(self) -> NDArray[np.uint64]:
        """The distinct hashes so far, ascending."""
        parts = self._parts + [tokens.hashes() for tokens in self._tokens.values()]
        if len(parts) == 1:
            return parts[0]
        return distinct(np.concatenate(parts)) if parts else np.empty(0, np.uint64)


def has_neighbours(mapping: FieldMapping, dtype: pa.DataType) -> bool:
    """Is this a column of texts, whose words stand next to each other?"""
    texts = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return texts and mapping.type == "text" and mapping.is_tokenized and mapping.indexed


def neighbour_hashes(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The keys of pairs of words, from the keys of their words; the order of the two matters."""
    mixed = left * np.uint64(0x9E3779B97F4A7C15) + right
    mixed ^= mixed >> np.uint64(32)
    mixed *= np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


class NeighbourCollector:
    """Collects the distinct keys of the pairs of neighbouring words of one column."""

    def __init__(self, mapping: FieldMapping, kind: str = HASH_KIND) -> None:
        self._mapping = mapping
        self._kind = kind
        self._found = np.empty(0, np.uint64)

    def add(self, array: Any) -> None:
        mapping = self._mapping
        tokens = tokenize(array, mapping.tokenizer or "default", mapping.token_length)
        words = hash_terms(mapping.name, tokens.texts, self._kind)
        places = np.asarray(tokens.positions).astype(np.int64)
        together = places[1:] == places[:-1] + 1
        starts = np.asarray(tokens.offsets).astype(np.int64)[1:-1]
        together[starts[(starts > 0) & (starts < len(places))] - 1] = False
        pairs = neighbour_hashes(words[:-1][together], words[1:][together])
        self._found = distinct(np.concatenate([self._found, pairs]))

    def hashes(self) -> NDArray[np.uint64]:
        """The distinct keys so far, ascending."""
        return self._found


def distinct(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The distinct hashes, ascending (by sorting, which beats numpy's hashing ``unique``)."""
    ordered = np.sort(hashes)
    keep = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=keep[1:])
    return ordered[keep]


def _distinct(array: Any) -> Any:
    """The distinct values where that is cheap to find; duplicates cost time only."""
    if len(array) < 1024 or pa.types.is_boolean(array.type):
        return array
    head = array.slice(0, 1024)
    return array.unique() if len(head.unique()) < 768 else array


def canonical_texts(array: Any, mapping: FieldMapping) -> Any:
    """The canonical texts of a column of plain values (not text tokens, not JSON)."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    t = pa.types
    dtype = array.type
    if mapping.type == "ip":
        return _hex_texts(address_array(array).drop_null())
    if t.is_floating(dtype):
        return format_f64_array(pc.add(array.cast(pa.float64()), 0.0))
    if t.is_date(dtype):
        seconds = pc.multiply(array.cast(pa.int32()).cast(pa.int64()), _DAY_SECONDS)
        return _with_zeros(seconds.cast(pa.string()), 9)
    if t.is_timestamp(dtype):
        return _with_zeros(array.cast(pa.int64()).cast(pa.string()), 3)
    if t.is_decimal(dtype):
        return decimal_texts(array)
    if t.is_binary(dtype):
        return _hex_texts(array.drop_null())
    if t.is_integer(dtype) or t.is_boolean(dtype):
        return array.cast(pa.string())
    return array


def _with_zeros(texts: Any, zeros: int) -> Any:
    """Integers in decimal, times a power of ten."""
    longer = pc.binary_join_element_wise(texts, "0" * zeros, "")
    return pc.if_else(pc.equal(texts, "0"), texts, longer)


def decimal_texts(array: Any) -> Any:
    """Decimals in plain text at their scale; Arrow's own cast writes exponents."""
    scale = array.type.scale
    digits = unscaled_texts(array)
    if scale <= 0:
        return _with_zeros(digits, -scale)
    negative = pc.starts_with(digits, "-")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(padded, 0, -scale)
    fraction = pc.utf8_slice_codeunits(padded, -scale)
    plain = pc.binary_join_element_wise(whole, fraction, ".")
    return pc.if_else(negative, pc.binary_join_element_wise("-", plain, ""), plain)


def unscaled_texts(array: Any) -> Any:
    """The unscaled integers of decimals, as text."""
    whole = pa.decimal128(38, 0)
    raw = pa.Array.from_buffers(whole, len(array), array.buffers(), array.null_count, array.offset)
    return raw.cast(pa.string())


def _hex_texts(array: Any) -> Any:
    """Lower-case hex of a binary array without nulls."""
    width = array.type.byte_width if pa.types.is_fixed_size_binary(array.type) else None
    if width is not None:
        offsets = np.arange(len(array) + 1, dtype=np.int64) * width
        data = np.frombuffer(array.buffers()[1], np.uint8)[array.offset * width :]
        data = data[: len(array) * width]
    else:
        raw = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1]
        body = array.buffers()[2]
        data = np.frombuffer(body, np.uint8)[raw[0] : raw[-1]] if body else np.empty(0, np.uint8)
        offsets = (raw - raw[0]).astype(np.int64)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    text = np.stack([digits[data >> 4], digits[data & 15]], axis=1).reshape(-1)
    buffers = [None, pa.py_buffer(offsets * 2), pa.py_buffer(np.ascontiguousarray(text))]
    return pa.Array.from_buffers(pa.large_string(), len(array), buffers)
