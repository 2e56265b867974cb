"""A predicate as a program over a snapshot's columns.

The tree keeps its shape: leaves become tests, AND takes the minimum of its parts' verdicts, OR
the maximum. A stage knows only some tests; a leaf it does not know is ``MAY_MATCH``, so an OR with
one such operand excludes nothing and an AND goes on without it. Later stages know what earlier ones
knew, which lets ``date = 'a' OR id = 5`` exclude splits once both sides are known.

Narrowing runs the parts of the top-level AND one after the other on the splits that are left.
Above a few thousand splits the whole AND first runs over zones, which gives the splits worth a
look and the order of the parts: fewest surviving zones first, then cheapest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, assert_never

import numpy as np

from indextables.expr import ast
from indextables.expr.predicate import (
    And,
    ColumnTest,
    Compare,
    Constant,
    InSet,
    Leaf,
    Like,
    Match,
    NullTest,
    Or,
    Predicate,
    StringMatch,
    TextMatch,
    Truth,
    Undecided,
    ValueTest,
    conjuncts,
)
from indextables.log.read.facts import Fact
from indextables.log.read.view import SnapshotView
from indextables.native import _prune
from indextables.planner.stages import stats
from indextables.planner.stages.partitions import PartitionColumn, partition_of, partition_table
from indextables.planner.stages.ranges import Ranges, ranges_of
from indextables.planner.stages.stats import bounds_of, zones_of
from indextables.planner.stages.verdict import (
    CANNOT_MATCH,
    MAY_MATCH,
    MUST_MATCH,
    Selection,
    Verdicts,
    all_may_match,
)

# Stages, as bits: what is known so far.
CONSTANT = 1
PARTITION = 2
BOUNDS = 4
EVERYTHING = CONSTANT | PARTITION | BOUNDS


class Node(Protocol):
    """A part of the program. ``None`` from ``run`` or ``zones`` means: nothing is known."""

    cost: int

    def run(self, selection: Selection | None, known: int) -> Verdicts | None: ...
    def zones(self, known: int) -> Verdicts | None: ...
    def can_exclude(self, known: int) -> bool: ...
    def leaf_nodes(self) -> Iterator[LeafNode]: ...


class LeafNode:
    """A leaf without a test: nothing is known about it."""

    stage = 0
    cost = 0

    def __init__(self, leaf: Leaf) -> None:
        self.leaf = leaf

    def test(self, selection: Selection | None) -> Verdicts | None:
        return None

    def test_zones(self) -> Verdicts | None:
        return None

    def run(self, selection: Selection | None, known: int) -> Verdicts | None:
        return self.test(selection) if self.stage & known else None

    def zones(self, known: int) -> Verdicts | None:
        return self.test_zones() if self.stage & known else None

    def can_exclude(self, known: int) -> bool:
        return bool(self.stage & known)

    def leaf_nodes(self) -> Iterator[LeafNode]:
        yield self


class ConstantNode(LeafNode):
    """The same verdict everywhere."""

    stage = CONSTANT

    def __init__(self, leaf: Leaf, verdict: int, count: int) -> None:
        super().__init__(leaf)
        self.verdict = verdict
        self.count = count

    def test(self, selection: Selection | None) -> Verdicts:
        return np.full(self.count if selection is None else len(selection), self.verdict, np.uint8)

    def test_zones(self) -> Verdicts:
        return np.full(-(-self.count // stats.ZONE), self.verdict, np.uint8)


class PartitionNode(LeafNode):
    """A test of a partition column."""

    stage = PARTITION
    cost = 1

    def __init__(self, leaf: Leaf, column: PartitionColumn, table: Verdicts) -> None:
        super().__init__(leaf)
        self.column = column
        self.table = table

    def test(self, selection: Selection | None) -> Verdicts:
        return _prune.gather(self.column.codes, self.table, selection)

    def test_zones(self) -> Verdicts:
        return _prune.gather_zones(self.column.zone_lows, self.column.zone_highs, self.table)


class RangeNode(LeafNode):
    """A test of a column's bounds."""

    leaf: ValueTest
    stage = BOUNDS

    def __init__(self, leaf: ValueTest, snapshot: SnapshotView, ranges: Ranges) -> None:
        super().__init__(leaf)
        self.snapshot = snapshot
        self.ranges = ranges
        self.column = leaf.column
        self.cost = 4 + (len(ranges.cuts) > 2) if ranges.cuts else 2 + (len(ranges.starts) > 1)

    def test(self, selection: Selection | None) -> Verdicts:
        column = bounds_of(self.snapshot, self.column.name, self.column.dtype)
        return self.ranges.verdicts(column, selection)

    def test_zones(self) -> Verdicts:
        column = zones_of(self.snapshot, self.column.name, self.column.dtype)
        return self.ranges.verdicts(column, None)


class NullNode(LeafNode):
    """A test of a column's null counts."""

    stage = BOUNDS
    cost = 2

    def __init__(self, leaf: ColumnTest, snapshot: SnapshotView, is_null: bool) -> None:
        super().__init__(leaf)
        self.snapshot = snapshot
        self.column = leaf.column
        self.is_null = is_null

    def test(self, selection: Selection | None) -> Verdicts:
        column = bounds_of(self.snapshot, self.column.name, self.column.dtype)
        return _prune.test_nulls(column.facts, selection, self.is_null)

    def test_zones(self) -> Verdicts:
        column = zones_of(self.snapshot, self.column.name, self.column.dtype)
        return _prune.test_nulls(column.facts, None, self.is_null)


class ValueNode(NullNode):
    """A test that no order helps with: all it is known to need is a value."""

    def __init__(self, leaf: ValueTest, snapshot: SnapshotView) -> None:
        super().__init__(leaf, snapshot, is_null=False)

    def test(self, selection: Selection | None) -> Verdicts:
        return np.minimum(super().test(selection), np.uint8(MAY_MATCH))

    def test_zones(self) -> Verdicts:
        return np.minimum(super().test_zones(), np.uint8(MAY_MATCH))


class BranchNode:
    """AND or OR of parts."""

    def __init__(self, children: tuple[Node, ...], *, is_and: bool) -> None:
        self.children = children
        self.is_and = is_and
        self.cost = sum(child.cost for child in children)

    def run(self, selection: Selection | None, known: int) -> Verdicts | None:
        return self._combined([child.run(selection, known) for child in self.children])

    def zones(self, known: int) -> Verdicts | None:
        return self._combined([child.zones(known) for child in self.children])

    def _combined(self, parts: list[Verdicts | None]) -> Verdicts | None:
        """Minimum or maximum; an unknown part joins as ``MAY_MATCH``."""
        combine = np.minimum if self.is_and else np.maximum
        found = [part for part in parts if part is not None]
        if not found:
            return None
        result = found[0]
        for part in found[1:]:
            result = combine(result, part)
        return result if len(found) == len(parts) else combine(result, np.uint8(MAY_MATCH))

    def can_exclude(self, known: int) -> bool:
        decide = any if self.is_and else all
        return decide(child.can_exclude(known) for child in self.children)

    def leaf_nodes(self) -> Iterator[LeafNode]:
        for child in self.children:
            yield from child.leaf_nodes()


@dataclass(frozen=True, slots=True)
class Options:
    """Which patterns may be used."""

    prefixes: bool = True
    suffixes: bool = True
    infixes: bool = True
    patterns: bool = True

    def allow(self, leaf: StringMatch | Like) -> bool:
        """Is this kind of pattern compared with statistics?"""
        if isinstance(leaf, Like):
            return self.patterns
        by_kind = {
            Match.PREFIX: self.prefixes,
            Match.SUFFIX: self.suffixes,
            Match.CONTAINS: self.infixes,
        }
        return by_kind[leaf.kind]


HAS_EMPTY: Fact[None, bool] = Fact()


class Program:
    """The compiled predicate of one plan."""

    def __init__(
        self, predicate: Predicate, snapshot: SnapshotView, options: Options | None = None
    ) -> None:
        self.predicate = predicate
        self.snapshot = snapshot
        self.count: int = snapshot.num_files
        self.options = options or Options()
        self.parts: tuple[Node, ...] = tuple(self._node(p) for p in conjuncts(predicate))

    # -- compiling ------------------------------------------------------------------------------

    def _node(self, predicate: Predicate) -> Node:
        match predicate:
            case Compare() | InSet() | NullTest():
                return self._column_node(predicate)
            case StringMatch() | Like():
                usable = self.options.allow(predicate)
                return self._column_node(predicate) if usable else LeafNode(predicate)
            case And() | Or():
                children = tuple(self._node(child) for child in predicate.children)
                return BranchNode(children, is_and=isinstance(predicate, And))
            case TextMatch():
                return self._text_node(predicate)
            case Undecided():
                return LeafNode(predicate)
            case Constant():
                verdict = MUST_MATCH if predicate.truth is Truth.TRUE else CANNOT_MATCH
                return ConstantNode(predicate, verdict, self.count)
            case _:
                assert_never(predicate)

    def _text_node(self, leaf: TextMatch) -> LeafNode:
        if isinstance(leaf.query, ast.MatchAll | ast.MatchNone):
            matches_all = isinstance(leaf.query, ast.MatchAll) != leaf.negated
            return ConstantNode(leaf, MUST_MATCH if matches_all else CANNOT_MATCH, self.count)
        return LeafNode(leaf)

    def _column_node(self, leaf: ColumnTest) -> LeafNode:
        if leaf.column.is_partition:
            column = partition_of(self.snapshot, leaf.column)
            return PartitionNode(leaf, column, partition_table(column, leaf))
        if self._is_shadowed(leaf.column.path):
            return LeafNode(leaf)
        if isinstance(leaf, NullTest):
            return NullNode(leaf, self.snapshot, leaf.is_null)
        ranges = ranges_of(leaf)
        if ranges is None:
            return ValueNode(leaf, self.snapshot)
        return RangeNode(leaf, self.snapshot, ranges)

    def _is_shadowed(self, path: tuple[str, ...]) -> bool:
        """A field whose dotted name is also a column's: statistics could be either's."""
        return len(path) > 1 and ".".join(path) in self.snapshot.stored_schema.names

    # -- running --------------------------------------------------------------------------------

    def narrow(self, selection: Selection | None, known: int) -> Selection | None:
        """The splits that are left when these stages are known."""
        parts = [part for part in self.parts if part.can_exclude(known)]
        if not parts:
            return selection
        if selection is None and self.count >= stats.ZONES_ABOVE:
            parts, selection = self._by_zones(parts, known)
        else:
            parts.sort(key=lambda part: part.cost)
        for part in parts:
            if selection is not None and not len(selection):
                break
            verdicts = part.run(selection, known)
            if verdicts is not None:
                selection = _prune.narrow(selection, verdicts)
        return selection

    def without_empty(self, selection: Selection | None) -> Selection | None:
        """Drop splits that are known to hold no rows."""
        rows = self.snapshot.live_records
        if not HAS_EMPTY.of(self.snapshot, None, lambda: bool((rows == 0).any())):
            return selection
        if selection is None:
            return np.flatnonzero(rows != 0).astype(np.int32)
        left: Selection = selection[rows[selection] != 0]
        return left

    def _by_zones(self, parts: list[Node], known: int) -> tuple[list[Node], Selection | None]:
        alive = all_may_match(-(-self.count // stats.ZONE))
        order: list[tuple[int, int, int]] = []
        for number, part in enumerate(parts):
            verdicts = part.zones(known)
            if verdicts is not None:
                np.minimum(alive, verdicts, out=alive)
                order.append((int(np.count_nonzero(verdicts)), part.cost, number))
        selection = _prune.expand_zones(alive, self.count, stats.ZONE)
        return [parts[number] for _, _, number in sorted(order)], selection

    def verdicts(self, selection: Selection | None) -> Verdicts:
        """What is known about each split when every stage has spoken."""
        whole = BranchNode(self.parts, is_and=True).run(selection, EVERYTHING)
        if whole is None:
            count = self.count if selection is None else len(selection)
            return np.full(count, MAY_MATCH if self.parts else MUST_MATCH, np.uint8)
        return whole

    def columns(self, stage: int) -> list[str]:
        """The columns a stage tests, in order of first use."""
        names: dict[str, None] = {}
        for part in self.parts:
            for node in part.leaf_nodes():
                if node.stage & stage and not isinstance(node, ConstantNode):
                    names[node.leaf.column.label] = None  # type: ignore[union-attr]
        return list(names)

    def knows(self, stage: int) -> bool:
        """Does any leaf belong to the stage?"""
        return any(node.stage & stage for part in self.parts for node in part.leaf_nodes())
