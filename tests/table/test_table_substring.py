"""Substring indexes: the same rows as a scan for every pattern, and fewer rows read."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import indextables
from indextables.errors import ConfigError
from indextables.expr import grams
from indextables.expr.filters import Like, RLike, StringContains
from indextables.planner import Planner
from indextables.splits.read.access import SplitScan

LETTERS = "abcABC0 _%\\.*-ÄäßİıKſΣςσ日本𝒳é\u0307\n"
COMMON = ["abc", "disk full", "ERROR", "İab", "straße", "ΟΔΟΣ", "a_b", "100%", "日本語", "K9"]
LIKE_MARKS = re.compile(r"[%_\\]")
REGEXES = ["[ab]+", ".", "x?", "(?:abc|ERR)", "(a|bc)+", "\\d*"]


def text(rng: random.Random) -> str | None:
    if rng.random() < 0.05:
        return None
    made = "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 14)))
    return made + rng.choice(COMMON) + made[:3] if rng.random() < 0.5 else made


def tables(rng: random.Random, folder: Path) -> tuple[indextables.Table, indextables.Table]:
    """The same texts with and without the index, as text, exact and near-unique strings."""
    texts = [text(rng) for _ in range(1300)]
    few = [rng.choice(texts[:40]) for _ in texts]
    data = pa.table({"id": range(1300), "words": texts, "exact": texts, "few": few})
    for name, parts in (("with", ["words", "exact", "few"]), ("without", [])):
        path = str(folder / name)
        indextables.write(data, path, text=["words"], substring=parts, rows_per_split=1100)
    return indextables.open(str(folder / "with")), indextables.open(str(folder / "without"))


def literal(rng: random.Random) -> str:
    if rng.random() < 0.6:
        word = rng.choice(COMMON)
        start = rng.randrange(len(word))
        word = word[start : start + rng.randint(1, len(word))]
        return word.swapcase() if rng.random() < 0.3 else word
    return "".join(rng.choice(LETTERS) for _ in range(rng.randint(1, 4)))


def pattern(rng: random.Random) -> Any:
    kind = rng.random()
    if kind < 0.55:
        parts = [
            rng.choice(["%", "_", "%", ""]) + re.sub(r"([%_\\])", r"\\\1", literal(rng))
            for _ in range(rng.randint(1, 3))
        ]
        spelled = "".join(parts) + rng.choice(["%", "", "_%"])
        return lambda column: Like(column, spelled, ignore_case=kind > 0.3)
    if kind < 0.7:
        wanted = literal(rng)
        return lambda column: StringContains(column, wanted)
    parts = [
        re.escape(literal(rng))
        if rng.random() < 0.7
        else rng.choice(["[ab]+", ".", "x?", "(?:abc|ERR)", "(a|bc)+", "\\d*"])
        for _ in range(rng.randint(1, 3))
    ]
    spelled = rng.choice(["", "(?i)", "^"]) + "".join(parts)
    return lambda column: RLike(column, spelled)


def test_indexed_and_scanned_rows_are_equal(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    indexed, scanned = tables(rng, tmp_path)
    found = 0
    for _ in range(150):
        made = pattern(rng)
        for column in ("words", "exact", "few"):
            try:
                expected = scanned.to_arrow(made(column), columns=["id"])["id"].to_pylist()
            except indextables.IndexTablesError:
                break
            got = indexed.to_arrow(made(column), columns=["id"])["id"].to_pylist()
            assert sorted(got) == sorted(expected), made(column)
            assert indexed.count(~made(column)) == scanned.count(~made(column)), made(column)
            found += 0 < len(got) < 1300
    assert found > 50


@pytest.mark.parametrize(
    "where",
    [
        "m LIKE '%needle 777%'",
        "contains(m, 'eedle 77')",
        "m ILIKE '%NEEDLE 777%'",
        "m RLIKE 'needle 7+[a-c]'",
        "lower(m) LIKE '%needle 777%'",
        "m LIKE '%needle%777%' AND id >= 0",
        "m RLIKE '(needle 777|nothing here)'",
    ],
)
def test_only_rows_with_all_pieces_are_read(tmp_path: Path, where: str) -> None:
    data = pa.table(
        {"id": range(3000), "m": [f"row {i} of hay" for i in range(2999)] + ["a needle 777a"]}
    )
    path = str(tmp_path / "t")
    indextables.write(data, path, text=["m"], substring=["m"])
    table = indextables.open(path)
    (task,) = table.plan(where).tasks
    from indextables.table.execute import open_scan

    scan = open_scan(table.store, task, task.splits[0], table.schema, table.config)
    candidates = scan.chooser.candidates().rows
    assert candidates is not None
    assert len(candidates) == 1
    assert table.count(where) == 1


def test_no_piece_is_asked_of_what_is_too_short_or_negated(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    indextables.write(pa.table({"m": ["abc", "ab", None]}), path, substring=["m"])
    table = indextables.open(path)
    assert table.count("m LIKE '%ab%'") == 2
    assert table.count("NOT m LIKE '%abc%'") == 1
    assert table.count("m LIKE '%abcd%'") == 0
    table.delete("true")
    assert indextables.open(path).count("m LIKE '%abc%'") == 0


def test_spellings_and_mistakes(tmp_path: Path) -> None:
    data = pa.table({"a": ["x"], "b": ["y"], "n": [1]})
    options = {
        "spark.indextables.indexing.typemap.a": "text,substring",
        "spark.indextables.indexing.typemap.substring": "b",
    }
    path = str(tmp_path / "t")
    indextables.write(data, path, options=options)
    mapping = {f.name: f for f in indextables.open(path).mapping.fields}
    assert mapping["a"].substring
    assert mapping["a"].is_tokenized
    assert mapping["b"].substring
    assert mapping["b"].is_exact_text
    alone = str(tmp_path / "u")
    indextables.write(data, alone, options={"spark.indextables.indexing.typemap.a": "substring"})
    assert [f.substring for f in indextables.open(alone).mapping.fields] == [True, False, False]
    with pytest.raises(ConfigError, match="substring"):
        indextables.write(data, str(tmp_path / "v"), substring=["n"])
    with pytest.raises(ConfigError, match="substring"):
        indextables.write(data, str(tmp_path / "w"), substring=["a"], ip=["a"])


def test_merged_splits_keep_the_index(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for number in range(3):
        data = pa.table({"m": [f"some needle{number} text"] * 20})
        indextables.write(data, path, substring=["m"])
    indextables.open(path).merge()
    table = indextables.open(path)
    assert table.snapshot.num_files == 1
    predicate = Planner(table).bind("m LIKE '%needle1%'")
    (task,) = table.plan(predicate).tasks
    from indextables.splits.read.reader import SplitReader

    reader = SplitReader.open(table.store, task.splits[0])
    assert reader.info.fields["m"].grams
    assert SplitScan(reader, predicate).count() == 20


@pytest.mark.parametrize(
    ("regex", "literals"),
    [
        ("abcd", {"abcd"}),
        ("abc|xyz", {"abc", "xyz"}),
        ("abc|x", set()),
        ("(abc)+def?", {"abc"}),
        ("(abcd)?xyz", {"xyz"}),
        ("abc.def", {"abc", "def"}),
        ("^start", {"start"}),
        ("a{3}bcd", {"bcd"}),
        ("[abc]def", {"def"}),
        ("(?i)Kabc", {"Kabc"}),
        ("(", set()),
    ],
)
def test_literals_of_regular_expressions(regex: str, literals: set[str]) -> None:
    found = grams._of_regex(regex)
    assert (set() if found is None else set(grams._literals(found))) == literals
