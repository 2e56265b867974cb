"""Searching a table: the whole corpus through the real index, scores, snippets, foreign tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest

import indextables
from indextables.errors import IndexTablesError
from indextables.expr import ast
from indextables.expr.ast import query_fields
from indextables.expr.predicate import TextMatch
from indextables.expr.querystring import parse_query
from indextables.expr.textmatch import match_rows
from indextables.mapping import DocMapping, IndexingOptions
from indextables.table.snippets import snippets

sys.path.insert(0, str(Path(__file__).parents[1] / "expr"))

from corpus import CORPUS, Case, corpus_mapping, corpus_table


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp("corpus") / "table")
    mapping = corpus_mapping()
    kinds: dict[str, list[str]] = {"text": [], "json": [], "ip": []}
    tokenizers = {}
    data = corpus_table()
    for field in mapping.fields:
        is_string = pa.types.is_string(data.schema.field(field.name).type)
        if field.is_tokenized:
            kinds["text"].append(field.name)
            tokenizers[field.name] = field.tokenizer
        elif is_string and field.type in ("json", "ip"):
            kinds[field.type].append(field.name)
    indextables.write(data, path, tokenizers=tokenizers, rows_per_split=7, **kinds)
    return indextables.open(path)


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 150


@pytest.mark.parametrize("case", CORPUS, ids=lambda c: str(c.query)[:60])
def test_corpus_through_the_index(corpus: indextables.Table, case: Case) -> None:
    query = parse_query(
        case.query, default_fields=case.fields, mapping=corpus.mapping, schema=corpus.schema
    )
    where = TextMatch(query, tuple(query_fields(query)), case.query)
    found = corpus.to_arrow(where=where, columns=["id"])["id"].to_pylist()
    assert sorted(found) == sorted(case.rows)
    assert corpus.count(where) == len(case.rows)


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> indextables.Table:
    path = str(tmp_path_factory.mktemp("messages") / "table")
    data = pa.table(
        {
            "id": [1, 2, 3, 4],
            "level": ["ERROR", "INFO", "ERROR", "WARN"],
            "message": [
                "connection timeout after timeout",
                "all is well",
                "timeout while reading the database",
                None,
            ],
        }
    )
    indextables.write(data, path, text=["message"], rows_per_split=2)
    return indextables.open(path)


def test_best_first_with_scores(messages: indextables.Table) -> None:
    found = messages.search("timeout", columns=["id"])
    assert found.column_names == ["id", "_score"]
    assert sorted(found["id"].to_pylist()) == [1, 3]
    scores = found["_score"].to_pylist()
    assert scores == sorted(scores, reverse=True)
    assert messages.search("timeout", limit=1).num_rows == 1


def test_search_with_a_filter_and_snippets(messages: indextables.Table) -> None:
    found = messages.search("timeout", columns=["id"], where="id > 1", snippet="message")
    assert found["id"].to_pylist() == [3]
    assert "<b>timeout</b>" in found["_snippet"][0].as_py()


@pytest.mark.parametrize("query", ['"unclosed', "nofield:x", "(", "[1 TO"])
def test_bad_queries_are_errors_not_empty_results(messages: indextables.Table, query: str) -> None:
    with pytest.raises(IndexTablesError):
        messages.search(query)


def test_text_in_boolean_trees(messages: indextables.Table) -> None:
    where = "message TEXTSEARCH 'timeout' AND NOT level = 'INFO' OR id = 2"
    assert sorted(messages.to_arrow(where=where)["id"].to_pylist()) == [1, 2, 3]
    assert messages.count("NOT message TEXTSEARCH 'timeout'") == 2


@pytest.mark.interop
def test_tables_of_jvm_indextables_give_their_rows(interop_tables: list[Path]) -> None:
    for folder in interop_tables:
        table = indextables.open(str(folder))
        found = table.to_arrow()
        assert found.num_rows == table.snapshot.num_rows, folder.name
        assert found.schema == table.schema, folder.name


@pytest.mark.interop
def test_tables_of_jvm_indextables_are_searched_by_scanning(interop_dir: Path) -> None:
    table = indextables.open(str(interop_dir / "01_single_write"))
    everything = table.to_arrow().to_pylist()
    text = next(n for n in table.schema.names if pa.types.is_string(table.schema.field(n).type))
    value = everything[0][text]
    expected = sum(1 for row in everything if row[text] == value)
    assert table.count(indextables.col(text) == value) == expected


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        (ast.Fuzzy("s", "hlelo", 1), "a hello", "a <b>hello</b>"),
        (ast.Fuzzy("s", "helo", 1, prefix=True), "helloworld", "<b>helloworld</b>"),
        (ast.Wildcard("s", "h?l*"), "a hello", "a <b>hello</b>"),
        (ast.Wildcard("s", "h\\?l*"), "a hello", "a hello"),
    ],
)
def test_snippets_mark_what_the_index_finds(query: ast.Query, text: str, expected: str) -> None:
    schema = pa.schema([("s", pa.string())])
    mapping = DocMapping.for_schema(schema, options=IndexingOptions(text=("s",)))
    rows = pa.record_batch({"s": [text]})
    assert snippets(query, "s", rows.column("s"), mapping) == [expected]
    assert match_rows(query, rows, mapping).tolist() == ["<b>" in expected]
