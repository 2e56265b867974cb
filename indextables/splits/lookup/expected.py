"""Where a predicate would be searched for in splits that are not open.

The fields are those a writer plans for the table's mapping before it has seen a row, and each leaf
goes through the compiler that runs over open splits; only words and bounds are missing. What is
foretold is therefore what will run, as far as the log can know: that nearly every value of a column
is different, say, shows in the split alone.
"""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa

from indextables.expr.predicate import And, Or, Predicate, referenced_columns
from indextables.mapping import DocMapping
from indextables.splits.format.fields import plan_fields, tantivy_schema
from indextables.splits.format.info import SplitInfo
from indextables.splits.lookup.nodes import All
from indextables.splits.lookup.predicates import PredicateCompiler
from indextables.splits.lookup.queries import QueryCompiler
from indextables.splits.lookup.terms import Terms
from indextables.splits.lookup.zones import Zones


def expected_compiler(schema: pa.Schema, mapping: DocMapping) -> PredicateCompiler:
    """The compiler of a split of this table without rows."""

    def words(name: str, prefix: str) -> pa.Array:
        return pa.array([], pa.string())

    fields = plan_fields(schema, mapping, schema.empty_table())
    info = SplitInfo(schema, 0, mapping, {}, {f.column: f for f in fields}, {})
    index: Any = SimpleNamespace(schema=tantivy_schema(fields))
    no_zones = Zones(np.zeros(0, np.int64), np.zeros(0, np.int64))
    terms = Terms(info, index, words, lambda: defaultdict(lambda: no_zones))
    return PredicateCompiler(terms, QueryCompiler(terms, words))


def searched_columns(compiler: PredicateCompiler, predicate: Predicate) -> list[str]:
    """Columns whose index narrows the rows: of some conjunct, or of every alternative."""
    if isinstance(predicate, And | Or):
        parts = [searched_columns(compiler, child) for child in predicate.children]
        every = isinstance(predicate, And) or all(parts)
        return list(dict.fromkeys(c for part in parts for c in part)) if every else []
    return [] if isinstance(compiler.node(predicate), All) else referenced_columns(predicate)
