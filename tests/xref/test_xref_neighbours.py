"""Pairs of neighbouring words as keys (``xref.build.includePositions``): a phrase skips splits that
hold its words apart, and never one that holds it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.expr import ast
from indextables.expr.analyzers import analyze_tokens
from indextables.expr.keys import NeighbourCollector, has_neighbours, neighbour_hashes
from indextables.mapping import DocMapping, IndexingOptions
from indextables.native import Bundle, hash_term
from indextables.table.table import Table
from indextables.xref.evaluate import Conjunction, Probe, Question
from indextables.xref.file import read_xref

SCHEMA = pa.schema([("msg", pa.string()), ("tags", pa.list_(pa.string())), ("id", pa.string())])
WORDS = ["red", "green", "blue", "Grün", "x" * 300, "night", "42"]


def mapping(tokenizer: str = "default") -> DocMapping:
    options = IndexingOptions(text=("msg",), tokenizers={"msg": tokenizer})
    return DocMapping.for_schema(SCHEMA, (), options)


def options_for(positions: bool) -> dict[str, str]:
    return {
        "spark.indextables.xref.autoIndex.enabled": "false",
        "spark.indextables.xref.query.minSplitsForXRef": "1",
        "spark.indextables.write.rowsPerSplit": "3",
        "spark.indextables.xref.build.includePositions": str(positions).lower(),
    }


def built(
    path: Path, texts: list[str | None], positions: bool, tokenizer: str = "default"
) -> Table:
    given = {**options_for(positions), "spark.indextables.indexing.tokenizer.msg": tokenizer}
    data = pa.table({"n": list(range(len(texts))), "msg": pa.array(texts, pa.string())})
    indextables.write(data, str(path), text=["msg"], options=given)
    indextables.open(str(path), options=given).build_xref()
    return indextables.open(str(path), options=given)


def twin(texts: list[str | None], tokenizer: str) -> set[int]:
    """The keys of neighbours, text by text and word by word."""
    found = set()
    for text in texts:
        tokens = analyze_tokens(tokenizer, text) if text else []
        for one, other in itertools.pairwise(tokens):
            if other.position == one.position + 1:
                pair = [
                    np.array([hash_term("msg", t.text, "xxh64")], np.uint64) for t in (one, other)
                ]
                found.add(int(neighbour_hashes(*pair)[0]))
    return found


@pytest.mark.parametrize("tokenizer", ["default", "whitespace", "en_stem", "folding"])
def test_keys_of_neighbours_are_those_of_the_twin(rng: random.Random, tokenizer: str) -> None:
    field = mapping(tokenizer).get("msg")
    assert field is not None
    collector = NeighbourCollector(field)
    texts: list[str | None] = []
    for _ in range(4):
        part = [
            None if rng.random() < 0.1 else " ".join(rng.choices(WORDS, k=rng.randrange(6)))
            for _ in range(rng.randrange(8))
        ]
        collector.add(pa.array(part, pa.string()))
        texts += part
    assert set(map(int, collector.hashes())) == twin(texts, tokenizer)


def test_only_columns_of_texts_have_neighbours() -> None:
    fields = {f.name: f for f in mapping().fields}
    kept = [n for n, f in fields.items() if has_neighbours(f, SCHEMA.field(n).type)]
    assert kept == ["msg"]


def test_a_phrase_skips_splits_that_hold_its_words_apart(tmp_path: Path) -> None:
    texts: list[str | None] = ["red green", None, "blue"] * 2
    texts += ["green then red", "x", "y", "red then green", "green red", ""]
    assert (
        len(built(tmp_path / "without", texts, False).plan("msg INDEXQUERY '\"red green\"'")) == 4
    )
    table = built(tmp_path / "with", texts, True)
    assert len(table.plan("msg INDEXQUERY '\"red green\"'")) == 2
    assert len(table.plan("msg INDEXQUERY '\"green red\"'")) == 1
    assert len(table.plan("msg INDEXQUERY '\"red green\"~2'")) == 4
    assert table.count("msg INDEXQUERY '\"red green\"'") == 2


def test_the_file_says_which_columns_have_neighbours(tmp_path: Path) -> None:
    for positions, expected in ((True, frozenset({"msg"})), (False, frozenset())):
        table = built(tmp_path / str(positions), ["red green", "a b", "c d", "e"], positions)
        (xref,) = table.xrefs()
        loaded = read_xref(table.store.read(xref.path), xref.path)
        assert [kind.neighbours for kind in loaded.mappings] == [expected]
        assert (
            b"neighbours"
            in Bundle.parse(table.store.read(xref.path)).member("xref_header.json").tobytes()
        ) is positions


def test_pairs_are_asked_only_where_they_are_keys() -> None:
    phrase = ast.Phrase("msg", ("a", "b", "c"))
    with_pairs = Question(mapping(), SCHEMA, "xxh64", frozenset({"msg"}))
    wording = with_pairs.query(phrase)
    assert isinstance(wording, Conjunction)
    assert [len(part.hashes) for part in wording.parts if isinstance(part, Probe)] == [3, 2]
    assert isinstance(Question(mapping(), SCHEMA, "xxh64").query(phrase), Probe)
    for other in (
        ast.Phrase("msg", ("a", "b"), slop=1),
        ast.Phrase("msg", ("a", "b"), prefix=True),
    ):
        assert isinstance(with_pairs.query(other), Probe)


@pytest.mark.parametrize("tokenizer", ["default", "en_stem"])
def test_random_phrases_lose_no_row(tmp_path: Path, rng: random.Random, tokenizer: str) -> None:
    """Also phrases that are in no split, and words that were dropped between two others."""
    texts: list[str | None] = [
        " ".join(rng.choices(WORDS, k=rng.randrange(1, 7))) for _ in range(60)
    ]
    plain = built(tmp_path / "without", texts, False, tokenizer)
    paired = built(tmp_path / "with", texts, True, tokenizer)
    opened = {False: 0, True: 0}
    for _ in range(40):
        words = rng.choices([w for w in WORDS if len(w) < 300], k=rng.randrange(2, 4))
        ending = rng.choice(["", "", "*", "~1"])
        phrase = f"msg INDEXQUERY '\"{' '.join(words)}\"{ending}'"
        rows = plain.to_arrow(phrase, columns=["n"])
        assert paired.to_arrow(phrase, columns=["n"]).sort_by("n") == rows.sort_by("n")
        opened[False] += len(plain.plan(phrase))
        opened[True] += len(paired.plan(phrase))
    assert opened[True] <= opened[False]
