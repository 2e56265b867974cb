"""Seed 002, Binary Fuse filter cross-references: file format, evaluation, search.

Filters and containers are compared with golden bytes in ``tests/native``; verdicts of every kind of
query in ``tests/xref/test_xref_evaluate.py``.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.errors import CorruptFileError, PlanningError, UnknownColumnError
from indextables.log.actions import AddXRef
from indextables.native import Bundle, read_fxrf
from indextables.xref.file import read_xref
from indextables.xref.router import _same_splits
from indextables.xref.searching import XRefSearcher

ON = {
    "spark.indextables.xref.autoIndex.minSplitsToTrigger": "2",
    "spark.indextables.xref.query.minSplitsForXRef": "1",
    "spark.indextables.write.rowsPerSplit": "3",
}


@pytest.fixture
def table(tmp_path: Path) -> indextables.Table:
    words = [w for i in range(4) for w in ("a", f"w{i}", "z")]
    data = pa.table({"word": words, "n": [i % 3 for i in range(12)]})
    indextables.write(data, str(tmp_path / "t"), options=ON)
    return indextables.open(str(tmp_path / "t"), options=ON)


def test_1_1_bundle_layout(table: indextables.Table) -> None:
    bundle = Bundle.parse(table.store.read(table.xrefs()[0].path))
    assert list(bundle.files)[:3] == ["fuse_filters.bin", "split_metadata.json", "xref_header.json"]


def test_1_2_fuse_filters_header(table: indextables.Table) -> None:
    bundle = Bundle.parse(table.store.read(table.xrefs()[0].path))
    raw = bytes(bundle.member("fuse_filters.bin"))
    assert raw[:4] == b"FXRF"
    assert len(read_fxrf(raw)) == 4


def test_1_3_split_metadata_and_1_4_header(table: indextables.Table) -> None:
    (xref,) = table.xrefs()
    bundle = Bundle.parse(table.store.read(xref.path))
    header = json.loads(bytes(bundle.member("xref_header.json")))
    splits = json.loads(bytes(bundle.member("split_metadata.json")))["splits"]
    assert set(header) >= {
        "magic", "format_version", "xref_id", "index_uid", "num_splits", "total_terms",
        "filter_type", "created_at", "footer_start_offset", "footer_end_offset",
    }  # fmt: skip
    assert (header["magic"], header["filter_type"]) == ("FXRF", "BinaryFuse8")
    assert header["footer_start_offset"] == xref.footer_start_offset
    assert set(splits[0]) >= {
        "split_idx", "uri", "split_id", "footer_start", "footer_end", "num_docs", "num_terms",
        "filter_size_bytes",
    }  # fmt: skip


def golden(data_dir: Path) -> list[Path]:
    found = sorted((data_dir / "native").rglob("xref_*.split"))
    assert found
    return found


def test_1_files_without_our_checksums_load(data_dir: Path) -> None:
    for file in golden(data_dir):
        header = json.loads(bytes(Bundle.parse(file.read_bytes()).member("xref_header.json")))
        loaded = read_xref(file.read_bytes(), file.name)
        assert len(loaded.paths) == header["num_splits"]
        assert loaded.hash_kind == "fxhash64"


def test_1_files_without_our_checksums_answer(data_dir: Path) -> None:
    (file,) = [f for f in golden(data_dir) if f.name == "xref_8splits.split"]
    searcher = XRefSearcher(read_xref(file.read_bytes(), file.name))
    metadata = Bundle.parse(file.read_bytes()).member("split_metadata.json")
    terms = [s["num_terms"] for s in json.loads(bytes(metadata))["splits"]]
    absent = searcher.search("title:nobodyhasthisword")
    assert not absent.has_unevaluated_clauses
    dropped = len(terms) - len(absent)
    assert dropped >= len(terms) - 2, "all but a false positive of 1 in 256 each"
    everything = searcher.search("title:a*")
    assert len(everything) == len(terms)
    assert everything.has_unevaluated_clauses
    with pytest.raises(UnknownColumnError):
        searcher.search("id:7")  # how numbers are spelled there is not beyond doubt


def test_1_a_file_without_fields_answers_by_check(data_dir: Path) -> None:
    (file,) = [f for f in golden(data_dir) if f.name == "xref_fixture_fuse8.split"]
    searcher = XRefSearcher(read_xref(file.read_bytes(), file.name))
    with pytest.raises(PlanningError, match="does not say"):
        searcher.search("title:x")
    answers = {searcher.check(i, "title", f"w{n}") for i in range(2) for n in range(64)}
    assert answers <= {True, False}


def test_1_files_of_ours_stay_checked(table: indextables.Table) -> None:
    raw = bytearray(table.store.read(table.xrefs()[0].path))
    raw[40] ^= 1
    with pytest.raises(CorruptFileError):
        read_xref(bytes(raw), "x")


def test_1_splits_named_by_whole_addresses_are_the_logs() -> None:
    xref = AddXRef("x", "x", ("p=1/a.split", "b.split"), 2, 1)
    addresses = ("s3://bucket/t/p=1/a.split", "s3://bucket/t/b.split")
    assert _same_splits(addresses, xref.source_split_paths)
    assert not _same_splits(addresses[::-1], xref.source_split_paths)
    assert not _same_splits(("s3://bucket/t/xa.split", addresses[1]), xref.source_split_paths)


def test_2_4_query_evaluation_reaches_the_plan(table: indextables.Table) -> None:
    decided = table.plan("word = 'w1'")
    assert not decided.unevaluated
    assert "not evaluated" not in decided.explain()
    partly = table.plan("word = 'w1' AND n > 0")
    assert partly.unevaluated
    assert partly.report.unevaluated
    assert "some of the filter not evaluated" in partly.explain()
    assert json.loads(partly.explain("json"))["report"]["unevaluated"] is True
    assert len(partly) == 1


def test_2_4_search_stops_at_the_limit(table: indextables.Table) -> None:
    assert len(table.xref_search("word = 'a'")) == 4
    assert len(table.xref_search("word = 'a'", limit=3)) == 3
    with pytest.raises(PlanningError, match="limit"):
        table.xref_search("word = 'a'", limit=0)


@pytest.mark.parametrize(("positions", "kept"), [("true", 1), ("false", 2)])
def test_3_1_include_positions_enables_phrases(tmp_path: Path, positions: str, kept: int) -> None:
    options = {**ON, "spark.indextables.xref.build.includePositions": positions}
    texts = ["disk full", "a", "b", "full disk", "c", "d"]
    indextables.write(pa.table({"m": texts}), str(tmp_path / "t"), text=["m"], options=options)
    table = indextables.open(str(tmp_path / "t"), options=options)
    assert len(table.plan("m INDEXQUERY '\"disk full\"'")) == kept
