"""The filter of one split, from the bytes the split's writer left for it.

A split carries its finished filter, so building a cross-reference reads a footer, ``split.json``
and the filter: ranges, not terms. Only where another fingerprint width is asked for than the split
holds are the keys computed again, from its rows. Pairs of neighbouring words
(``xref.build.includePositions``) are in no split's filter, so they cost a pass over the texts. A
split without keys of ours (written by another
program, or by a newer one) has no filter and stays uncovered.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr.keys import (
    HASH_KIND,
    KeyCollector,
    NeighbourCollector,
    distinct,
    has_neighbours,
)
from indextables.log.actions import AddFile
from indextables.mapping import DocMapping, FieldMapping
from indextables.native import BinaryFuse8, BinaryFuse16
from indextables.splits.read.reader import SplitReader
from indextables.storage.base import Store
from indextables.storage.machine import refuse_to_judge
from indextables.types import schema_to_json
from indextables.xref.file import SourceFilter

_FILTERS: dict[str, Any] = {"fuse8": BinaryFuse8, "fuse16": BinaryFuse16}


class NoFilterError(IndexTablesError):
    """A split has no filter that a cross-reference could hold."""

    code = "ITX-7000"


def source_filter(store: Store, add: AddFile, config: Config, filter_type: str) -> SourceFilter:
    """The filter of one split; ``NoFilterError`` where it has none."""
    reader = SplitReader.open(store, add, config=config)
    if reader.is_foreign:
        raise NoFilterError("the split was written by another program", path=add.path)
    info = reader.info
    if info.xref.get("hash") != HASH_KIND:
        raise NoFilterError(f"keys of kind {info.xref.get('hash')!r}", path=add.path)
    mapping = DocMapping(tuple(FieldMapping.from_dict(f) for f in info.xref["fields"]))
    paired = _paired(reader, mapping) if config["xref.build.includePositions"] else ()
    raw = None if paired else reader.fuse_filter(filter_type)
    num_keys = int(info.xref["num_keys"])
    if raw is None:
        keys = _keys(reader, mapping, paired)
        built = _FILTERS[filter_type].build(keys)
        num_keys = len(keys) if paired else num_keys
    else:
        built = _FILTERS[filter_type].from_postcard(raw)
    return SourceFilter(
        path=add.path,
        num_docs=reader.num_rows,
        footer_start=add.footer_start_offset or 0,
        footer_end=add.footer_end_offset or add.size,
        filter=built,
        num_keys=num_keys,
        mapping=mapping.to_json(),
        schema=schema_to_json(info.schema),
        neighbours=paired,
    )


def gathered(
    store: Store, add: AddFile, config: Config, filter_type: str
) -> SourceFilter | IndexTablesError:
    """The filter, or why the split stays uncovered; what is no fault of the split is raised."""
    try:
        return source_filter(store, add, config, filter_type)
    except (IndexTablesError, OSError, MemoryError) as error:
        refuse_to_judge(error, path=add.path)
        if isinstance(error, IndexTablesError):
            return error
        raise


def _paired(reader: SplitReader, mapping: DocMapping) -> tuple[str, ...]:
    """The columns whose neighbouring words can be keyed."""
    types = {f.name: f.type for f in reader.info.schema}
    return tuple(f.name for f in mapping.fields if has_neighbours(f, types[f.name]))


def _keys(reader: SplitReader, mapping: DocMapping, paired: tuple[str, ...]) -> NDArray[np.uint64]:
    """The keys of a split, read out of its rows."""
    collectors: list[tuple[str, KeyCollector | NeighbourCollector]] = []
    for field in mapping.fields:
        collectors.append((field.name, KeyCollector(field)))
        if field.name in paired:
            collectors.append((field.name, NeighbourCollector(field)))
    for batch in reader.rows.scan(columns=mapping.names):
        for name, collector in collectors:
            collector.add(batch.column(name))
    parts = [c.hashes() for _, c in collectors]
    return distinct(np.concatenate([np.empty(0, np.uint64), *parts]))
