"""One split, open for reading: rows, search, counts, members.

A reader holds bytes and plans, never an open index: that is asked from the process's workspace for
each search, so readers may be many, are safe to share between threads and survive a fork. Readers
themselves are kept in a small cache by store and path.

A split of which rows were deleted is the same split: its reader shares the bytes, and ``deleted``
says which rows are gone. Members, searches and row numbers are those of the whole split; code that
reads rows goes through ``access.SplitScan``, which leaves the deleted ones out.

A split may leave its rows elsewhere (``SplitRef.origin``), and a file of rows that no split covers
yet is read like a split of another program: rows are there, an index is not.
"""

from __future__ import annotations

import copy
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr import ast
from indextables.expr.ast import query_fields
from indextables.expr.predicate import TRUE, Predicate, TextMatch
from indextables.lazy import lazily
from indextables.log.actions import AddFile
from indextables.log.vectors.stored import deleted_rows
from indextables.lru import LRU
from indextables.mapping import DocMapping
from indextables.native import BinaryFuse8
from indextables.splits.format import members
from indextables.splits.format.info import SplitInfo
from indextables.splits.lookup.codes import Codes, parse_codes
from indextables.splits.lookup.hashtable import HashTable
from indextables.splits.lookup.nodes import All, Index, Node, Nothing
from indextables.splits.lookup.predicates import Found, PredicateCompiler
from indextables.splits.lookup.queries import QueryCompiler
from indextables.splits.lookup.search import IndexSearch
from indextables.splits.lookup.terms import Terms, likely_parts
from indextables.splits.lookup.words.reading import KEPT_BYTES, Words
from indextables.splits.lookup.words.running import WordSearch
from indextables.splits.lookup.zones import Zones, parse_zones
from indextables.splits.read.foreign import ForeignRows
from indextables.splits.read.ranked import ranked_indexes
from indextables.splits.read.source import BareSource, SplitRef, SplitSource
from indextables.splits.read.workspace import LazyIndex, OpenIndex, Part, workspace
from indextables.splits.rows import RowsReader
from indextables.splits.rows.layout import most_rows
from indextables.storage.base import Store
from indextables.storage.diskcache import CachingStore, cached

MAX_READERS = 2048
READER_BYTES = 256 << 20
CODES_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Hits:
    """Rows found. Unscored: ascending. Scored: best first, with their scores."""

    rows: NDArray[np.uint32]
    scores: NDArray[np.float32] | None = None


class SplitReader:
    """Reads one split."""

    def __init__(
        self, store: Store, ref: SplitRef, config: Config | None = None, *, whole: bool = False
    ) -> None:
        """With ``whole`` a small split is fetched in one go."""
        self.config = config or Config()
        store = cached(store, self.config)
        if isinstance(store, CachingStore):
            store.remember_size(ref.path, ref.size)
        bare = ref.origin is not None and ref.origin.is_bare
        self.source = BareSource(store, ref) if bare else SplitSource(store, ref, whole=whole)
        self._check_rows_fit()
        self.ref = ref
        self.path = ref.path
        self._store = store
        self._tables: dict[str, HashTable] = {}
        self._key = (store.identity, ref.path, ref.size, *ref.origin_key)

    def _check_rows_fit(self) -> None:
        """Refuse a number of rows that the directory of the rows cannot hold."""
        if self.source.info is None or not self.source.info.has_rows:
            return
        start, end = self.source.range_of(members.ROWS_DIRECTORY)
        if self.source.info.num_rows > most_rows(end - start):
            raise self.source.corrupt("split.json says more rows than the split can hold")

    @classmethod
    def open(
        cls,
        store: Store,
        add: AddFile | SplitRef,
        *,
        config: Config | None = None,
        whole: bool = False,
    ) -> SplitReader:
        """The reader of a split, from the cache if it was open before."""
        ref = SplitRef.of(add)
        key = (store.identity, ref.path, ref.size, ref.footer_start, *ref.origin_key)
        if ref.vector is None:
            return _readers.load(key, lambda: cls(store, ref, config, whole=whole))
        physical = ref.physical()
        return _readers.load(
            (*key, ref.vector.unique_id),
            lambda: cls.open(store, physical, config=config, whole=whole).narrowed(ref),
        )

    def narrowed(self, ref: SplitRef) -> SplitReader:
        """The same split with other rows deleted; the bytes and what was parsed are shared."""
        view = copy.copy(self)
        for kept in ("deleted",) if ref.origin is None else ("deleted", "rows", "foreign"):
            view.__dict__.pop(kept, None)
        view.ref = ref
        return view

    def opened_as(self, ref: SplitRef) -> SplitReader:
        """What another reference to the same rows leads to."""
        return SplitReader.open(self._store, ref, config=self.config)

    # -- what is in it ----------------------------------------------------------------------------

    @lazily
    def deleted(self) -> NDArray[np.uint32] | None:
        """The rows that are gone, ascending; ``None`` where all are there."""
        vector, origin = self.ref.vector, self.ref.origin
        if vector is None or vector.cardinality == 0:
            return None
        if origin is not None:
            return origin.deleted(self)
        return deleted_rows(self._store, vector, self.num_rows, self.path)

    @property
    def key(self) -> Hashable:
        """Different for each split."""
        return self._key

    @property
    def info(self) -> SplitInfo:
        if self.source.info is None:
            raise IndexTablesError("the split was written by another program", path=self.path)
        return self.source.info

    @property
    def is_foreign(self) -> bool:
        """Written by JVM IndexTables: rows can be read, the index cannot be searched."""
        return self.source.is_foreign

    @lazily
    def foreign(self) -> Any:
        """Rows without an index of ours: ``scan``, ``take``, ``typed``, ``mapping``."""
        origin = self.ref.origin
        return ForeignRows(self.source) if origin is None else origin.rows(self)

    @property
    def schema(self) -> pa.Schema:
        schema: pa.Schema = self.foreign.schema if self.is_foreign else self.info.schema
        return schema

    @property
    def num_rows(self) -> int:
        return int(self.foreign.num_rows if self.is_foreign else self.info.num_rows)

    @property
    def mapping(self) -> DocMapping:
        mapping: DocMapping = self.foreign.mapping if self.is_foreign else self.info.mapping
        return mapping

    def member(self, name: str) -> bytes:
        """A whole member, checked."""
        return self.source.member(name)

    def verify(self) -> None:
        """Compare every member with its checksum; the first difference is an error."""
        for name in self.source.footer.files:
            self.source.fetch(name)

    def fuse_filter(self, kind: str = "fuse8") -> bytes | None:
        """The filter over the split's keys, as it was written."""
        name = members.FUSE16 if kind == "fuse16" else members.FUSE8
        return self.source.member(name) if self.source.has(name) else None

    @lazily
    def key_filter(self) -> BinaryFuse8 | None:
        """The filter over the keys of all rows, deleted ones too."""
        raw = self.fuse_filter()
        return None if raw is None else BinaryFuse8.from_postcard(raw)

    # -- rows -------------------------------------------------------------------------------------

    @lazily
    def rows(self) -> Any:
        """``scan`` and ``take`` over the rows."""
        if self.is_foreign:
            return self.foreign
        if not self.info.has_rows:
            return self._rows_elsewhere()
        start, end = self.source.range_of(members.ROWS)
        rows = RowsReader(
            lambda ranges: self.source.member_ranges(members.ROWS, ranges),
            self.source.member(members.ROWS_DIRECTORY),
            end - start,
            path=self.path,
            payload=self.source.mapped_member(members.ROWS),
        )
        if rows.num_rows != self.info.num_rows:
            told = f"split.json says {self.info.num_rows} rows, their directory {rows.num_rows}"
            raise self.source.corrupt(told)
        return rows

    def _rows_elsewhere(self) -> Any:
        origin = self.ref.origin
        if origin is None:
            raise IndexTablesError(
                "the split belongs to a companion: its rows are in the table that it indexes",
                path=self.path,
                hint="Open the companion with indextables.open, which reads that table too",
            )
        return origin.rows(self)

    # -- search -----------------------------------------------------------------------------------

    @lazily
    def words(self) -> WordSearch | None:
        """What the lists of words can answer; ``None`` in splits that have no directory of them."""
        if not self.source.has(members.WORDS_DIRECTORY):
            return None
        return WordSearch(Words(self.source, self.info, self._key, _words), self.num_rows)

    def _open_index(self, needs: Iterable[Part] = ()) -> OpenIndex:
        return workspace().open(self._key, self.source, needs)

    @property
    def has_open_index(self) -> bool:
        """Has a search opened the index, and is it open still?"""
        return self._key in workspace()

    def session(self, predicate: Predicate = TRUE, *, scored: bool = False) -> Session:
        """What one query needs: translators, and the index once they need it.

        A predicate that hash tables, codes or zones answer leaves the index closed. With an index
        comes what the predicate's texts are likely to need of it.
        """
        needs = likely_parts(self.info, predicate, scored=scored)
        return Session(self, LazyIndex(lambda: self._open_index(needs)), scored=scored)

    def open_for(self, predicate: Predicate) -> None:
        """Open the index with all that scoring a search reads of it, if it reads anything."""
        if not self.is_foreign and (needs := likely_parts(self.info, predicate, scored=True)):
            self._open_index(needs).ensure(needs)

    def hash_table(self, column: str) -> HashTable:
        if column not in self._tables:
            name = members.hash_table(column)
            start, end = self.source.range_of(name)
            self._tables[column] = HashTable(
                lambda ranges: self.source.member_ranges(name, ranges),
                end - start,
                self.path,
                at_once=self.source.store.coalesce_gap,
            )
        return self._tables[column]

    def has_codes(self, column: str, dtype: pa.DataType) -> bool:
        """Is there a table of codes for this column of this type?"""
        if self.is_foreign:
            return False
        field = self.info.field(column)
        if field is None or not field.codes:
            return False
        return bool(self.info.schema.field(field.column).type == dtype)

    def codes(self, column: str) -> Codes:
        """The column as codes; see ``has_codes``."""
        field = self.info.field(column)
        assert field is not None
        name = members.codes(field.column)

        def load() -> Codes:
            dtype = self.info.schema.field(field.column).type
            return parse_codes(bytes(self.source.fetch(name)), dtype, self.num_rows, self.path)

        return _codes.load((self._key, name), load)

    def has_codes_at_hand(self, columns: Iterable[str]) -> bool:
        """Are the codes of these columns here already, with nothing to be fetched?"""
        found = [self.info.field(column) for column in columns]
        names = [members.codes(f.column) for f in found if f is not None]
        return all((self._key, n) in _codes or self.source.holds(n) for n in names)

    def load_codes(self, columns: Iterable[str]) -> None:
        """Read the codes of several columns in one go; ``codes`` then has them at hand."""
        found = [self.info.field(column) for column in columns]
        names = {f.column: members.codes(f.column) for f in found if f is not None}
        absent = {c: n for c, n in names.items() if (self._key, n) not in _codes}
        if len(absent) < 2:
            return
        for (column, name), raw in zip(
            absent.items(), self.source.fetch_many(list(absent.values())), strict=True
        ):
            dtype = self.info.schema.field(column).type
            parsed = parse_codes(bytes(raw), dtype, self.num_rows, self.path)
            _codes.put((self._key, name), parsed)

    @lazily
    def zones(self) -> dict[int, Zones]:
        """Bounds of the zones of numbers, by column number."""
        return parse_zones(self.source.member(members.ZONES), self.num_rows, self.path)

    def search(self, query: ast.Query, *, limit: int | None = None, scored: bool = False) -> Hits:
        """Rows that match a query exactly."""
        from indextables.splits.read.access import matching_rows, scored_rows

        if scored:
            return scored_rows(self, query, limit)
        rows = matching_rows(self, as_predicate(query))
        return Hits(rows if limit is None else rows[:limit])

    def count(self, query: ast.Query) -> int:
        from indextables.splits.read.access import count_split

        return count_split(self, as_predicate(query), partition_values={})

    def __repr__(self) -> str:
        return f"SplitReader({self.path!r}, {self.num_rows} rows)"


def as_predicate(query: ast.Query) -> Predicate:
    return TextMatch(query, tuple(query_fields(query)), "", "indexquery")


class Session:
    """One query against one index, which it keeps open."""

    def __init__(self, reader: SplitReader, index: LazyIndex, *, scored: bool) -> None:
        self.index = index
        self.search = IndexSearch(
            index, lambda: reader.words, reader.num_rows, reader.hash_table, reader.path
        )
        terms = Terms(reader.info, index, self.search.terms, lambda: reader.zones)
        self.queries = QueryCompiler(
            terms, self.search.terms, self.search.lists_words, scored=scored
        )
        self.predicates = PredicateCompiler(terms, self.queries)

    def find(self, predicate: Predicate) -> Found:
        return self.predicates.compile(predicate)

    def count(self, node: Node, num_rows: int) -> int | None:
        """How many rows a node has, where the index can say without listing them."""
        if isinstance(node, All):
            return num_rows
        if isinstance(node, Nothing):
            return 0
        return self.search.count(node) if isinstance(node, Index) else None


_readers: LRU[tuple[Hashable, ...], SplitReader] = LRU(
    MAX_READERS,
    most_bytes=READER_BYTES,
    size_of=lambda reader: reader.source.held if reader.ref.vector is None else 0,
)
_codes: LRU[Hashable, Codes] = LRU(most_bytes=CODES_BYTES, size_of=lambda codes: codes.nbytes)
_words: LRU[Hashable, Any] = LRU(most_bytes=KEPT_BYTES, size_of=lambda held: int(held.nbytes))


def forget_readers() -> int:
    """Drop every cached reader and open index of this process; says how many there were."""
    _words.clear()
    return _readers.clear() + _codes.clear() + ranked_indexes.clear() + workspace().clear()
