"""Analyzers: how a text becomes the tokens that an index holds.

* ``default``: maximal runs of alphanumeric characters, lower-cased character by character;
* ``whitespace``: what stands between ASCII blanks, unchanged;
* ``en_stem``, ``de_stem``, ...: the tokens of ``default``, each cut to its stem in a language
  (``mapping.STEMMERS``);
* ``folding``: the tokens of ``default`` with letters of Latin scripts as plain ASCII ones
  (``Köln`` and ``koln`` are the same word);
* ``raw``: the whole value as one token.

A token of more than ``token_length`` bytes (UTF-8, before lower-casing) is dropped; its position
is still counted, so the words around it are not neighbours. No index holds a term of more than
``MAX_TERM_BYTES``. What counts as alphanumeric and how it is lower-cased was read out of tantivy
itself, so that tokens made here are exactly the terms found there; a test compares them.

The same rules are registered with tantivy when a split is written (``tantivy_analyzer``), under
``tantivy_name``; queries are cut here and reach tantivy as finished terms.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from indextables.buffers import text_array
from indextables.errors import ConfigError
from indextables.mapping import DEFAULT_TOKEN_LENGTH, FOLDING, STEMMERS, TOKENIZERS
from indextables.native import _tokenize
from indextables.native._hash import hash_terms

MAX_TERM_BYTES: int = _tokenize.MAX_TERM_BYTES
Tokens = _tokenize.Tokens


class Token(NamedTuple):
    """One token: its text, its position, and its place in the value (characters)."""

    text: str
    position: int
    start: int
    end: int


def check_tokenizer(tokenizer: str) -> str:
    """The name, if it is one of those above."""
    if tokenizer not in TOKENIZERS:
        raise ConfigError(
            f"unknown tokenizer '{tokenizer}'", hint=f"Use one of {', '.join(TOKENIZERS)}"
        )
    return tokenizer


def analyze(tokenizer: str, text: str, token_length: int = DEFAULT_TOKEN_LENGTH) -> list[str]:
    """The tokens of one text, in order."""
    texts: list[str] = tokenize(text_array([text]), tokenizer, token_length).texts.to_pylist()
    return texts


def analyze_tokens(
    tokenizer: str, text: str, token_length: int = DEFAULT_TOKEN_LENGTH
) -> list[Token]:
    """The tokens of one text with their positions and places."""
    found = tokenize(pa.array([text]), tokenizer, token_length)
    raw = text.encode()
    chars = _char_offsets(raw)
    return [
        Token(token, int(position), int(chars[start]), int(chars[end]))
        for token, position, start, end in zip(
            found.texts.to_pylist(), found.positions, found.starts, found.ends, strict=True
        )
    ]


def tokenize(array: Any, tokenizer: str, token_length: int = DEFAULT_TOKEN_LENGTH) -> Tokens:
    """The tokens of a whole string array, flat; nulls have none.

    Those of value ``i`` are ``offsets[i]:offsets[i + 1]`` of ``texts``, ``positions``, ``starts``
    and ``ends`` (the last two count UTF-8 bytes of the value).
    """
    check_tokenizer(tokenizer)
    if not changes_words(tokenizer):
        return _tokenize.tokenize(array, tokenizer, token_length)
    words = _tokenize.tokenize(array, "default", token_length)
    coded = words.texts.dictionary_encode()
    changed = [changed_word(tokenizer, word) for word in coded.dictionary.to_pylist()]
    return words._replace(texts=pa.array(changed, pa.string()).take(coded.indices))


def changes_words(tokenizer: str) -> bool:
    """Are the words of ``default`` changed one by one?"""
    return tokenizer == FOLDING or tokenizer in STEMMERS


class TokenHashes:
    """Collects the distinct key hashes of a field's tokens, array by array."""

    def __init__(
        self,
        field: str,
        tokenizer: str,
        token_length: int = DEFAULT_TOKEN_LENGTH,
        kind: str = "xxh64",
    ) -> None:
        self._field = field
        self._tokenizer = check_tokenizer(tokenizer)
        self._token_length = token_length
        self._kind = kind
        self._found = _tokenize.HashSet()

    def add(self, array: Any) -> None:
        if changes_words(self._tokenizer):
            texts = tokenize(array, self._tokenizer, self._token_length).texts.unique()
            self._found.add(hash_terms(self._field, texts, self._kind))
        else:
            self._found.add_tokens(
                array, self._field, self._tokenizer, self._token_length, self._kind
            )

    def hashes(self) -> NDArray[np.uint64]:
        """The distinct hashes so far, ascending."""
        return self._found.to_numpy()


def tantivy_name(tokenizer: str, token_length: int = DEFAULT_TOKEN_LENGTH) -> str:
    """The name under which an index knows this analyzer."""
    plain = tokenizer == "raw" or token_length == DEFAULT_TOKEN_LENGTH
    return tokenizer if plain else f"{tokenizer}_{token_length}"


def tantivy_analyzer(tokenizer: str, token_length: int = DEFAULT_TOKEN_LENGTH) -> Any:
    """The same rules as a tantivy analyzer, to be registered with an index writer."""
    from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

    check_tokenizer(tokenizer)
    if tokenizer == "raw":
        return TextAnalyzerBuilder(Tokenizer.raw()).build()
    start = Tokenizer.whitespace() if tokenizer == "whitespace" else Tokenizer.simple()
    builder = TextAnalyzerBuilder(start).filter(Filter.remove_long(token_length + 1))
    if tokenizer != "whitespace":
        builder = builder.filter(Filter.lowercase())
    if changes_words(tokenizer):
        builder = builder.filter(_change(tokenizer))
    return builder.build()


def _change(tokenizer: str) -> Any:
    """The filter of tantivy's that changes each word."""
    from tantivy import Filter

    return Filter.ascii_fold() if tokenizer == FOLDING else Filter.stemmer(STEMMERS[tokenizer])


@lru_cache(maxsize=32)
def _changer(tokenizer: str) -> Any:
    from tantivy import TextAnalyzerBuilder, Tokenizer

    return TextAnalyzerBuilder(Tokenizer.raw()).filter(_change(tokenizer)).build()


@lru_cache(maxsize=1 << 17)
def changed_word(tokenizer: str, word: str) -> str:
    """A word of ``default`` as an analyzer has it."""
    changed: str = _changer(tokenizer).analyze(word)[0]
    return changed


def _char_offsets(raw: bytes) -> NDArray[np.int64]:
    """For each byte offset at a character's start (and the end), the character's number."""
    data = np.frombuffer(raw, np.uint8)
    starts = np.concatenate([(data & 0xC0) != 0x80, [True]])
    return np.cumsum(starts) - 1
