"""Analyzers that change words: the same tokens here, in tantivy, in filters and in searches."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner

import indextables
from indextables.cli.main import cli
from indextables.errors import ConfigError
from indextables.expr.analyzers import TokenHashes, analyze, tantivy_analyzer
from indextables.mapping import FOLDING, STEMMERS
from indextables.native._hash import hash_terms

NAMES = [FOLDING, *STEMMERS]
WORDS = ["Häuser", "Köln", "running", "correr", "été", "ευχαριστώ", "бегущий", "koşuyorum",
         "العربية", "Ærø", "straße", "İstanbul", "naïve", "日本語", "x1", "ΟΔΟΣ",
         "juoksevat"]  # fmt: skip


def texts(rng: random.Random, count: int = 60) -> list[str]:
    return [" ".join(rng.choice(WORDS) for _ in range(rng.randint(0, 6))) for _ in range(count)]


@pytest.mark.parametrize("name", NAMES)
def test_tokens_equal_tantivy(name: str, seed: int) -> None:
    rng = random.Random(f"{seed}-{name}")
    made = tantivy_analyzer(name)
    found = texts(rng)
    for text in found:
        assert analyze(name, text) == made.analyze(text), text
    hashes = TokenHashes("f", name)
    hashes.add(pa.array(found))
    tokens = sorted({t for text in found for t in analyze(name, text)})
    assert set(hashes.hashes().tolist()) == set(hash_terms("f", tokens, "xxh64").tolist())


@pytest.mark.parametrize("name", [FOLDING, "de_stem", "fr_stem", "tr_stem"])
def test_columns_are_searched_by_their_analyzer(tmp_path: Path, name: str, seed: int) -> None:
    rng = random.Random(seed)
    data = pa.table({"id": range(60), "m": texts(rng)})
    path = str(tmp_path / "t")
    indextables.write(data, path, text=["m"], tokenizers={"m": name}, rows_per_split=25)
    table = indextables.open(path)
    assert table.mapping.get("m").tokenizer == name
    for word in WORDS:
        wanted = analyze(name, word)
        expected = [
            i
            for i, text in enumerate(data["m"].to_pylist())
            if set(wanted) <= set(analyze(name, text))
        ]
        where = f"m TEXTSEARCH '{word}'"
        got = table.to_arrow(where, columns=["id"])["id"].to_pylist()
        assert sorted(got) == (expected if wanted else []), word
        assert table.search(word, limit=100).num_rows == len(got)


def test_patterns_are_folded_too(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    data = {"m": ["Köln am Rhein", "Kolnisch", "kiel"]}
    indextables.write(data, path, text=["m"], tokenizers={"m": FOLDING})
    table = indextables.open(path)
    assert table.count("m TEXTSEARCH 'köl*'") == 2
    assert table.count("m TEXTSEARCH 'KÖLN'") == 1


def test_showing_tokens() -> None:
    assert indextables.analyze("Running dogs", "en_stem") == ["run", "dog"]
    assert indextables.analyze("") == []
    with pytest.raises(ConfigError, match="klingon"):
        indextables.analyze("x", "klingon")
    result = CliRunner().invoke(cli, ["--json", "analyze", "Köln 1", "folding"])
    assert result.exit_code == 0, result.output
    assert '"koln"' in result.output
