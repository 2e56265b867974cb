"""How the kept splits will be read: by a column index, by the search index, or by a scan.

The choice itself belongs to the reader of a split, which sees what the split really holds. Here
is what can be expected from the log alone, once for each residual.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from indextables.expr.predicate import TRUE, Predicate
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.mapping import DocMapping
from indextables.splits.lookup.expected import expected_compiler, searched_columns
from indextables.splits.lookup.predicates import PredicateCompiler

COMPILERS: Fact[None, PredicateCompiler] = Fact()


@dataclass(frozen=True, slots=True)
class ExpectedAccess:
    """``kind`` is ``column_index``, ``search`` or ``scan``."""

    kind: str
    detail: str


def expected_access(snapshot: SnapshotView, predicate: Predicate) -> ExpectedAccess:
    """The way splits with this residual are likely to be read."""
    if predicate == TRUE:
        return ExpectedAccess("scan", "all rows")
    indexed = _indexed_columns(snapshot, predicate)
    if indexed:
        return ExpectedAccess("column_index", f"column index of {', '.join(indexed)}")
    mapping = snapshot.table_mapping
    if mapping is None:
        return ExpectedAccess("scan", "no document mapping in the log")
    columns = searched_columns(_compiler(snapshot, mapping), predicate)
    if columns:
        return ExpectedAccess("search", f"index of {', '.join(columns)}")
    return ExpectedAccess("scan", "no index narrows it")


def _compiler(snapshot: SnapshotView, mapping: DocMapping) -> PredicateCompiler:
    """What compiles for the table's splits, made once per snapshot."""
    return COMPILERS.of(snapshot, None, lambda: expected_compiler(snapshot.stored_schema, mapping))


def _indexed_columns(snapshot: SnapshotView, predicate: Predicate) -> list[str]:
    """Columns with a defined index that a conjunct of the predicate can use."""
    definitions = snapshot.indexes.definitions
    if not definitions:
        return []
    from indextables.splits.lookup.colindex.predicates import extract_indexable

    return [f.column for f in extract_indexable(predicate) if f.column in definitions]


def index_lines(plan: Any, group: Any) -> list[str]:
    """What column indexes find in the splits of a residual, where they are few enough to ask."""
    planner = plan.planner
    store = planner.target.store
    if store is None or len(group.positions) > planner.config["columnIndex.driverLookup.maxSplits"]:
        return []
    from indextables.planner.tasks import index_refs, split_refs
    from indextables.splits.lookup.colindex.asking import ColumnIndexes
    from indextables.splits.read.choose import Chooser
    from indextables.splits.read.reader import SplitReader

    splits = split_refs(plan.snapshot, plan.selection[group.positions].tolist())
    refs = index_refs(plan.snapshot, splits)
    lines = []
    for split in splits if refs else ():
        reader = SplitReader.open(store, split, config=planner.config)
        indexes = ColumnIndexes(store, reader, refs, planner.config)
        found = Chooser(reader, group.predicate, indexes).indexed
        if found is not None:
            lines.append(f"{split.path} {found.text}")
    return lines
