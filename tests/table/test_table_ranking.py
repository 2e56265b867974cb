"""Scores over many splits equal those of one tantivy index over the same rows."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import tantivy
from tantivy import Occur, Query

import indextables
from indextables.errors import PlanningError
from indextables.expr import ast
from indextables.table.searching import Request, _Search, search
from indextables.table.statistics import forget_statistics, gather

VOCABULARY = [f"w{i}" for i in range(60)]
LEVELS = ["ERROR", "WARN", "INFO", "debug level", None]
CLOSE = 2e-6


def rows(rng: random.Random, count: int, first: int = 0) -> pa.Table:
    """Texts of very different lengths: a split's mean is far from the table's."""
    longest = rng.choice([3, 8, 40, 120])

    def text() -> str | None:
        if rng.random() < 0.05:
            return None
        words = [
            rng.choice(VOCABULARY[: rng.choice([4, 20, 60])])
            for _ in range(rng.randint(0, longest))
        ]
        return " ".join(words)

    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "title": pa.array([text() for _ in range(count)], pa.string()),
            "body": pa.array([text() for _ in range(count)], pa.string()),
            "level": pa.array([rng.choice(LEVELS) for _ in range(count)], pa.string()),
        }
    )


@dataclass
class Oracle:
    """One tantivy index over rows; document number = place in ``ids``."""

    index: Any
    schema: Any
    ids: list[int]

    @classmethod
    def of(cls, data: pa.Table) -> Oracle:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("title", tokenizer_name="default")
        builder.add_text_field("body", tokenizer_name="default")
        schema = builder.build()
        made = tantivy.Schema._internal_from_pythonized(_with_level(schema))
        index = tantivy.Index(made)
        writer = index.writer(100_000_000, num_threads=1)
        for row in data.to_pylist():
            document = tantivy.Document()
            for name in ("title", "body", "level"):
                if row[name] is not None:
                    document.add_text(name, row[name])
            writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        index.reload()
        assert index.searcher().num_segments <= 1
        return cls(index, made, data["id"].to_pylist())

    def scores(self, query: ast.Query) -> dict[int, float]:
        made = self._query(query)
        hits = self.index.searcher().search(made, max(len(self.ids), 1), False).hits
        return {self.ids[address.doc]: score for score, address in hits}

    def _query(self, query: ast.Query) -> Any:
        match query:
            case ast.Term():
                return Query.term_query(self.schema, query.field, query.value, "freq")
            case ast.Phrase():
                return Query.phrase_query(self.schema, query.field, list(query.terms), query.slop)
            case ast.Wildcard():
                pattern = query.pattern.replace("*", ".*")
                return Query.const_score_query(
                    Query.regex_query(self.schema, query.field, pattern), 1.0
                )
            case ast.Boost():
                return Query.boost_query(self._query(query.query), query.factor)
            case ast.Bool():
                clauses = [(Occur.Must, self._query(q)) for q in query.must]
                clauses += [(Occur.Should, self._query(q)) for q in query.should]
                clauses += [(Occur.MustNot, self._query(q)) for q in query.must_not]
                needed = query.required_should
                if needed:
                    return Query.boolean_query(clauses, needed)
                return Query.boolean_query(clauses)
        raise AssertionError(query)


def _with_level(schema: Any) -> Any:
    """Exact text is one token without a length."""
    indexing = {"record": "basic", "fieldnorms": False, "tokenizer": "raw"}
    options = {"indexing": indexing, "stored": False, "fast": False}
    text = {"record": "position", "fieldnorms": True, "tokenizer": "default"}
    entries = [
        {"name": n, "type": "text", "options": {"indexing": text, "stored": False, "fast": False}}
        for n in ("title", "body")
    ]
    return {"inner": [*entries, {"name": "level", "type": "text", "options": options}]}


def random_query(rng: random.Random, depth: int = 2) -> ast.Query:
    kind = rng.random()
    if depth == 0 or kind < 0.35:
        return random_leaf(rng)
    if kind < 0.42:
        return ast.Boost(random_query(rng, depth - 1), rng.choice([0.5, 2.0, 3.25]))
    must = tuple(random_query(rng, depth - 1) for _ in range(rng.randint(0, 2)))
    should = tuple(random_query(rng, depth - 1) for _ in range(rng.randint(0 if must else 1, 3)))
    must_not = (random_leaf(rng),) if rng.random() < 0.25 else ()
    wanted = rng.randint(1, len(should)) if should and rng.random() < 0.3 else None
    return ast.Bool(must, should, must_not, wanted)


def random_leaf(rng: random.Random) -> ast.Query:
    field = rng.choice(["title", "body"])
    kind = rng.random()
    if kind < 0.6:
        return ast.Term(field, rng.choice([*VOCABULARY, "absent"]))
    if kind < 0.75:
        return ast.Phrase(
            field, tuple(rng.choice(VOCABULARY[:6]) for _ in range(rng.randint(2, 3)))
        )
    if kind < 0.85:
        return ast.Wildcard(field, rng.choice(["w1*", "w2*", "zz*"]))
    return ast.Term("level", rng.choice(["ERROR", "WARN", "debug level", "none"]))


def written(rng: random.Random, path: str, splits: int) -> indextables.Table:
    size = rng.randint(1, 60)
    parts = [rows(rng, size, number * size) for number in range(splits)]
    first = splits * size
    indextables.write(pa.concat_tables(parts), path, text=["title", "body"], rows_per_split=size)
    table = indextables.open(path)
    if rng.random() < 0.5:
        low = rng.randrange(first)
        table.delete(f"id BETWEEN {low} AND {low + rng.randint(0, first // 4)}")
    if rng.random() < 0.4:
        table.refresh().merge()
    return indextables.open(path)


def check(table: indextables.Table, oracle: Oracle, query: ast.Query, limit: int) -> None:
    expected = oracle.scores(query)
    request = Request(query, columns=["id"], limit=limit)
    found = search(table, request)
    ids, scores = found["id"].to_pylist(), found["_score"].to_pylist()
    assert len(ids) == min(limit, len(expected)), query
    assert len(set(ids)) == len(ids)
    for one, score in zip(ids, scores, strict=True):
        assert score == pytest.approx(expected[one], rel=CLOSE, abs=1e-9), (query, one)
    best = sorted(expected.values(), reverse=True)[: len(ids)]
    assert scores == pytest.approx(best, rel=CLOSE, abs=1e-9), query
    assert scores == sorted(scores, reverse=True)


def run(seed: int, folder: Path, tables: int, queries: int) -> None:
    for number in range(tables):
        rng = random.Random(f"{seed}-{number}")
        splits = rng.choice([1, 2, 5, 12]) if tables < 20 else rng.randint(1, 50)
        table = written(rng, str(folder / f"t{number}"), splits)
        oracle = Oracle.of(table.to_arrow())
        for _ in range(queries):
            check(table, oracle, random_query(rng), rng.choice([1, 3, 10, 200, 5000]))


def test_scores_equal_one_index(tmp_path: Path, seed: int) -> None:
    run(seed, tmp_path, tables=5, queries=100)


@pytest.mark.slow
def test_scores_equal_one_index_long(tmp_path: Path, seed: int) -> None:
    run(seed, tmp_path, tables=40, queries=250)


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    """Split 0 is full of short texts with a word that is rare elsewhere."""
    path = str(tmp_path_factory.mktemp("uneven") / "table")
    rng = random.Random(5)
    short = pa.table({"id": range(400), "body": ["common rare"] * 200 + ["common"] * 200})
    texts = [" ".join(rng.choice(VOCABULARY) for _ in range(50)) for _ in range(400)]
    texts[7] += " rare"
    long = pa.table({"id": range(400, 800), "body": texts})
    for data in (short, long):
        indextables.write(data, path, text=["body"], mode="append" if data is long else "error")
    return indextables.open(path)


def test_local_statistics_are_the_old_way(uneven: indextables.Table) -> None:
    whole = uneven.search("rare OR w1", columns=["id"], limit=800)
    local = uneven.search("rare OR w1", columns=["id"], limit=800, statistics="local")
    assert sorted(whole["id"].to_pylist()) == sorted(local["id"].to_pylist())
    assert whole["_score"].to_pylist() != local["_score"].to_pylist()
    with pytest.raises(PlanningError, match="statistics"):
        uneven.search("rare", statistics="galactic")


def test_splits_that_cannot_enter_are_not_searched(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(8):
        words = ["needle needle here"] * 20 if number == 5 else ["hay stack"] * 20
        data = pa.table({"id": range(20), "body": words})
        indextables.write(data, path, text=["body"], mode="append" if number else "error")
    table = indextables.open(path)
    searched: list[int] = []
    kept = _Search._best
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_Search, "_best", lambda self, n, s: searched.append(n) or kept(self, n, s))
        patch.setattr("indextables.table.searching.parallelism", lambda table: 2)
        found = table.search("needle OR hay", columns=["body"], limit=10)
    assert set(found["body"].to_pylist()) == {"needle needle here"}
    assert len(searched) <= 2


def test_statistics_are_gathered_once_for_a_version(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(3):
        data = pa.table({"body": [f"word other{number}"] * 5})
        indextables.write(data, path, text=["body"], mode="append" if number else "error")
    table = indextables.open(path)
    forget_statistics()
    counted: list[str] = []
    from indextables.splits.read.access import SplitScan

    kept = SplitScan.count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            SplitScan, "count", lambda self: counted.append(self.reader.path) or kept(self)
        )
        found = gather(table, ast.Term("body", "word"))
        assert found.statistics.rows_with == {("body", "word"): 15}
        assert found.statistics.tokens == {"body": 30}
        assert len(counted) == 3
        gather(table, ast.Term("body", "word"))
        assert len(counted) == 3
        indextables.write(pa.table({"body": ["word"]}), path, mode="append")
        newer = gather(indextables.open(path), ast.Term("body", "word"))
        assert newer.statistics.rows_with == {("body", "word"): 16}
        assert len(counted) == 4


def test_phrases_with_moves_and_hashed_values_score_alike_in_any_layout(tmp_path: Path) -> None:
    rng = random.Random(11)
    data = rows(rng, 1500).append_column("key", pa.array([f"k{i}" for i in range(1500)]))
    queries = ['"w1 w2"~3 OR key:k77', "body:(w1 w2) OR key:k8", '"w1 w"* OR level:ERROR']
    found = []
    for number, per_split in enumerate((1500, 1100, 90)):
        path = str(tmp_path / f"t{number}")
        indextables.write(data, path, text=["title", "body"], rows_per_split=per_split)
        table = indextables.open(path)
        each = [table.search(q, columns=["id"], limit=1500) for q in queries]
        found.append(
            [dict(zip(t["id"].to_pylist(), t["_score"].to_pylist(), strict=True)) for t in each]
        )
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert one == pytest.approx(same, rel=CLOSE)
    assert all(found[0])


def test_nothing_found_and_empty_tables(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    indextables.write(pa.table({"body": ["a"]}), path, text=["body"])
    table = indextables.open(path)
    assert table.search("absent").num_rows == 0
    assert table.search("*").num_rows == 1
    table.delete("true")
    assert indextables.open(path).search("a").num_rows == 0
    assert np.isfinite(table.search("a")["_score"][0].as_py())


def test_rows_of_a_deletion_vector_do_not_count(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = pa.table(
        {"id": range(40), "body": [f"word rare{i % 4} x{' y' * (i % 7)}" for i in range(40)]}
    )
    indextables.write(data, path, text=["body"], rows_per_split=20)
    indextables.open(path).delete("id % 5 = 0")
    table = indextables.open(path)
    assert all(split.deletion_vector is not None for split in table.snapshot.files())
    query = ast.Bool(should=(ast.Term("body", "word"), ast.Term("body", "rare1")))
    statistics = gather(table, query).statistics
    live = [row for row in data.to_pylist() if row["id"] % 5]
    assert statistics.rows == len(live) == 32
    assert statistics.tokens["body"] == sum(len(row["body"].split()) for row in live)
    assert statistics.rows_with["body", "rare1"] == sum("rare1" in row["body"] for row in live)
    found = table.search("word OR rare1", columns=["id"], limit=100)
    again = str(tmp_path / "u")
    indextables.write(pa.Table.from_pylist(live), again, text=["body"])
    plain = indextables.open(again).search("word OR rare1", columns=["id"], limit=100)
    scores = dict(zip(plain["id"].to_pylist(), plain["_score"].to_pylist(), strict=True))
    got = dict(zip(found["id"].to_pylist(), found["_score"].to_pylist(), strict=True))
    assert got == pytest.approx(scores, rel=CLOSE)
