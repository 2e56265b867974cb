"""The statistics of a search over the whole table: rows, tokens of columns, rows with a word.

All are sums over the live splits of a version, without deleted rows. A word is counted only in the
splits that a plan for it keeps, so a cross-reference spares the others; tokens are counted in each
split's own description. What one split says about itself is kept by split, so a new version of the
table asks only its new splits; sums are kept by version.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from indextables.expr import ast
from indextables.expr.analyzers import tokenize
from indextables.expr.arrays import one_array
from indextables.expr.predicate import Predicate, TextMatch, leaves
from indextables.expr.similarity import (
    ConstantLeaf,
    Ranking,
    Statistics,
    TextLeaf,
    Word,
    scored_columns,
    scored_leaf,
    scored_words,
)
from indextables.lru import LRU
from indextables.mapping import FieldMapping
from indextables.naming import stored_mapping
from indextables.planner.tasks import SplitTask
from indextables.splits.read.access import SplitScan
from indextables.splits.read.ranked import field_tokens
from indextables.splits.read.reader import as_predicate
from indextables.storage.pool import in_order
from indextables.table import execute

if TYPE_CHECKING:
    from indextables.table.table import Table

MOST_KEPT = 200_000
ROUNDING = 1.00001


@dataclass(frozen=True)
class Gathered:
    """Statistics of a search, and in which splits (by path) each of its words is."""

    statistics: Statistics
    where: Mapping[Word, Mapping[str, int]]


_kept: LRU[Hashable, Any] = LRU(MOST_KEPT)


def forget_statistics() -> None:
    """Drop all that is kept, in tests."""
    _kept.clear()


def gather(table: Table, query: ast.Query) -> Gathered:
    """What the scores of a query need to know of the table."""
    mapping = stored_mapping(table.mapping, table.schema)
    version = (table.store.identity, table.snapshot.metadata.id, table.version)
    columns = [name for name in scored_columns(query, mapping) if mapping.get(name) is not None]
    where = {}
    for word in scored_words(query, mapping):
        where[word] = _kept.load(
            (*version, "word", word), partial(_splits_with, table, word, query)
        )
    tokens = {}
    for name in columns:
        tokens[name] = _kept.load((*version, "tokens", name), partial(_tokens, table, name))
    rows = _kept.load((*version, "rows"), partial(_rows, table))
    counts = {word: sum(found.values()) for word, found in where.items()}
    return Gathered(Statistics(rows, mapping, tokens, counts), where)


def ranking(
    table: Any, predicate: Predicate, best: int | None = None, with_ties: bool = False
) -> Ranking:
    """What the relevance of a row under a filter is computed from."""
    texts = [leaf for leaf in leaves(predicate) if isinstance(leaf, TextMatch)]
    queries = tuple(dict.fromkeys(leaf.query for leaf in texts if not leaf.negated))
    return Ranking(queries, gather(table, ast.Bool(should=queries)).statistics, best, with_ties)


def _rows(table: Table) -> int:
    return execute.count(table, _plan(table, None))


def _plan(table: Table, predicate: Any) -> Any:
    from indextables.planner import Planner

    planner = Planner(table, xref_router=table.xref_router)
    return planner.plan(predicate, columns=())


def _splits_with(table: Table, word: Word, query: ast.Query) -> dict[str, int]:
    """How many live rows of each split hold a word; splits without it are left out.

    A split that is opened for it is likely to be searched next, so all that the query reads of its
    index comes in the same round trip.
    """
    predicate = as_predicate(ast.Term(*word))
    plan = _plan(table, predicate)

    def count(task: SplitTask) -> tuple[str, int]:
        (split,) = task.splits
        scan = execute.open_scan(table.store, task, split, table.schema, table.config)
        key = (scan.reader.key, scan.deleted_key, word)

        def counted() -> int:
            scan.reader.open_for(as_predicate(query))
            return scan.count()

        return split.path, _kept.load(key, counted)

    tasks = execute.single_splits(plan.tasks)
    found = in_order(count, tasks, execute.parallelism(table))
    return {path: number for path, number in found if number}


def _tokens(table: Table, column: str) -> int:
    field = stored_mapping(table.mapping, table.schema).get(column)
    assert field is not None

    def count(task: SplitTask) -> int:
        (split,) = task.splits
        scan = execute.open_scan(table.store, task, split, table.schema, table.config)
        key = (scan.reader.key, scan.deleted_key, "tokens", column, field)
        return int(_kept.load(key, lambda: split_tokens(scan, field)))

    tasks = execute.single_splits(_plan(table, None).tasks)
    return sum(in_order(count, tasks, execute.parallelism(table)))


def split_tokens(scan: SplitScan, field: FieldMapping) -> int:
    """How many tokens the live rows of a split have in a column; a whole value is one."""
    reader = scan.reader
    known = None if reader.is_foreign else reader.info.field(field.name)
    if known is None and not reader.is_foreign:
        return 0
    deleted = scan.deleted
    is_same = known is not None and (known.kind, known.tokenizer) == ("text", field.tokenizer)
    if known is not None and is_same and scan.can_subtract:
        gone = 0
        if deleted is not None and len(deleted):
            gone = _cut(scan.of_deleted_rows(), field)
        return field_tokens(reader.source, known.name) - gone
    return _cut(scan.narrowed(stored=True), field)


def _cut(scan: SplitScan, field: FieldMapping) -> int:
    total = 0
    for batch in scan.batches([field.name], None, scan.reader.config["read.batchRows"]):
        texts = one_array(batch.column(0))
        if not field.is_tokenized:
            total += len(texts) - texts.null_count
        elif pa.types.is_string(texts.type):
            cut = tokenize(texts, field.tokenizer or "default", field.token_length)
            total += int(np.asarray(cut.offsets)[-1])
    return total


def highest(query: ast.Query, gathered: Gathered, path: str) -> float:
    """No row of a split scores more than this."""
    statistics = gathered.statistics
    if isinstance(query, ast.MatchAll | ast.MatchNone):
        return 0.0
    if isinstance(query, ast.Boost):
        return max(highest(query.query, gathered, path) * query.factor, 0.0)
    if isinstance(query, ast.Bool):
        return sum(highest(part, gathered, path) for part in (*query.must, *query.should))
    leaf = scored_leaf(query, statistics.mapping)
    if isinstance(leaf, ConstantLeaf):
        return leaf.score
    held = [word for word in leaf.words if path in gathered.where.get(word, {})]
    if isinstance(leaf, TextLeaf) and leaf.is_phrase:
        whole = len(held) == len(leaf.words)
        return ROUNDING * float(statistics.weight(leaf.words)) if whole else 0.0
    return ROUNDING * sum(float(statistics.weight((word,))) for word in held)
