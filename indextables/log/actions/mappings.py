"""Document mappings in manifests: each text once, under its canonical reference.

When entries are written, a mapping that stands inline in an entry (writers that do not share
mappings) moves to the registry and the entry gets a reference. When a table uses more than
``state.schema.renormalizeThreshold`` distinct references, they are recomputed: older writers hashed
mappings as they were written, so one mapping may have several. Both work on distinct values, not on
entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from indextables.log.actions.schema_registry import reference_of
from indextables.log.read.columns import StringColumn
from indextables.log.read.filecolumns import FileColumns


def renamed_references(
    files: FileColumns, registry: Mapping[str, str], threshold: int
) -> dict[str, str]:
    """References that change when they are recomputed; empty below the threshold."""
    used = files.distinct("docMappingRef")
    if len(used) <= threshold:
        return {}
    moved = {ref: reference_of(registry[ref]) for ref in used if ref in registry}
    return {old: new for old, new in moved.items() if old != new}


class MappingColumns:
    """The mapping fields of some files as they are to be written, and the texts they need."""

    def __init__(self, files: FileColumns, renamed: Mapping[str, str]) -> None:
        self.registry: dict[str, str] = {}
        refs = files.text_column("docMappingRef")
        inline = files.text_column("docMappingJson")
        if renamed or inline.valid.any():
            moved = _mapped(refs, lambda ref: renamed.get(ref, ref))
            refs = StringColumn.from_arrow(pc.coalesce(_mapped(inline, self._register), moved))
            inline = StringColumn.nulls(len(inline))
        self.columns = {"docMappingRef": refs, "docMappingJson": inline}

    def _register(self, text: str) -> str:
        reference = reference_of(text)
        self.registry[reference] = text
        return reference


def _mapped(column: StringColumn, change: Any) -> Any:
    """The column with every distinct text changed."""
    coded = column.to_arrow().dictionary_encode()
    texts = [None if text is None else change(text) for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.large_string()).take(coded.indices)
