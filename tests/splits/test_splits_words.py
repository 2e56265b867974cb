"""Words answer as tantivy does, without it being opened; damaged ones are refused.

The same asks are put to the lists of words and to tantivy, over random corpora whose words are in
one row, in a few, in more than a block of 128, and in nearly all.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from splitkit import open_split
from test_splits_bombs import little_memory

from indextables.errors import CorruptFileError
from indextables.expr import ast
from indextables.mapping import IndexingOptions
from indextables.native import crc32c
from indextables.splits.format import members
from indextables.splits.lookup.asks import (
    AnyWord,
    Ask,
    AtLeast,
    InOrder,
    InZones,
    Joined,
    Near,
    Others,
    Word,
)
from indextables.splits.lookup.nodes import Index
from indextables.splits.lookup.search import IndexSearch
from indextables.splits.lookup.words.directory import BlockTable, pack_directory, parse_directory
from indextables.splits.lookup.words.running import WordSearch
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.workspace import LazyIndex
from indextables.splits.write import words as writing

OPTIONS = IndexingOptions(text=("msg", "plain"), records={"plain": "basic"}, json=("js",))


def make_rows(rng: random.Random, rows: int, vocabulary: int) -> pa.Table:
    """Words by Zipf's law: the first in nearly every row, the last in one or none."""
    words = [f"w{i:05d}" for i in range(vocabulary)]
    weights = [1 / (i + 1) for i in range(vocabulary)]

    def text() -> str | None:
        return " ".join(rng.choices(words, weights, k=rng.randrange(1, 14)))

    texts = [None if rng.random() < 0.02 else text() for _ in range(rows)]
    return pa.table(
        {
            "msg": texts,
            "plain": [text() for _ in range(rows)],
            "level": [rng.choice(["INFO", "WARN", "ERROR", None]) for _ in range(rows)],
            "n": pa.array([rng.randrange(10**9) for _ in range(rows)], pa.int64()),
            "js": [f'{{"a": {{"b": {rng.randrange(40)}}}, "t": "{text()}"}}' for _ in range(rows)],
        }
    )


@pytest.fixture(scope="module", params=[300, 9000])
def corpus(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, SplitReader]:
    table = make_rows(random.Random(request.param), request.param, 3000)
    folder = tmp_path_factory.mktemp("words")
    return table, open_split(table, folder, OPTIONS)


def words_of(reader: SplitReader) -> WordSearch:
    assert reader.words is not None
    return reader.words


def tantivy_search(reader: SplitReader) -> IndexSearch:
    index = LazyIndex(reader._open_index)
    return IndexSearch(index, lambda: None, reader.num_rows, reader.hash_table, reader.path)


def fields_of(reader: SplitReader) -> dict[str, list[str]]:
    """The terms of every field that has words."""
    words = words_of(reader)
    return {name: words.terms(name, "").to_pylist() for name in words._words.fields}


def random_ask(rng: random.Random, fields: dict[str, list[str]], depth: int = 2) -> Ask:
    def leaf() -> Ask:
        name = rng.choice(list(fields))
        terms = fields[name]

        def term() -> str:
            if rng.random() < 0.1:
                return rng.choice(terms) + "x"
            return rng.choice(terms[:40] if rng.random() < 0.5 else terms)

        kind = rng.randrange(5)
        if kind == 0:
            return AnyWord(name, tuple(sorted({term() for _ in range(rng.choice([1, 2, 60]))})))
        if kind == 1 and name == "f0":
            return InOrder(name, tuple(term() for _ in range(rng.choice([2, 2, 3]))))
        return Word(name, term())

    if depth == 0 or rng.random() < 0.3:
        return leaf()
    parts = tuple(random_ask(rng, fields, depth - 1) for _ in range(rng.choice([2, 3])))
    kind = rng.randrange(4)
    if kind == 0:
        return AtLeast(parts, rng.randrange(1, len(parts) + 1))
    if kind == 1:
        return Others(parts[0])
    return Joined("Must" if kind == 2 else "Should", parts)


def test_words_and_tantivy_give_the_same_rows(
    corpus: tuple[pa.Table, SplitReader], rng: random.Random
) -> None:
    _, reader = corpus
    words, other, fields = words_of(reader), tantivy_search(reader), fields_of(reader)
    found = 0
    for _ in range(150):
        ask = random_ask(rng, fields)
        assert words.can_answer(ask)
        expected, _ = other.rows(Index(ask))
        assert words.rows(ask).tolist() == expected.tolist(), ask
        assert words.count(ask) == len(expected), ask
        found += len(expected) > 0
    assert found > 20


def test_every_word_of_every_field(corpus: tuple[pa.Table, SplitReader]) -> None:
    """All lists are decoded: a document frequency that tantivy knows for each."""
    _, reader = corpus
    words, searcher = words_of(reader), reader._open_index().searcher
    for name, terms in fields_of(reader).items():
        reader._open_index().ensure({("term", name)})
        expected = dict(searcher.terms_with_prefix(name, ""))
        lists = words._words.lists((name, term.encode()) for term in terms)
        assert {key[1].decode(): len(rows) for key, rows in lists.items()} == expected


def test_listed_terms_start_with_the_prefix(
    corpus: tuple[pa.Table, SplitReader], rng: random.Random
) -> None:
    _, reader = corpus
    words = words_of(reader)
    for name, terms in fields_of(reader).items():
        assert terms == sorted(terms, key=str.encode)
        for _ in range(30):
            term = rng.choice(terms)
            prefix = term[: rng.randrange(len(term) + 1)] + rng.choice(["", "", "\U0010ffff"])
            expected = [t for t in terms if t.startswith(prefix)]
            assert words.terms(name, prefix).to_pylist() == expected


QUERIES: list[ast.Query] = [
    ast.Term("msg", "w00000"),
    ast.Term("msg", "absent"),
    ast.Bool((ast.Term("msg", "w00001"), ast.Term("level", "ERROR")), (), (), 0),
    ast.Phrase("msg", ("w00000", "w00001")),
    ast.Wildcard("msg", "w0001*"),
    ast.Regex("msg", "w0000[1-3]"),
    ast.Term("js.a.b", "7"),
    ast.Exists("js.a"),
]


@pytest.mark.parametrize("query", QUERIES, ids=repr)
def test_words_open_no_index(corpus: tuple[pa.Table, SplitReader], query: ast.Query) -> None:
    """And an index that was written before there were words gives the same rows."""
    _, reader = corpus
    if isinstance(query, ast.Bool) and "keys" not in words_of(reader)._words.fields:
        pytest.skip("few rows: the shared field has no words")
    forget_readers()
    found = reader.search(query).rows.tolist()
    assert not reader.has_open_index
    old = SplitReader(reader.source.store, reader.ref)
    old.__dict__["words"] = None
    assert old.search(query).rows.tolist() == found
    assert old.has_open_index


def test_what_words_cannot_answer_is_left_to_tantivy(
    corpus: tuple[pa.Table, SplitReader],
) -> None:
    words = words_of(corpus[1])
    for ask in (Word("f0", "w00000", scored=True), Near("f0", "w00000", 1, False)):
        assert not words.can_answer(ask)
        assert not words.can_answer(Joined("Must", (Word("f0", "w00000"), ask)))
    assert not words.can_answer(InOrder("f1", ("w00000", "w00001"))), "no positions"
    assert not words.can_answer(Word("f77", "x")), "no such field"
    assert words.rows(InZones((0,))).tolist() == list(range(min(4096, corpus[1].num_rows)))


def test_a_field_that_is_not_understood_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*given: Any) -> None:
        raise CorruptFileError("another kind of list")

    monkeypatch.setattr(writing, "check_lists", refuse)
    table = make_rows(random.Random(1), 300, 50)
    reader = open_split(table, tmp_path, OPTIONS)
    assert words_of(reader)._words.fields == {}
    assert len(reader.search(ast.Term("msg", "w00000")).rows) > 100
    assert reader.has_open_index


def test_unique_values_of_a_small_split_are_left_out(tmp_path: Path) -> None:
    table = pa.table({"id": [f"id-{i:06d}" for i in range(900)]})
    reader = open_split(table, tmp_path, IndexingOptions())
    assert "keys" not in words_of(reader)._words.fields
    assert reader.search(ast.Term("id", "id-000007")).rows.tolist() == [7]


def test_long_terms_do_not_break_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "MOST_SEPARATORS", 1000)
    values = [f"{'long' * 300}{i:03d}" for i in range(600)] * 5
    reader = open_split(pa.table({"s": values}), tmp_path, IndexingOptions())
    assert "keys" not in words_of(reader)._words.fields
    assert len(reader.search(ast.Term("s", values[9])).rows) == 5


# -- damage --------------------------------------------------------------------------------------


def directory(blocks: int = 1, **changed: Any) -> bytes:
    given: dict[str, Any] = {
        "name": "f0",
        "record": 2,
        "terms": 256 * blocks,
        "per_block": 256,
        "separators": [b"%03d" % i for i in range(blocks)],
        "sizes": [10] * blocks,
        "unpacked": [20] * blocks,
        "lists": list(range(7, 7 * blocks + 7, 7)),
        "places": list(range(3, 3 * blocks + 3, 3)),
        "sums": [9] * blocks,
    }
    return pack_directory([BlockTable(**{**given, **changed})])


def test_a_directory_is_read_back() -> None:
    (field,) = parse_directory(directory(4), "p").values()
    assert (field.name, field.record, field.terms, len(field)) == ("f0", 2, 1024, 4)
    assert field.starts.tolist() == [0, 10, 20, 30, 40]
    assert field.lists.tolist() == [0, 7, 14, 21, 28]
    assert field.places.tolist() == [0, 3, 6, 9, 12]
    assert [field.block_of(t) for t in (b"", b"000", b"0005", b"002", b"9")] == [None, 0, 0, 2, 3]
    assert list(field.blocks_between(b"001", b"002")) == [1]
    assert list(field.blocks_between(b"0015", b"003")) == [1, 2]
    assert list(field.blocks_between(b"", None)) == [0, 1, 2, 3]


BROKEN: dict[str, Callable[[], bytes]] = {
    "magic": lambda: b"ITXWORD9" + directory()[8:],
    "cut": lambda: directory()[:-3],
    "size": lambda: directory()[:12] + struct.pack("<I", 5) + directory()[16:],
    "bomb": lambda: directory()[:12] + struct.pack("<I", 2**32 - 1) + directory()[16:],
    "fields": lambda: directory()[:8] + struct.pack("<I", 2) + directory()[12:],
    "record": lambda: directory(record=3),
    "terms": lambda: directory(terms=2**60),
    "per block": lambda: directory(per_block=0, terms=0),
    "order": lambda: directory(2, lists=[9, 5]),
    "short": lambda: b"ITX",
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_directory_is_refused(how: str) -> None:
    with little_memory(), pytest.raises(CorruptFileError, match="words"):
        parse_directory(BROKEN[how](), "p")


def test_damaged_directories_are_refused_or_fit(rng: random.Random) -> None:
    raw = directory(5)
    refused = 0
    for _ in range(3000):
        bad = bytearray(raw)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        try:
            for field in parse_directory(bytes(bad), "p").values():
                assert field.block_of(b"002") in (None, *range(len(field)))
        except CorruptFileError:
            refused += 1
    assert refused > 300


@pytest.mark.parametrize("what", ["block", "list", "places"])
def test_a_flipped_byte_is_named(corpus: tuple[pa.Table, SplitReader], what: str) -> None:
    """The bytes that a search reads are changed one after another: each change is noticed."""
    _, good = corpus
    words = words_of(good)._words
    phrase = ast.Phrase("msg", ("w00000", "w00001"))
    assert len(good.search(phrase).rows)
    raw = bytearray(good.source.store.read(good.path))
    member = {"block": members.WORDS, "list": "idx", "places": "pos"}[what]
    if what == "block":
        start, end = good.source.range_of(member)
        field = words.fields["f0"]
        start, end = start + int(field.starts[0]), start + int(field.starts[1])
    else:
        start, end = words._slice(member, "f0")
        start += 8 * (what == "list")
        end = start + int(getattr(words.fields["f0"], {"list": "lists"}.get(what, what))[1])
    piece = range(start, min(end, start + 4000), 97)
    noticed = 0
    for at in piece:
        bad = bytes(raw[:at]) + bytes([raw[at] ^ 64]) + bytes(raw[at + 1 :])
        store = good.source.store
        store.put(f"bad-{what}.split", bad)
        ref = type(good.ref)(
            f"bad-{what}.split", len(bad), good.ref.footer_start, good.ref.footer_end
        )
        forget_readers()
        try:
            same = SplitReader(store, ref).search(phrase).rows.tolist()
            assert same == good.search(phrase).rows.tolist()
        except CorruptFileError as error:
            noticed += error.path == ref.path
    assert noticed > len(piece) // 2


def test_what_was_decoded_is_kept(corpus: tuple[pa.Table, SplitReader]) -> None:
    _, reader = corpus
    forget_readers()
    words = words_of(reader)
    assert reader.search(ast.Term("msg", "w00002")).rows.tolist()
    calls: list[Any] = []
    whole = words._words._source.ranges
    try:
        words._words._source.ranges = lambda ranges: calls.append(ranges) or whole(ranges)
        reader.search(ast.Term("msg", "w00002"))
    finally:
        del words._words._source.ranges
    assert not [r for r in calls if r]


def test_checksums_cover_the_members(corpus: tuple[pa.Table, SplitReader]) -> None:
    _, reader = corpus
    for name in (members.WORDS, members.WORDS_DIRECTORY):
        assert crc32c(reader.source.fetch(name)) == reader.info.checksums[name]
