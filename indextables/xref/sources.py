"""The filter of one split, from the bytes the split's writer left for it.

A split carries its finished filter, so building a cross-reference reads a footer, ``split.json``
and the filter: ranges, not terms. Only where another fingerprint width is asked for than the split
holds are the keys computed again, from its rows. A split without keys of ours (written by another
program, or by a newer one) has no filter and stays uncovered.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr.keys import HASH_KIND, KeyCollector, distinct
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
    raw = reader.fuse_filter(filter_type)
    if raw is None:
        built = _rebuild(reader, mapping, filter_type)
    else:
        built = _FILTERS[filter_type].from_postcard(raw)
    return SourceFilter(
        path=add.path,
        num_docs=reader.num_rows,
        footer_start=add.footer_start_offset or 0,
        footer_end=add.footer_end_offset or add.size,
        filter=built,
        num_keys=int(info.xref["num_keys"]),
        mapping=mapping.to_json(),
        schema=schema_to_json(info.schema),
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


def _rebuild(reader: SplitReader, mapping: DocMapping, filter_type: str) -> Any:
    collectors = {f.name: KeyCollector(f) for f in mapping.fields}
    for batch in reader.rows.scan(columns=list(collectors)):
        for name, collector in collectors.items():
            collector.add(batch.column(name))
    parts = [c.hashes() for c in collectors.values()]
    keys = distinct(np.concatenate([np.empty(0, np.uint64), *parts]))
    return _FILTERS[filter_type].build(keys)
