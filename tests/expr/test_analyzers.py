"""Analyzers agree with tantivy, token by token, and with what an index really holds."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import tantivy
from hypothesis import given
from hypothesis import strategies as st
from unicode_tables import TARGET, derive, render

from indextables.errors import ConfigError
from indextables.expr.analyzers import (
    MAX_TERM_BYTES,
    TokenHashes,
    analyze,
    analyze_tokens,
    tantivy_analyzer,
    tantivy_name,
    tokenize,
)
from indextables.native._hash import hash_term

# one of each kind; the other languages are in test_analyzers_words.py
TOKENIZERS = ("default", "raw", "whitespace", "folding", "en_stem")

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from("aAzZ09 _-.,\t\n\r\x0c\x0b\xa0\u2003\u3000İıẞßΣσςǅǄKÅⱥȺéÉ́ªº²½٣万𝟘🄰"),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=60,
)


def test_tables_are_those_of_the_installed_wheel() -> None:
    assert render(derive()) == TARGET.read_text()


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@given(text=NASTY, length=st.sampled_from([1, 2, 5, 40, 255, 65530]))
def test_tokens_equal_tantivy(tokenizer: str, text: str, length: int) -> None:
    assert analyze(tokenizer, text, length) == tantivy_analyzer(tokenizer, length).analyze(text)


def test_random_code_points_equal_tantivy(rng: random.Random) -> None:
    analyzer = tantivy_analyzer("default")
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    rng.shuffle(codes)
    texts = ["".join(map(chr, codes[i : i + 40])) for i in range(0, len(codes), 40)]
    found = tokenize(pa.array(texts), "default")
    expected = [token for text in texts for token in analyzer.analyze(text)]
    assert found.texts.to_pylist() == expected


@pytest.mark.parametrize("tokenizer", ["default", "whitespace", "en_stem"])
def test_token_limit_is_in_bytes_and_inclusive(tokenizer: str) -> None:
    assert analyze(tokenizer, "x" * 255) == ["x" * 255]
    assert analyze(tokenizer, "x" * 256) == []
    assert len(analyze(tokenizer, "é" * 127 + "x")) == 1
    assert analyze(tokenizer, "é" * 128) == []


def test_limit_counts_bytes_before_lower_casing() -> None:
    assert analyze("default", "Ⱥ" * 127) == ["ⱥ" * 127]
    assert len("ⱥ".encode()) * 127 > 255


def test_dropped_token_keeps_its_position() -> None:
    tokens = analyze_tokens("default", "one " + "x" * 300 + " two")
    assert [(t.text, t.position) for t in tokens] == [("one", 0), ("two", 2)]


def test_places_count_characters() -> None:
    text = "Äpfel, İX!"
    assert [text[t.start : t.end] for t in analyze_tokens("default", text)] == ["Äpfel", "İX"]


def test_terms_of_an_index_are_our_tokens(rng: random.Random, tmp_path: Path) -> None:
    alphabet = "abcXYZ019 -_éÉİßΣ万\t́ªⱥȺ𝟘" + "".join(chr(rng.randrange(0xD800)) for _ in range(200))
    texts = ["".join(rng.choices(alphabet, k=rng.randrange(40))) for _ in range(400)]
    texts += ["x" * 255, "y" * 256, "Ⱥ" * 30000]
    builder = tantivy.SchemaBuilder()
    for tokenizer in TOKENIZERS:
        builder.add_text_field(tokenizer, tokenizer_name=tantivy_name(tokenizer))
    index = tantivy.Index(builder.build(), path=str(tmp_path))
    for tokenizer in TOKENIZERS:
        index.register_tokenizer(tantivy_name(tokenizer), tantivy_analyzer(tokenizer))
    writer = index.writer(15_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document(**dict.fromkeys(TOKENIZERS, text)))
    writer.commit()
    writer.wait_merging_threads()
    index.reload()
    for tokenizer in TOKENIZERS:
        held = {term for term, _ in index.searcher().terms_with_prefix(tokenizer, "")}
        ours = {token for text in texts for token in analyze(tokenizer, text)}
        assert held == ours


def test_raw_values_beyond_the_term_limit_have_no_token() -> None:
    assert analyze("raw", "x" * MAX_TERM_BYTES) == ["x" * MAX_TERM_BYTES]
    assert analyze("raw", "x" * (MAX_TERM_BYTES + 1)) == []


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("kind", ["fxhash64", "xxh64"])
def test_hashes_are_those_of_the_tokens(tokenizer: str, kind: str) -> None:
    texts = ["The quick brown FOX", None, "", "jumps over the lazy dogs dogs", "naïve Ⱥbc"]
    array = pa.array(texts)
    tokens = {t for text in texts if text is not None for t in analyze(tokenizer, text)}
    expected = np.array(sorted(hash_term("f", t, kind) for t in tokens), np.uint64)
    whole = TokenHashes("f", tokenizer, 255, kind)
    whole.add(array)
    assert np.array_equal(whole.hashes(), expected)
    collector = TokenHashes("f", tokenizer, 255, kind)
    for i in range(len(array)):
        collector.add(array.slice(i, 1))
    assert np.array_equal(collector.hashes(), expected)


def test_array_layouts_give_the_same_tokens() -> None:
    plain = pa.array(["skip", "Ab c", None, "d-E", "", "f"]).slice(1, 4)
    expected = ["ab", "c", "d", "e"]
    for array in (
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        pa.chunked_array([plain.slice(0, 1), plain.slice(1)]),
    ):
        found = tokenize(array, "default")
        assert found.texts.to_pylist() == expected
        assert found.offsets.tolist() == [0, 2, 2, 4, 4]


def test_hash_set_grows_and_keeps_zero(rng: random.Random) -> None:
    from indextables.native._tokenize import HashSet

    values = np.array([rng.getrandbits(64) for _ in range(50_000)] * 2 + [0], np.uint64)
    found = HashSet()
    found.add(values)
    assert np.array_equal(found.to_numpy(), np.unique(values))
    assert len(found) == len(np.unique(values))


def test_broken_arrow_offsets_are_refused() -> None:
    offsets = pa.py_buffer(np.array([0, 900, 5], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"hello")])
    with pytest.raises(ValueError, match="leave its data"):
        tokenize(broken, "default")


def test_bytes_that_are_not_utf8_separate_tokens() -> None:
    data = b"ab\xffcd\xc3 e\xf4\xff"
    array = pa.Array.from_buffers(
        pa.string(),
        1,
        [None, pa.py_buffer(np.array([0, len(data)], np.int32)), pa.py_buffer(data)],
    )
    assert tokenize(array, "default").texts.to_pylist() == ["ab", "cd", "e"]


def test_unknown_tokenizer_names_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="whitespace"):
        analyze("german", "x")
