"""A flipped byte anywhere in a split is an error that names the split, or changes nothing read."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from splitkit import RANDOM_OPTIONS, finish_split, open_split, random_table

from indextables.errors import CorruptFileError, IndexTablesError
from indextables.expr import ast
from indextables.expr.bind import bind
from indextables.splits.read.access import matching_rows, read_split
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.source import SplitRef
from indextables.storage.base import Store, open_store


def everything(reader: SplitReader, table: pa.Table) -> list[Any]:
    """One of every way to read a split."""
    ids = table.column("id")
    uuid = ids[len(ids) // 2].as_py()
    filters = [f"id = '{uuid}'", "level = 'ERROR'", "n > 48", "x > 1.5", "host like 'host-03%'"]
    found: list[Any] = [pa.Table.from_batches(read_split(reader)).to_pydict()["id"]]
    for text in filters:
        found.append(matching_rows(reader, bind(text, table.schema)).tolist())
    queries: list[ast.Query] = [
        ast.Term("msg", "alpha"),
        ast.Phrase("msg", ("alpha", "beta")),
        ast.Term("tags", "a"),
        ast.Regex("host", "host-00[12]"),
        ast.Term("ip", "10.1.0.0/16"),
    ]
    found += [reader.search(q).rows.tolist() for q in queries]
    best = reader.search(ast.Term("msg", "beta"), limit=5, scored=True)
    found += [best.rows.tolist(), reader.fuse_filter(), reader.member("_doc_mapping.json")]
    return found


@pytest.fixture(scope="module")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> tuple[pa.Table, bytes, Any]:
    table = random_table(random.Random(3), 1500)
    finished = finish_split(table, RANDOM_OPTIONS)
    raw = Path(finished.local_path).read_bytes()
    finished.discard()
    return table, raw, finished


def reopen(folder: Path, raw: bytes, finished: Any) -> tuple[Store, SplitRef]:
    folder.mkdir(exist_ok=True)
    (folder / "bad.split").write_bytes(raw)
    forget_readers()
    ref = SplitRef("bad.split", len(raw), finished.footer_start, finished.footer_end)
    return open_store(str(folder)), ref


def test_a_flipped_byte_is_named_or_harmless(
    pristine: tuple[pa.Table, bytes, Any], tmp_path: Path, rng: random.Random
) -> None:
    table, raw, finished = pristine
    store, ref = reopen(tmp_path, raw, finished)
    expected = everything(SplitReader(store, ref), table)
    files = SplitReader(store, ref).source.footer.files
    places = [rng.randrange(len(raw)) for _ in range(10)]
    for start, end in files.values():
        if end > start:
            places += [start, rng.randrange(start, end)]
    places += range(
        finished.footer_start, len(raw), max(1, (len(raw) - finished.footer_start) // 12)
    )
    caught = 0
    for place in places:
        bad = bytearray(raw)
        bad[place] ^= 1 << rng.randrange(8)
        store, ref = reopen(tmp_path, bytes(bad), finished)
        try:
            assert everything(SplitReader(store, ref), table) == expected, place
        except CorruptFileError as error:
            caught += error.path == "bad.split"
    # Some bytes are never read here, so a few flips change nothing; which, the seed decides.
    # ``test_verification_sees_every_byte`` is about all of them.
    assert caught > len(places) // 2, f"{len(places) - caught} flips went unnoticed"


def test_verification_sees_every_byte(tmp_path: Path) -> None:
    finished = finish_split(random_table(random.Random(4), 1), RANDOM_OPTIONS)
    raw = Path(finished.local_path).read_bytes()
    finished.discard()
    SplitReader(*reopen(tmp_path, raw, finished)).verify()
    for place in range(0, len(raw), 17):
        bad = bytearray(raw)
        bad[place] ^= 0x41
        with pytest.raises(CorruptFileError, match="bad"):
            SplitReader(*reopen(tmp_path, bytes(bad), finished)).verify()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda raw: raw[:-1],
        lambda raw: raw[:100],
        lambda raw: raw[1:],
        lambda raw: b"",
        lambda raw: bytes(len(raw)),
        lambda raw: raw + b"\0",
        lambda raw: raw[: len(raw) // 2] + raw[len(raw) // 2 + 1 :] + b"\0",
    ],
)
def test_cut_and_shifted_files(
    spoil: Callable[[bytes], bytes], pristine: tuple[pa.Table, bytes, Any], tmp_path: Path
) -> None:
    table, raw, finished = pristine
    store, ref = reopen(tmp_path, spoil(raw), finished)
    for size, start in ((len(raw), finished.footer_start), (len(spoil(raw)), -1)):
        with pytest.raises(IndexTablesError, match="bad"):
            everything(SplitReader(store, SplitRef(ref.path, size, start, len(raw))), table)


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="gone"):
        SplitReader.open(store, SplitRef("gone.split", 100, 50, 100))


def test_remote_reads_are_checked_too(
    pristine: tuple[pa.Table, bytes, Any], rng: random.Random
) -> None:
    table, raw, finished = pristine
    store = open_store(f"memory://corrupt-{rng.getrandbits(40)}/t")
    store.put("good.split", raw)
    ref = SplitRef("good.split", len(raw), finished.footer_start, finished.footer_end)
    expected = everything(SplitReader(store, ref), table)
    for number in range(25):
        bad = bytearray(raw)
        bad[rng.randrange(len(raw))] ^= 0x10
        name = f"bad-{number}.split"
        store.put(name, bytes(bad))
        spoiled = SplitRef(name, len(raw), finished.footer_start, finished.footer_end)
        with contextlib.suppress(CorruptFileError):
            assert everything(SplitReader(store, spoiled), table) == expected


def test_a_small_split_opens(tmp_path: Path) -> None:
    reader = open_split(pa.table({"a": [1]}), tmp_path)
    assert reader.num_rows == 1
