r"""JSON columns in the index: one term for each token at each path.

A row's scalars (``expr.jsonpaths``) become one text, cut at blanks by the index:

* ``=path`` says that a scalar lies at the path; it stands before the tokens of each scalar, so
  tokens of two array elements are never neighbours;
* ``:path\x1ftoken`` is a token at the path.

Characters of a path that would cut a term (blanks, ``\x1f``, backslash) are escaped. A path too
long for a term makes the column's index incomplete: it is then scanned.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from indextables.expr import jsonpaths
from indextables.expr.analyzers import tokenize
from indextables.mapping import DEFAULT_TOKEN_LENGTH

SEPARATOR = "\x1f"
MAX_PATH_BYTES = 32_768
_UNSAFE = re.compile(r"[\x00-\x20\\\x7f]")


class RowTexts(NamedTuple):
    """The text of each row (null where there is none) and what the index will lack."""

    texts: pa.Array
    complete: bool
    gaps: bool


def escape_path(path: str) -> str:
    return _UNSAFE.sub(lambda m: f"\\{ord(m[0]):02x}", path)


def marker(path: str) -> str:
    """The term that says a scalar lies at this path."""
    return "=" + escape_path(path)


def term_prefix(path: str) -> str:
    return ":" + escape_path(path) + SEPARATOR


class _Tokens(NamedTuple):
    rows: NDArray[np.int64]
    terms: Any
    gaps: bool


def row_texts(leaves: list[jsonpaths.Leaf], count: int) -> RowTexts:
    """What the index is given for each of ``count`` rows of a JSON column."""
    kept = [leaf for leaf in leaves if len(escape_path(leaf.path).encode()) <= MAX_PATH_BYTES]
    parts = [_leaf_tokens(leaf) for leaf in kept]
    gaps = any(part.gaps for part in parts)
    texts = _join(parts, count) if parts else pa.nulls(count, pa.string())
    return RowTexts(texts, len(kept) == len(leaves), gaps)


def _leaf_tokens(leaf: jsonpaths.Leaf) -> _Tokens:
    """Markers and tokens of the scalars of one leaf, in the order of their rows."""
    count = len(leaf.rows)
    prefix = term_prefix(leaf.path)
    dtype = leaf.values.type
    gaps = False
    if jsonpaths.is_analysed(dtype):
        found = tokenize(jsonpaths.scalar_texts(leaf.values), "default", DEFAULT_TOKEN_LENGTH)
        owners = np.repeat(np.arange(count), np.diff(found.offsets))
        tokens = found.texts
        inner = np.arange(len(tokens)) - found.offsets[:-1].repeat(np.diff(found.offsets))
        gaps = bool((found.positions != inner).any())
    elif pa.types.is_binary(dtype):
        owners, tokens = np.empty(0, np.int64), pa.array([], pa.string())
    else:
        owners, tokens = np.arange(count), jsonpaths.scalar_texts(leaf.values)
    terms = pc.binary_join_element_wise(pa.scalar(prefix), tokens.cast(pa.string()), "")
    markers = pa.array([marker(leaf.path)]).take(pa.array(np.zeros(count, np.int64)))
    everything = pa.concat_arrays([markers, terms])
    order = np.argsort(np.concatenate([np.arange(count), owners]), kind="stable")
    rows = np.concatenate([leaf.rows, leaf.rows[owners]])[order]
    return _Tokens(rows, everything.take(pa.array(order)), gaps)


def _join(parts: list[_Tokens], count: int) -> Any:
    rows = np.concatenate([part.rows for part in parts])
    terms = pa.concat_arrays([part.terms for part in parts])
    if len(parts) > 1:
        order = np.argsort(rows, kind="stable")
        rows, terms = rows[order], terms.take(pa.array(order))
    bounds = np.searchsorted(rows, np.arange(count + 1)).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(bounds), terms)
    texts = pc.binary_join(lists, " ")
    return pc.if_else(pa.array(np.diff(bounds) > 0), texts, pa.scalar(None, pa.string()))
