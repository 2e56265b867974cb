"""Cases of another implementation of the same indexes, replayed, and those it left out."""

from __future__ import annotations

import json
import logging
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from columnindex_counters import counters
from columnindex_seed import seed_range

import indextables
from indextables.config import Config
from indextables.errors import IndexTablesError
from indextables.expr.bind import bind
from indextables.expr.predicate import TRUE, Predicate
from indextables.log.actions import DropIndex, IndexBlocks, IndexFile
from indextables.splits.lookup.colindex import bbidx1, compact
from indextables.splits.lookup.colindex.asking import ColumnIndexes, IndexAnswer
from indextables.splits.lookup.colindex.index import ColumnIndex
from indextables.splits.lookup.colindex.layout import VersionedBlockId, new_index_id
from indextables.splits.lookup.colindex.metrics import METRICS, IndexMetrics, stop_logging_metrics
from indextables.splits.lookup.colindex.opening import ROW_CACHE, IndexRefs, open_index
from indextables.splits.lookup.colindex.postings import Postings, build_postings
from indextables.splits.lookup.colindex.predicates import Exact, FilterAnalyzer, In, Range
from indextables.splits.lookup.colindex.values import IndexedValue, Kind
from indextables.splits.read.choose import Chooser
from indextables.splits.read.reader import SplitReader

# -- one index ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (Kind.INT, None),
        (Kind.INT, 42),
        (Kind.FLOAT, 3.14),
        (Kind.TEXT, "hello"),
        (Kind.BOOL, True),
        (Kind.TIMESTAMP, 1234567890),
    ],
)
def test_values_round_trip(kind: Kind, value: Any) -> None:
    made = IndexedValue.of(kind, value)
    assert made.value == value
    text = bbidx1.encoded_value(kind, made.key)
    reader = bbidx1._Reader(text, None)
    reader.kind = kind
    assert reader.value(0) == (made.key, len(text))


def three() -> Postings:
    rows = np.array([100, 200, 300], np.uint32)
    offsets = np.arange(4, dtype=np.int64)
    empty = np.empty(0, np.uint32)
    return Postings(Kind.INT, np.array([1, 2, 3]), offsets, rows, empty, 1000)


def test_three_values() -> None:
    for index in (
        ColumnIndex(three()),
        ColumnIndex.from_bytes(bbidx1.encode(three()), num_rows=1000),
    ):
        assert index.cardinality == 3
        assert index.exact(2).tolist() == [200]
        assert index.lookup(Range(1, 2)).tolist() == [100, 200]


def test_the_estimates() -> None:
    ten = ColumnIndex.build(pa.array([i % 10 for i in range(100)]))
    assert (ten.cardinality, ten.num_rows) == (10, 100)
    assert ten.estimate_selectivity(Exact(1)) == pytest.approx(0.1)
    assert ten.estimate_selectivity(In((1, 2, 3))) == pytest.approx(0.3)
    assert ten.estimate_selectivity(Range(3, 7)) == pytest.approx(0.5)
    # Five values: 0.2 is not above the threshold, although one value has four fifths of the rows.
    five = ColumnIndex.build(pa.array([0] * 80 + [1, 2, 3, 4] * 5))
    assert five.estimate_selectivity(Exact(0)) == 0.2
    assert five.share(Exact(0)) == 0.8


def test_a_text_has_one_row() -> None:
    index = ColumnIndex.build(pa.array(["other", "test"]))
    assert index.exact(b"test").tolist() == [1]


# -- filters --------------------------------------------------------------------------------------


def test_a_list_of_filters() -> None:
    schema = pa.schema([("email", pa.string()), ("age", pa.int64()), ("status", pa.string())])
    text = "email = 'a@x' AND age > 18 AND status = 'on'"
    found = FilterAnalyzer.extract_indexable(bind(text, schema))
    assert [f.column for f in found] == ["email", "age", "status"]
    (one,) = FilterAnalyzer.extract_indexable(bind("status IN ('a', 'b', 'c')", schema))
    assert one.predicate == In((b"a", b"b", b"c"))
    (age,) = FilterAnalyzer.extract_indexable(bind("18 < age", schema))
    assert seed_range(age) == (18, (1 << 63) - 1)


# -- names and actions ----------------------------------------------------------------------------


def test_names() -> None:
    block = VersionedBlockId(255, "v2.5")
    assert VersionedBlockId.parse(json.loads(json.dumps(str(block)))) == block
    for text in ("0a@v1", "14@v2"):
        assert str(VersionedBlockId.parse(text)) == text
    with pytest.raises(IndexTablesError, match="Invalid hex string"):
        VersionedBlockId.parse("zzzz@v1")
    ids = {new_index_id() for _ in range(3)}
    assert len(ids) == 3
    assert all(int(i, 16) >= 0 and len(i) == 8 for i in ids)


def test_actions_round_trip() -> None:
    files = (IndexFile("s.split", "_colindex/a/idx_3f_1.idx", 10, 4, 7, 1),)
    blocks = IndexBlocks("3f", "email", "BBIDX002", files)
    assert IndexBlocks.from_dict(json.loads(json.dumps(blocks.to_dict()))) == blocks
    drop = DropIndex("3f", "email", 5)
    assert DropIndex.from_dict(json.loads(json.dumps(drop.to_dict()))) == drop


# -- tables ---------------------------------------------------------------------------------------

CITY, MAIL = "East Leonard", "zunigavanessa@smith.info"


@pytest.fixture
def customers(tmp_path: Path) -> str:
    """A hundred customers; those that are asked for stand where the originals stood."""
    emails = [f"someone{i}@example.com" for i in range(100)]
    cities = [f"City {i}" for i in range(100)]
    ids = [f"{i:015X}" for i in range(100)]
    emails[79], cities[79] = "elizabethbarr@ewing.com", "Thomasland"
    emails[3], cities[0], ids[0] = MAIL, CITY, "DD37Cf93aecA6Dc"
    where = str(tmp_path / "customers")
    columns = {"Index": range(1, 101), "Customer Id": ids, "First Name": ["Sheryl"] * 100}
    columns |= {"City": cities, "Email": emails}
    indextables.write(pa.table({n: pa.array(v) for n, v in columns.items()}), where)
    return where


def test_customers(customers: str) -> None:
    query = "Email = 'elizabethbarr@ewing.com'"
    before = indextables.open(customers)
    expected = before.to_arrow(query).to_pylist()
    assert [(r["Index"], r["City"]) for r in expected] == [(80, "Thomasland")]
    assert "column_index" not in before.explain(query)
    assert before.count(f"Email = '{MAIL}'") == 1
    before.create_index("Email")
    assert before.indexes() == []
    table = indextables.open(customers)
    assert table.to_arrow(query).to_pylist() == expected
    assert "column_index(Email) rows=1/100 (1 %) candidates=1 row_groups=1/1" in table.explain(
        query
    )
    assert [h.operation for h in table.history(2)] == ["INDEX SPLITS", "DEFINE INDEX"]
    assert table.to_arrow(f"Email = '{MAIL}'").num_rows == 1
    assert table.to_arrow(f"Email IN ('{MAIL}', 'nobody@nowhere')").num_rows == 1
    assert table.to_arrow(f"City = '{CITY}'")["Index"].to_pylist() == [1]
    table.create_index("Customer Id")
    rows = indextables.open(customers).to_arrow("`Customer Id` = 'DD37Cf93aecA6Dc'")
    assert rows["First Name"].to_pylist() == ["Sheryl"]


def test_salaries(tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    above = [50_001.0 + i for i in range(798)]
    salaries = [*above, *[float(i) for i in range(134)], *[None] * 68]
    mails = [f"m{i % 985}@x" for i in range(1000)]
    indextables.write(pa.table({"id": range(1000), "salary": salaries, "email": mails}), where)
    for column in ("id", "salary", "email"):
        indextables.open(where).create_index(column)
        assert indextables.open(where).to_arrow().num_rows == 1000
    table = indextables.open(where)
    (row,) = (r for r in table.index_splits() if r.column == "salary")
    assert row.cardinality == 933
    found = table.to_arrow("salary > 50000.0")["salary"].to_pylist()
    assert len(found) == 798
    assert min(found) > 50_000
    assert table.count("salary IS NULL") == 68
    assert table.count("email = 'm3@x'") == 2
    table.rebuild_index("id")
    table.drop_index("id")
    indextables.open(where).create_index("id")
    assert indextables.open(where).count("id = 999") == 1
    with pytest.raises(IndexTablesError, match="No index found for column 'nonexistent'"):
        indextables.open(where).drop_index("nonexistent")


def test_which_index_is_meant(customers: str) -> None:
    table = indextables.open(customers)
    table.create_index("Email")
    table = indextables.open(customers)
    (add,) = table.snapshot.files()
    reader = SplitReader.open(table.store, add, config=table.config)
    refs = IndexRefs.of(table.snapshot)
    assert refs is not None
    assert open_index(table.store, reader, "Email", refs, table.config)[0] is not None
    assert open_index(table.store, reader, "City", refs, table.config) == (None, "")
    moved = IndexRefs({"Email": "00000000"})
    assert open_index(table.store, reader, "Email", moved, table.config)[0] is None
    # A log that was rewritten without the actions still has the definition: the file is found.
    known = IndexRefs(refs.definitions)
    query = bind(f"Email = '{MAIL}'", table.schema)

    def asked(predicate: Predicate, config: Config) -> IndexAnswer | None:
        return Chooser(reader, predicate, ColumnIndexes(table.store, reader, known, config)).indexed

    found = asked(query, table.config)
    assert found is not None
    assert found.rows.tolist() == [3]
    hidden = table.config.updated({"columnIndex.discover": False})
    assert asked(query, hidden) is None
    assert METRICS.lookups == {("Email", "hit"): 1, ("Email", "miss"): 1}
    assert asked(TRUE, table.config) is None


def test_the_first_of_equals(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    where = str(tmp_path / "t")
    twice = [i % 50 for i in range(100)]
    indextables.write(pa.table({"a": twice, "b": twice, "id": range(100)}), where)
    for column in ("b", "a"):
        indextables.open(where).create_index(column)
    with caplog.at_level(logging.DEBUG, "indextables.columnindex"):
        assert indextables.open(where).to_arrow("b = 7 AND a = 7").num_rows == 2
        assert indextables.open(where).to_arrow("a = 8 AND b = 8").num_rows == 2
    expected = "Selected index on column '{}' with selectivity 2% (best among 2 candidates)"
    chosen = [m for m in caplog.messages if m.startswith("Selected")]
    assert chosen == [expected.format("b"), expected.format("a")]


def test_rows_of_several_indexes_and_of_a_search(tmp_path: Path) -> None:
    where = str(tmp_path / "t")
    words = ["red fox", "blue fox", "red hen", "grey owl"]
    columns = {
        "id": range(4000),
        "a": [i % 9 for i in range(4000)],
        "b": [i % 7 for i in range(4000)],
        "text": [words[i % 4] for i in range(4000)],
    }
    indextables.write(pa.table({n: pa.array(v) for n, v in columns.items()}), where, text=["text"])
    for column in ("a", "b"):
        indextables.open(where).create_index(column)
    table = indextables.open(where)
    explained = table.explain("a = 3 AND b = 2")
    both = [i for i in range(4000) if i % 9 == 3 and i % 7 == 2]
    assert f"column_index(a, b) rows={len(both)}/4,000" in explained.replace("(b, a)", "(a, b)")
    assert table.to_arrow("a = 3 AND b = 2")["id"].to_pylist() == both
    query = "a = 3 AND b = 2 AND text indexquery 'fox'"
    expected = [i for i in both if i % 4 in (0, 1)]
    assert table.to_arrow(query)["id"].to_pylist() == expected
    assert table.count(query) == len(expected)
    assert not any(outcome == "error" for _, outcome in METRICS.lookups)


def test_a_second_question_is_remembered(customers: str) -> None:
    indextables.open(customers).create_index("Email")
    ROW_CACHE.clear()
    METRICS.reset()
    for _ in range(3):
        assert indextables.open(customers).to_arrow(f"Email = '{MAIL}'").num_rows == 1
    assert METRICS.cache == {"miss": 1, "hit": 2}
    assert METRICS.cache_size[0] == len(ROW_CACHE) == 1


def test_purge_keeps_the_files_of_live_splits(customers: str) -> None:
    table = indextables.open(customers, options={"purge.retentionCheckEnabled": False})
    (row,) = table.create_index("Email")
    stray = row.index_path.replace("idx_", "idx_00")
    table.store.put(stray, b"left over")
    now = int(1000 * 4e9)
    table.purge(older_than_hours=0, now_ms=now)
    assert [o.path for o in table.store.list("_colindex", recursive=True)] == [row.index_path]
    table.drop_index("Email")
    assert not list(table.store.list("_colindex", recursive=True))


# -- watching -------------------------------------------------------------------------------------


def test_the_line_of_an_explanation() -> None:
    rows = np.array([5, 900_000], np.uint32)
    assert IndexAnswer(("email",), rows, 1_000_000, 2).text == (
        "column_index(email) rows=2/1,000,000 (0.0002 %) candidates=2 row_groups=2/123"
    )


def test_the_lines_of_the_seed() -> None:
    lookups = [("email", "hit", 15), ("status", "fallback", 5), ("age", "miss", 3)]
    assert counters(lookups, hits=120, misses=8).lines() == [
        "Index lookups: email=15 (hit), status=5 (fallback), age=3 (miss)",
        "Cache stats: hits=120, misses=8, size=23/100",
        "Bytes read: email=1.2MB, status=500KB",
    ]


def test_logging_starts() -> None:
    try:
        assert indextables.init_logging_metrics() is True
        assert indextables.init_logging_metrics_with_interval(10) is True
    finally:
        stop_logging_metrics()


class Meter:
    """A meter that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[Any, ...]] = []

    def _tool(self, name: str, unit: str = "") -> Any:
        tool = ModuleType(name)
        for verb in ("add", "record", "set"):
            setattr(tool, verb, lambda n, labels=None: self.told.append((name, n, labels)))
        return tool

    create_counter = create_histogram = create_gauge = _tool


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    made = Meter()
    package, api = ModuleType("opentelemetry"), ModuleType("opentelemetry.metrics")
    api.get_meter = lambda name: made  # type: ignore[attr-defined]
    package.metrics = api  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry", package)
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", api)
    return made


def test_what_a_meter_is_told(meter: Meter) -> None:
    metrics = IndexMetrics()
    for outcome in ("hit", "miss", "error", "fallback"):
        metrics.lookup("email", outcome, 1.5)
    metrics.cache_size = (7, 100)
    metrics.cache_used(hit=True)
    metrics.cache_used(hit=False)
    metrics.read("email", 99)
    told = meter.told
    assert [t[2]["outcome"] for t in told if t[0] == "index.lookups"] == [
        "hit",
        "miss",
        "error",
        "fallback",
    ]
    assert told[1] == ("index.lookup_duration", 1.5, {"column": "email"})
    assert ("index.cache.operations", 1, {"operation": "hit"}) in told
    assert ("index.cache.operations", 1, {"operation": "miss"}) in told
    assert ("index.cache.size", 7, None) in told
    assert told[-1] == ("index.bytes_read", 99, {"column": "email"})
    assert len({t[0] for t in told}) == 5


def test_without_a_meter_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    metrics = IndexMetrics()
    metrics.lookup("email", "hit")
    metrics.read("email", 1)
    assert metrics.lines()[0] == "Index lookups: email=1 (hit)"


# -- the most frequent value ----------------------------------------------------------------------


@pytest.mark.parametrize("nulls", [0, 7])
def test_rows_that_are_not_stored(nulls: int) -> None:
    values = ["on"] * 800 + ["off"] * 150 + ["late"] * 50 + [None] * nulls
    order = np.random.default_rng(5).permutation(len(values))
    column = pa.array([values[i] for i in order])
    postings = build_postings(column)
    data = compact.encode(postings)
    index = ColumnIndex.from_bytes(data, num_rows=len(column))
    for word in ("on", "off", "late"):
        rows = [i for i, v in enumerate(column.to_pylist()) if v == word]
        assert index.exact(word.encode()).tolist() == rows
        assert index.count(Exact(word.encode())) == len(rows)
    assert index.lookup(Range(low=b"off")).tolist() == sorted(
        i for i, v in enumerate(column.to_pylist()) if v in ("on", "off")
    )
    assert np.array_equal(index.flat().rows, postings.rows)
    assert len(data) < len(column)
