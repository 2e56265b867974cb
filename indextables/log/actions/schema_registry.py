"""One copy of each document mapping: the hash, the registry, and how adds refer to it.

The hash of a mapping is the same whatever the order its writer chose: object keys are sorted,
arrays whose elements are all objects with a ``name`` are sorted by it, the result is written
without spaces, and the first 16 characters of the URL-safe base64 of its SHA-256 are the
reference. A text that is not JSON is hashed as it is. Keys sort by UTF-16 code units, as on the
JVM.

From protocol 3 on, a commit stores a mapping once, in the table's configuration under
``docMappingSchema.<reference>`` (the original text), and its adds carry ``docMappingRef``. Before
that the text stands in every add. Older writers hashed unsorted text, so one mapping may have
several references; above a threshold of distinct ones a checkpoint recomputes them all.

The registry and the mirror of column-index definitions (``indextables.columnIndex.<column>``) are
keys that writers keep for themselves: they merge instead of conflicting.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from indextables.log.actions import AddFile, Metadata

REGISTRY_PREFIX = "docMappingSchema."
COLUMN_INDEX_PREFIX = "indextables.columnIndex."
MANAGED_PREFIXES = (REGISTRY_PREFIX, COLUMN_INDEX_PREFIX)
_REFERENCE_LENGTH = 16


def canonical_json(text: str) -> str:
    """The form of a mapping that is hashed; a text that is not JSON stands for itself."""
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(_sorted(body), separators=(",", ":"), ensure_ascii=False)


def _sorted(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _sorted(node[key]) for key in sorted(node, key=_utf16)}
    if isinstance(node, list):
        items = [_sorted(item) for item in node]
        named = all(isinstance(i, dict) and isinstance(i.get("name"), str) for i in items)
        return sorted(items, key=lambda item: _utf16(item["name"])) if named else items
    return node


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


@lru_cache(maxsize=1024)
def reference_of(text: str) -> str:
    """The 16 characters by which adds refer to this mapping."""
    digest = hashlib.sha256(canonical_json(text).encode("utf-8", "surrogatepass")).digest()
    return base64.urlsafe_b64encode(digest).decode("ascii")[:_REFERENCE_LENGTH]


def bare_registry(registry: Mapping[str, str]) -> dict[str, str]:
    """A state's registry with bare references as keys."""
    return {key.removeprefix(REGISTRY_PREFIX): text for key, text in registry.items()}


def without_registry(configuration: Mapping[str, str]) -> dict[str, str]:
    """What a user configured: everything but the keys that writers keep for themselves."""
    return {k: v for k, v in configuration.items() if not k.startswith(MANAGED_PREFIXES)}


def merge_managed(
    given: Mapping[str, str], base: Mapping[str, str], latest: Mapping[str, str]
) -> dict[str, str]:
    """``given`` was made out of ``base``; carry over what others did to managed keys meanwhile.

    The registry only grows: a caller that leaves an entry out does not take it away, since splits
    may refer to it. A mirror that a caller leaves out is dropped.
    """
    merged = dict(given)
    for key, text in latest.items():
        if key.startswith(REGISTRY_PREFIX) or (
            key.startswith(COLUMN_INDEX_PREFIX) and given.get(key) == base.get(key)
        ):
            merged[key] = text
    for key in base:
        untouched = key.startswith(COLUMN_INDEX_PREFIX) and given.get(key) == base[key]
        if untouched and key not in latest:
            del merged[key]
    return merged


def with_registry(metadata: Metadata, registry: Mapping[str, str]) -> Metadata:
    """The metadata with these mappings registered; the same object when all of them are."""
    entries = {REGISTRY_PREFIX + reference: text for reference, text in registry.items()}
    if all(key in metadata.configuration for key in entries):
        return metadata
    return replace(metadata, configuration={**metadata.configuration, **entries})


def deduplicate(adds: Iterable[AddFile]) -> tuple[list[AddFile], dict[str, str]]:
    """The adds with references instead of texts, and the texts by reference."""
    registry: dict[str, str] = {}
    slim: list[AddFile] = []
    for add in adds:
        text = add.doc_mapping_json
        if text is not None:
            reference = reference_of(text)
            registry.setdefault(reference, text)
            add = replace(add, doc_mapping_ref=reference, doc_mapping_json=None)
        slim.append(add)
    return slim, registry


def restore(add: AddFile, registry: Mapping[str, str]) -> AddFile:
    """The add with its mapping's text in place, where the registry knows it."""
    if add.doc_mapping_json is not None or add.doc_mapping_ref is None:
        return add
    text = registry.get(add.doc_mapping_ref)
    return add if text is None else replace(add, doc_mapping_json=text)


def renormalize(
    adds: Sequence[AddFile], registry: Mapping[str, str], threshold: int
) -> tuple[list[AddFile], dict[str, str]]:
    """Recompute references when more than ``threshold`` distinct ones are in use.

    The registry that comes back holds exactly what the adds refer to. A reference whose text is
    lost stays as it is.
    """
    used = {add.doc_mapping_ref for add in adds if add.doc_mapping_ref is not None}
    if len(used) <= threshold:
        return list(adds), dict(registry)
    moved = {old: reference_of(registry[old]) if old in registry else old for old in used}
    kept: dict[str, str] = {}
    for old, new in sorted(moved.items()):
        if old in registry:
            kept.setdefault(new, registry[old])
    renamed = [_moved(add, moved) for add in adds]
    return renamed, kept


def _moved(add: AddFile, moved: Mapping[str, str]) -> AddFile:
    old = add.doc_mapping_ref
    if old is None or moved[old] == old:
        return add
    return replace(add, doc_mapping_ref=moved[old])
