"""Whole queries on 1 M log rows: ours against DuckDB over Parquet, Lance with indices, pyarrow.

One table of one split (``BENCH_ROWS`` rows), the same rows in every peer, every result compared
before it is timed. Times are the least of several rounds, in processor time of the whole process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import logdata
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import indextables

lance = pytest.importorskip("lance")
from lance.query import FullTextOperator, MatchQuery, PhraseQuery  # noqa: E402

ROWS = int(os.environ.get("BENCH_ROWS", "1000000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "5"))
Work = Callable[[], Any]


class Peers:
    """The same rows four times."""

    def __init__(self, folder: Path) -> None:
        self.rows = logdata.make(ROWS, seed=42)
        self.built: dict[str, float] = {}
        self.waited: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self._ours(folder)
        self._parquet(folder)
        self._lance(folder)
        self.request_id = self.rows["request_id"][ROWS // 3].as_py()
        self.words = self._words()
        self.many = [v.as_py() for v in self.rows["request_id"][:: max(1, ROWS // 1000)]][:1000]
        stamps = pc.sort_indices(self.rows["ts"]).to_numpy()
        self.span = [
            self.rows["ts"][int(stamps[i])].as_py() for i in (ROWS // 2, ROWS // 2 + ROWS // 1000)
        ]

    def _timed(self, name: str, work: Work) -> None:
        start, clock = time.process_time(), time.perf_counter()
        work()
        self.built[name] = time.process_time() - start
        self.waited[name] = time.perf_counter() - clock

    def _ours(self, folder: Path) -> None:
        path = str(folder / "ours")
        options = {"spark.indextables.xref.autoIndex.enabled": "false"}
        self._timed(
            "ours", lambda: indextables.write(self.rows, path, text=["message"], options=options)
        )
        self.table = indextables.open(path)
        self.sizes["ours"] = self.table.snapshot.num_bytes

    def _parquet(self, folder: Path) -> None:
        self.parquet = str(folder / "rows.parquet")
        self._timed("parquet", lambda: pq.write_table(self.rows, self.parquet, compression="zstd"))
        self.sizes["parquet"] = os.path.getsize(self.parquet)
        self.duck = duckdb.connect()
        self.duck.execute(f"CREATE VIEW rows AS SELECT * FROM '{self.parquet}'")
        self.arrow = ds.dataset(self.parquet)

    def _lance(self, folder: Path) -> None:
        def build() -> None:
            self.lance = lance.write_dataset(self.rows, str(folder / "rows.lance"))
            self.lance.create_scalar_index("request_id", index_type="BTREE")
            for column in ("host", "service", "level"):
                self.lance.create_scalar_index(column, index_type="BITMAP")
            for column in ("ts", "status", "user_id", "latency"):
                self.lance.create_scalar_index(column, index_type="BTREE")
            self.lance.create_scalar_index("tags", index_type="LABEL_LIST")
            self.lance.create_scalar_index("message", index_type="INVERTED", with_position=True)

        self._timed("lance", build)
        self.sizes["lance"] = sum(
            f.stat().st_size for f in folder.rglob("rows.lance/**/*") if f.is_file()
        )

    def _words(self) -> tuple[str, str, str]:
        """A rare word (about 1,000 rows at 1 M) and two common ones."""
        counts = pc.value_counts(
            pc.list_flatten(pc.split_pattern(self.rows["message"].slice(0, 50_000), " "))
        ).to_pylist()
        counts.sort(key=lambda c: -c["counts"])
        rare = min(counts, key=lambda c: abs(c["counts"] - 50))["values"]
        return rare, counts[30]["values"], counts[31]["values"]


@pytest.fixture(scope="module")
def peers(tmp_path_factory: pytest.TempPathFactory) -> Peers:
    return Peers(tmp_path_factory.mktemp("table"))


def compare(report: Any, name: str, works: dict[str, Work], goal: float | None = None) -> None:
    """Check that all results have the same size, then time them in turns."""
    sizes = {peer: size_of(work()) for peer, work in works.items()}
    assert len(set(sizes.values())) == 1, (name, sizes)
    best = dict.fromkeys(works, float("inf"))
    for _ in range(ROUNDS):
        for peer, work in works.items():
            start = time.process_time()
            work()
            best[peer] = min(best[peer], time.process_time() - start)
    for peer in works:
        if peer != "ours":
            report(f"{name} ({sizes['ours']:,})", best["ours"], best[peer], peer, "s", goal)


def size_of(result: Any) -> int:
    return result if isinstance(result, int) else len(result)


def word_match(column: str, word: str) -> str:
    return f"regexp_matches({column}, '\\b{word}\\b')"


def test_needle(peers: Peers, report: Any) -> None:
    key = peers.request_id
    compare(
        report,
        "needle request_id, all columns",
        {
            "ours": lambda: peers.table.to_arrow(where=f"request_id = '{key}'"),
            "duckdb": lambda: peers.duck.sql(
                "SELECT * FROM rows WHERE request_id = ?", params=[key]
            ).to_arrow_table(),
            "lance": lambda: peers.lance.to_table(filter=f"request_id = '{key}'"),
            "pyarrow": lambda: peers.arrow.to_table(filter=ds.field("request_id") == key),
        },
        1.0,
    )


def test_rare_word_to_rows(peers: Peers, report: Any) -> None:
    word = peers.words[0]
    columns = ["ts", "message"]
    compare(
        report,
        "rare word, two columns",
        {
            "ours": lambda: peers.table.to_arrow(
                where=f"message TEXTSEARCH '{word}'", columns=columns
            ),
            "duckdb": lambda: peers.duck.sql(
                f"SELECT ts, message FROM rows WHERE {word_match('message', word)}"
            ).to_arrow_table(),
            "lance": lambda: peers.lance.to_table(
                columns=columns, full_text_query=word, limit=ROWS
            ),
        },
        1.0,
    )


def test_two_words_to_rows(peers: Peers, report: Any) -> None:
    rare, common, _ = peers.words
    compare(
        report,
        "AND of two words, two columns",
        {
            "ours": lambda: peers.table.to_arrow(
                where=f"message TEXTSEARCH '{rare} {common}'", columns=["ts", "message"]
            ),
            "duckdb": lambda: peers.duck.sql(
                f"SELECT ts, message FROM rows WHERE {word_match('message', rare)}"
                f" AND {word_match('message', common)}"
            ).to_arrow_table(),
            "lance": lambda: peers.lance.to_table(
                columns=["ts", "message"],
                full_text_query=MatchQuery(
                    f"{rare} {common}", "message", operator=FullTextOperator.AND
                ),
                limit=ROWS,
            ),
        },
        1.0,
    )


def test_two_words_and_a_level(peers: Peers, report: Any) -> None:
    rare, common, _ = peers.words
    where = f"message TEXTSEARCH '{rare} {common}' AND level = 'ERROR'"
    both = f"{word_match('message', rare)} AND {word_match('message', common)} AND level = 'ERROR'"
    compare(
        report,
        "two words and level, all columns",
        {
            "ours": lambda: peers.table.to_arrow(where=where),
            "duckdb": lambda: peers.duck.sql(f"SELECT * FROM rows WHERE {both}").to_arrow_table(),
        },
        1.0,
    )


def test_phrase_count(peers: Peers, report: Any) -> None:
    _, first, second = peers.words
    phrase = f"{first} {second}"
    compare(
        report,
        "phrase count",
        {
            "ours": lambda: peers.table.count(f"message TEXTSEARCH '\"{phrase}\"'"),
            "duckdb": lambda: peers.duck.sql(
                f"SELECT count(*) FROM rows WHERE {word_match('message', phrase)}"
            ).fetchall()[0][0],
            "lance": lambda: len(
                peers.lance.to_table(
                    columns=[], with_row_id=True, full_text_query=PhraseQuery(phrase, "message")
                )
            ),
        },
        1.0,
    )


def test_in_list(peers: Peers, report: Any) -> None:
    where = indextables.col("request_id").isin(peers.many)
    listed = ", ".join(f"'{v}'" for v in peers.many)
    compare(
        report,
        "IN of 1,000 ids, two columns",
        {
            "ours": lambda: peers.table.to_arrow(where=where, columns=["ts", "message"]),
            "duckdb": lambda: peers.duck.sql(
                f"SELECT ts, message FROM rows WHERE request_id IN ({listed})"
            ).to_arrow_table(),
            "lance": lambda: peers.lance.to_table(
                columns=["ts", "message"], filter=f"request_id IN ({listed})"
            ),
            "pyarrow": lambda: peers.arrow.to_table(
                columns=["ts", "message"], filter=ds.field("request_id").isin(peers.many)
            ),
        },
    )


def test_range(peers: Peers, report: Any) -> None:
    low, high = peers.span
    where = (indextables.col("ts") >= low) & (indextables.col("ts") < high)
    kept = (ds.field("ts") >= low) & (ds.field("ts") < high)
    compare(
        report,
        "range of 0.1 %, all columns",
        {
            "ours": lambda: peers.table.to_arrow(where=where),
            "duckdb": lambda: peers.duck.sql(
                "SELECT * FROM rows WHERE ts >= ? AND ts < ?", params=[low, high]
            ).to_arrow_table(),
            "pyarrow": lambda: peers.arrow.to_table(filter=kept),
        },
    )


def test_count_and_group_by(peers: Peers, report: Any) -> None:
    where = "level = 'ERROR' AND status >= 500"
    compare(
        report,
        "count of two conditions",
        {
            "ours": lambda: peers.table.count(where),
            "duckdb": lambda: peers.duck.sql(f"SELECT count(*) FROM rows WHERE {where}").fetchall()[
                0
            ][0],
            "lance": lambda: peers.lance.count_rows(where),
            "pyarrow": lambda: peers.arrow.count_rows(
                filter=(ds.field("level") == "ERROR") & (ds.field("status") >= 500)
            ),
        },
        1.0,
    )
    compare(
        report,
        "group by service where level",
        {
            "ours": lambda: peers.table.aggregate(
                {"n": "count", "m": ("avg", "latency")}, ["service"], where="level = 'ERROR'"
            ),
            "duckdb": lambda: peers.duck.sql(
                "SELECT service, count(*), avg(latency) FROM rows WHERE level = 'ERROR' GROUP BY 1"
            ).fetchall(),
        },
    )


def test_full_scan(peers: Peers, report: Any) -> None:
    compare(
        report,
        "full scan, all columns",
        {
            "ours": lambda: peers.table.to_arrow(),
            "parquet": lambda: pq.read_table(peers.parquet),
            "lance": lambda: peers.lance.to_table(),
        },
        1.25,
    )


def test_build_and_size(peers: Peers, report: Any) -> None:
    for peer in ("lance", "parquet"):
        goal = 1.0 if peer == "lance" else None
        report("write with indices", peers.built["ours"], peers.built[peer], peer, "s", goal)
        report("the same, by the clock", peers.waited["ours"], peers.waited[peer], peer, "s", goal)
        report("size on disk", peers.sizes["ours"] / 1e6, peers.sizes[peer] / 1e6, peer, "MB")


def test_results_are_tables(peers: Peers) -> None:
    assert isinstance(peers.table.to_arrow(limit=1), pa.Table)
