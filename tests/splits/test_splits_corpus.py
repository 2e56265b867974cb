"""Every string of the search corpus finds its rows in a real split, also beside many others."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "expr"))

from corpus import CORPUS, SCHEMA, Case, corpus_mapping, corpus_table
from splitkit import write_split

from indextables.expr.querystring import parse_query
from indextables.splits.read.reader import SplitReader

COPIES = 300
MAPPING = corpus_mapping()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> SplitReader:
    return write_split(corpus_table(), MAPPING, tmp_path_factory.mktemp("corpus"))


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> SplitReader:
    table = pa.concat_tables([corpus_table()] * COPIES)
    return write_split(table, MAPPING, tmp_path_factory.mktemp("corpus"))


@pytest.mark.parametrize("case", CORPUS, ids=lambda c: c.query[:40] or "empty")
def test_corpus(case: Case, small: SplitReader, large: SplitReader) -> None:
    query = parse_query(
        case.query, default_fields=list(case.fields), mapping=MAPPING, schema=SCHEMA
    )
    assert small.search(query).rows.tolist() == case.rows
    assert small.count(query) == len(case.rows)
    assert sorted(small.search(query, scored=True).rows.tolist()) == case.rows
    size = corpus_table().num_rows
    everywhere = [c * size + row for c in range(COPIES) for row in case.rows]
    assert large.search(query).rows.tolist() == everywhere
    assert large.count(query) == len(everywhere)
