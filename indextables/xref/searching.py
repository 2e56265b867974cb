"""Searching cross-references themselves: which splits may hold what is asked, without a table scan.

This is what the planner does with a filter, as a function for programs: ``XRefSearcher`` asks one
file, ``search_xrefs`` all of a table. A split is left out only where its filter proves that no row
matches. ``undecided`` marks a split that stays because its filter cannot tell (a range, a pattern),
and ``has_unevaluated_clauses`` says that some part of the question was of that kind, so that splits
may be listed that do not match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.expr.predicate import Predicate, TextMatch
from indextables.expr.querystring import parse_query
from indextables.log.actions import AddXRef
from indextables.native import hash_term
from indextables.storage.base import Store
from indextables.xref.evaluate import EXISTS, NOT_PRESENT, judge
from indextables.xref.file import LoadedXRef, read_xref
from indextables.xref.router import Wordings, XRefQueryRouter


@dataclass(frozen=True, slots=True)
class MatchingSplit:
    """A split that may hold what was asked for."""

    uri: str
    split_id: str
    footer_start: int
    footer_end: int
    undecided: bool = False


@dataclass(frozen=True)
class XRefSearchResult:
    """The splits that may match, and whether all of the question was decided."""

    matching_splits: tuple[MatchingSplit, ...]
    has_unevaluated_clauses: bool
    splits_asked: int

    def __len__(self) -> int:
        return len(self.matching_splits)

    def __iter__(self) -> Iterator[MatchingSplit]:
        return iter(self.matching_splits)


class XRefSearcher:
    """One cross-reference, open for questions."""

    def __init__(self, loaded: LoadedXRef) -> None:
        self.loaded = loaded

    @classmethod
    def open(cls, store: Store, xref: AddXRef | str) -> XRefSearcher:
        """Read a cross-reference of a table."""
        path = xref if isinstance(xref, str) else xref.path
        return cls(read_xref(store.read(path), path))

    def check(self, split_idx: int, field: str, value: str) -> bool:
        """May a split hold this term, spelled as the index spells it?"""
        key = hash_term(field, value, self.loaded.hash_kind)
        return bool(self.loaded.filters.probe(key)[split_idx])

    def search(self, query: Any, limit: int | None = None) -> XRefSearchResult:
        """The splits that may match a search string, a query or a bound predicate, in order."""
        _check_limit(limit)
        predicate = self._predicate(query)
        wordings = Wordings(predicate)
        found = tuple(_matching(self.loaded, wordings))[:limit]
        return XRefSearchResult(found, wordings.unevaluated, len(self.loaded.paths))

    def _predicate(self, query: Any) -> Predicate:
        if isinstance(query, Predicate):
            return query
        if isinstance(query, str):
            if not self.loaded.mappings:
                raise PlanningError(
                    "the cross-reference does not say how its splits are indexed",
                    path=self.loaded.path,
                    hint="Ask it with check(split, field, value)",
                )
            mapping, schema, _ = self.loaded.mappings[0]
            texts = [f.name for f in mapping.fields if f.type == "text"]
            query = parse_query(query, default_fields=texts, mapping=mapping, schema=schema)
        return TextMatch(query, tuple(ast.query_fields(query)), "", "indexquery")

    def __repr__(self) -> str:
        return f"XRefSearcher({self.loaded.path!r}, {len(self.loaded.paths)} splits)"


def search_xrefs(
    router: XRefQueryRouter, snapshot: Any, predicate: Predicate, limit: int | None = None
) -> XRefSearchResult:
    """The splits of a table that may match; those that no cross-reference covers come last."""
    _check_limit(limit)
    wordings = Wordings(predicate)
    found: dict[str, MatchingSplit] = {}
    seen: set[str] = set()
    for xref, loaded in router.loaded(snapshot.xrefs):
        paths = xref.source_split_paths
        live = snapshot.indices_of(paths) >= 0
        found |= {m.uri: m for m in _matching(replace(loaded, paths=paths), wordings, live)}
        seen.update(paths)
    for i, path in enumerate(snapshot.paths.to_pylist()):
        if path not in seen:
            ends = int(snapshot.footer_starts[i]), int(snapshot.footer_ends[i])
            found[path] = MatchingSplit(path, _split_id(path), *ends, undecided=True)
    uncovered = any(path not in seen for path in found)
    matching = tuple(found.values())[:limit]
    return XRefSearchResult(matching, wordings.unevaluated or uncovered, snapshot.num_files)


def _matching(
    loaded: LoadedXRef, wordings: Wordings, live: Any | None = None
) -> Iterator[MatchingSplit]:
    verdicts = np.full(len(loaded.paths), EXISTS, np.uint8)
    for number, kind in enumerate(loaded.mappings):
        mask = loaded.mapping_of == number
        if mask.any():
            judged = judge(wordings.of(kind, loaded.hash_kind), loaded.filters)
            verdicts[mask] = judged[mask]
    for i, path in enumerate(loaded.paths):
        if verdicts[i] != NOT_PRESENT and (live is None or live[i]):
            start, end = map(int, loaded.footers[i])
            undecided = bool(verdicts[i] == EXISTS)
            yield MatchingSplit(path, _split_id(path), start, end, undecided)


def _split_id(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".split")


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise PlanningError(f"a limit of {limit}", hint="Ask for at least one split")
