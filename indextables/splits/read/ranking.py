"""The best rows of one split, scored as one index over the whole table would score them.

``expr.similarity`` says what a score is. A query whose every part the index answers exactly becomes
one tantivy query over the split's ranked index (``read.ranked``), in which each word carries the
boost that turns its local idf into the table's. Anything else (moves in phrases, values found by
hashes, splits of other writers) is scored part by part over the rows that match.

tantivy skips blocks of postings that cannot reach the best rows found so far. What a block
can reach was computed with the split's own mean length; with the table's it may be more, at most
by the ratio of the two means. So more rows than wanted are asked for: if the last of them is worse
than the last wanted one by more than that ratio, no better row was skipped. Otherwise the
search is run once more without skipping.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.expr import ast
from indextables.expr.analyzers import analyze, tokenize
from indextables.expr.arrays import one_array
from indextables.expr.predicate import TRUE, Predicate
from indextables.expr.similarity import (
    K1,
    ConstantLeaf,
    Ranking,
    Statistics,
    TextLeaf,
    ValueLeaf,
    Word,
    idf,
    rounded_lengths,
    scored_leaf,
    term_scores,
)
from indextables.lazy import lazily
from indextables.splits.lookup.asks import parts, to_query
from indextables.splits.lookup.nodes import All, Index, Nothing
from indextables.splits.read.access import SplitScan
from indextables.splits.read.ranked import RankedIndex, field_tokens, ranked_indexes
from indextables.splits.read.reader import Hits, SplitReader, as_predicate
from indextables.splits.read.workspace import Part, parts_of

Rows = NDArray[np.uint32]
MORE = 16


class _NotPlainError(Exception):
    """The index alone cannot answer a part of the query exactly."""


class Ranker:
    """Scores rows of one split for one table version."""

    def __init__(self, scan: SplitScan, statistics: Statistics) -> None:
        """``scan`` reads the split without a filter, columns by their names in files."""
        self._scan = scan
        self._reader: SplitReader = scan.reader
        self._statistics = statistics
        self._mapping = statistics.mapping
        self._asked: Predicate = TRUE

    def best(self, query: ast.Query, limit: int | None) -> Hits:
        """The best rows (all of them without a limit), best first, ties by row number."""
        self._asked = as_predicate(query)
        if not self._reader.is_foreign:
            try:
                return self._plain(query, limit)
            except _NotPlainError:
                pass
        matching, scores = self._tree(query)
        rows = np.flatnonzero(matching).astype(np.uint32)
        order = np.argsort(-scores[rows], kind="stable")[:limit]
        return Hits(rows[order], scores[rows][order])

    # -- through the index ------------------------------------------------------------------------

    def _plain(self, query: ast.Query, limit: int | None) -> Hits:
        made = self._query(query)
        if made is None:
            return Hits(np.empty(0, np.uint32), np.empty(0, np.float32))
        ranked, total = self._ranked, self._reader.num_rows
        ranked.ensure(self._needs)
        if limit is None or limit >= total:
            return _by_row(*ranked.search(made, total))
        asked = min(2 * limit + MORE, total)
        rows, scores = ranked.search(made, asked)
        sure = len(rows) < asked or float(scores[-1]) * self._doubt < float(scores[limit - 1])
        if not sure:
            rows, scores = ranked.search(_without_skipping(made), limit)
        found = _by_row(rows, scores)
        assert found.scores is not None
        return Hits(found.rows[:limit], found.scores[:limit])

    @lazily
    def _session(self) -> Any:
        return self._reader.session(self._asked, scored=True)

    @lazily
    def _ranked(self) -> RankedIndex:
        reader, scan, means = self._reader, self._scan, self._means
        base = self._session.index.opened
        key = (reader.key, tuple(sorted(means.items())), scan.deleted_key)
        return ranked_indexes.load(
            key, lambda: RankedIndex(base, reader.source, means, scan.deleted)
        )

    @lazily
    def _means(self) -> dict[str, float]:
        """The table's mean lengths by the index's own names of fields."""
        fields = self._reader.info.fields.values()
        return {
            f.name: float(self._statistics.mean(f.column))
            for f in fields
            if f.kind == "text" and f.column in self._statistics.tokens
        }

    @property
    def _doubt(self) -> float:
        """By how much a block of postings may reach more than was written with it."""
        worst, rows = 1.0, self._reader.num_rows
        for name, mean in self._means.items():
            own = field_tokens(self._reader.source, name) / rows
            if own and mean:
                worst = max(worst, own / mean, mean / own)
        return worst * 1.00001

    @lazily
    def _needs(self) -> set[Part]:
        """Slices that the query reads, collected while it is made."""
        return set()

    def _query(self, query: ast.Query) -> Any:
        """The tantivy query with all scores right; ``None`` where nothing matches."""
        from tantivy import Query

        if isinstance(query, ast.MatchAll):
            return Query.const_score_query(Query.all_query(), 0.0)
        if isinstance(query, ast.MatchNone):
            return None
        if isinstance(query, ast.Boost):
            inner = self._query(query.query)
            return None if inner is None else Query.boost_query(inner, query.factor)
        return self._bool(query) if isinstance(query, ast.Bool) else self._leaf(query)

    def _bool(self, query: ast.Bool) -> Any:
        from tantivy import Occur, Query

        must = [self._query(q) for q in query.must]
        should = [q for q in map(self._query, query.should) if q is not None]
        needed = query.required_should
        if any(q is None for q in must) or needed > len(should):
            return None
        clauses = [(Occur.Must, q) for q in must] + [(Occur.Should, q) for q in should]
        clauses += [(Occur.MustNot, q) for q in map(self._query, query.must_not) if q is not None]
        if not must and not needed:
            clauses.append((Occur.Must, Query.const_score_query(Query.all_query(), 0.0)))
        return Query.boolean_query(clauses, needed) if needed else Query.boolean_query(clauses)

    def _leaf(self, query: ast.FieldQuery) -> Any:
        from tantivy import Query

        leaf = scored_leaf(query, self._mapping)
        if isinstance(query, ast.FullText):
            terms = self._cut(query, leaf)
            if terms is not None:
                return self._query(terms)
        node = self._session.queries.compile(query)
        if isinstance(node, Nothing):
            return None
        if isinstance(node, All) and node.exact and isinstance(leaf, ConstantLeaf):
            return Query.const_score_query(Query.all_query(), leaf.score)
        if not isinstance(node, Index) or not node.exact:
            raise _NotPlainError
        self._needs.update(parts(node.ask))
        asked = to_query(node.ask, self._session.index.schema)
        match leaf:
            case ConstantLeaf():
                return Query.const_score_query(asked, leaf.score)
            case ValueLeaf():
                return Query.const_score_query(asked, self._statistics.value_score(leaf))
            case TextLeaf():
                return self._boosted(asked, leaf)

    def _cut(self, query: ast.FullText, leaf: Any) -> ast.Query | None:
        """A text as the words that this split's analyzer makes of it."""
        field = self._reader.info.field(query.field)
        if field is None or field.kind != "text" or not isinstance(leaf, TextLeaf):
            return None
        tokens = dict.fromkeys(analyze(field.tokenizer, query.text, field.token_length))
        terms = tuple(ast.Term(query.field, token) for token in tokens)
        if not terms:
            return ast.MatchNone()
        return ast.Bool(should=terms) if query.operator == "or" else ast.Bool(must=terms)

    def _boosted(self, query: Any, leaf: TextLeaf) -> Any:
        """The query with the table's idf instead of the one that tantivy computes."""
        from tantivy import Query

        field = self._reader.info.field(leaf.column)
        if field is None or field.kind != "text" or (len(leaf.words) > 1 and not leaf.is_phrase):
            raise _NotPlainError
        self._session.index.ensure(parts_of(field.name))
        searcher, documents = self._session.index.searcher, self._ranked.documents
        local = np.float32(0)
        for _, word in leaf.words:
            found = searcher.doc_freq(field.name, word)
            if not found:
                return None
            local += idf(found, documents)
        factor = float(self._statistics.weight(leaf.words)) / float(local * (1 + K1))
        return Query.boost_query(query, factor)

    # -- part by part -----------------------------------------------------------------------------

    def _tree(self, query: ast.Query) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Which rows match, and the score of each that does."""
        total = self._reader.num_rows
        if isinstance(query, ast.MatchAll | ast.MatchNone):
            matching = np.zeros(total, np.bool_)
            if isinstance(query, ast.MatchAll):
                matching[self._scan.matching_rows()] = True
            return matching, np.zeros(total, np.float32)
        if isinstance(query, ast.Boost):
            matching, scores = self._tree(query.query)
            return matching, scores * np.float32(query.factor)
        return self._bool_tree(query) if isinstance(query, ast.Bool) else self._leaf_tree(query)

    def _bool_tree(self, query: ast.Bool) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        matching, scores = self._tree(ast.MatchAll())
        votes = np.zeros(len(matching), np.int64)
        for part in query.must:
            found, more = self._tree(part)
            matching &= found
            scores += more
        for part in query.should:
            found, more = self._tree(part)
            votes += found
            scores += more
        for part in query.must_not:
            matching &= ~self._tree(part)[0]
        matching &= votes >= query.required_should
        return matching, np.where(matching, scores, np.float32(0))

    def _leaf_tree(self, query: ast.FieldQuery) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        total = self._reader.num_rows
        matching, scores = np.zeros(total, np.bool_), np.zeros(total, np.float32)
        if not self._reader.is_foreign:
            try:
                found = self._plain(query, None)
                matching[found.rows], scores[found.rows] = True, found.scores
                return matching, scores
            except _NotPlainError:
                pass
        rows = self._scan.narrowed(as_predicate(query), stored=True).matching_rows()
        matching[rows] = True
        scores[rows] = self._scores_of(query, rows)
        return matching, scores

    def _scores_of(self, query: ast.FieldQuery, rows: Rows) -> Any:
        leaf = scored_leaf(query, self._mapping)
        if isinstance(leaf, ConstantLeaf):
            return leaf.score
        if isinstance(leaf, ValueLeaf):
            return self._statistics.value_score(leaf)
        texts = self._texts(leaf.column, rows)
        phrases = [leaf.words] if leaf.is_phrase else [(word,) for word in leaf.words]
        return self._text_scores(leaf.column, texts, phrases)

    def _texts(self, column: str, rows: Rows) -> pa.Array:
        scan = self._scan.narrowed(only=rows, stored=True)
        parts = list(scan.batches([column], None, self._reader.config["read.batchRows"]))
        return one_array(pa.chunked_array([p.column(0) for p in parts], pa.string()))

    def _text_scores(
        self, column: str, texts: pa.Array, phrases: Sequence[tuple[Word, ...]]
    ) -> NDArray[np.float32]:
        """BM25 of texts, cut here."""
        mapping = self._mapping.get(column)
        assert mapping is not None
        tokens = tokenize(texts, mapping.tokenizer or "default", mapping.token_length)
        offsets = np.asarray(tokens.offsets, np.int64)
        owners = np.repeat(np.arange(len(texts)), np.diff(offsets))
        lengths = rounded_lengths(np.diff(offsets))
        positions = np.asarray(tokens.positions, np.int64)
        words = np.array(tokens.texts.to_pylist(), object)
        total = np.zeros(len(texts), np.float32)
        mean = self._statistics.mean(column)
        for phrase in phrases:
            times = _occurrences(phrase, words, owners, positions, len(texts))
            weight = self._statistics.weight(phrase)
            total += np.where(times > 0, term_scores(weight, times, lengths, mean), np.float32(0))
        return total


def relevant(scan: SplitScan, ranking: Ranking | None) -> NDArray[np.float32]:
    """The relevance of every row of a split: the sum over the searches it satisfies."""
    total = np.zeros(scan.reader.num_rows, np.float32)
    if ranking is not None:
        ranker = Ranker(scan.narrowed(stored=True), ranking.statistics)
        for query in ranking.queries:
            hits = ranker.best(query, None)
            if hits.scores is not None:
                total[hits.rows] += hits.scores
    return total


def _occurrences(
    phrase: tuple[Word, ...], words: Any, owners: Any, positions: Any, count: int
) -> NDArray[np.int64]:
    """How often a word or phrase stands in each text."""
    span = int(positions.max(initial=0)) + len(phrase) + 1
    starts: Any = None
    for place, (_, word) in enumerate(phrase):
        at = np.flatnonzero(words == word)
        here = owners[at] * span + positions[at] - place + len(phrase)
        starts = here if starts is None else np.intersect1d(starts, here)
    return np.bincount((starts - len(phrase)) // span, minlength=count)[:count]


def _by_row(rows: Rows, scores: NDArray[np.float32]) -> Hits:
    """Best first; equal ones by row number."""
    order = np.lexsort((rows, -scores))
    return Hits(rows[order], scores[order])


def _without_skipping(query: Any) -> Any:
    """The same query in a form that tantivy scores row by row."""
    from tantivy import Occur, Query

    every = Query.const_score_query(Query.all_query(), 0.0)
    return Query.boolean_query([(Occur.Must, query), (Occur.Should, every)])
