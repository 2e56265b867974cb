"""The keys a split keeps for key maps: those of its filter, counted, and only if it is asked to."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from indextables.config import Config
from indextables.expr.keys import HASH_KIND
from indextables.mapping import DocMapping, IndexingOptions
from indextables.native import hash_term
from indextables.splits.format import members
from indextables.splits.format.keymap import KeyMap, open_keymap
from indextables.splits.format.keysets import BLOCK_ROWS
from indextables.splits.read.reader import SplitReader
from indextables.splits.read.source import SplitRef
from indextables.splits.write.split_writer import SplitWriter
from indextables.storage.base import open_store

ON = {"xref.keymap.enabled": True}
ROWS = 3 * BLOCK_ROWS


def table(rng: random.Random) -> pa.Table:
    words = [f"word{i}" for i in range(50)]
    return pa.table(
        {
            "id": [f"id-{i}" for i in range(ROWS)],
            "kind": [f"k{i % 7}" for i in range(ROWS)],
            "txt": [" ".join(rng.sample(words, 3)) for _ in range(ROWS)],
            "f": [i / 7 for i in range(ROWS)],
            "ts": pa.array(range(ROWS), pa.timestamp("us")),
        }
    )


def written(rows: pa.Table, folder: Path, settings: dict[str, Any]) -> SplitReader:
    mapping = DocMapping.for_schema(rows.schema, options=IndexingOptions(text=("txt",)))
    writer = SplitWriter(rows.schema, mapping, Config(settings))
    for batch in rows.to_batches(max_chunksize=5000):
        writer.write(batch)
    finished = writer.finish()
    store = open_store(str(folder))
    store.put_file("a.split", finished.local_path)
    finished.discard()
    return SplitReader.open(store, SplitRef.of(finished.to_add("a.split")))


def answer(data: bytes, field: str, text: str) -> Any:
    found: KeyMap = open_keymap(lambda a, b: data[a:b], len(data), "keys")
    key = hash_term(field, text, HASH_KIND)
    a, b = found.range_of(found.bucket_of(key))
    return found.probe(data[a:b], key)


def test_a_split_keeps_no_keys_unless_it_is_asked_to(rng: random.Random, tmp_path: Path) -> None:
    assert not written(table(rng), tmp_path, {}).source.has(members.KEYS)


def test_every_key_is_there_with_its_documents_and_row_block(
    rng: random.Random, tmp_path: Path
) -> None:
    rows = table(rng)
    reader = written(rows, tmp_path, ON)
    reader.verify()
    data = reader.member(members.KEYS)
    blocks = 0
    for row in range(0, ROWS, 97):
        code, splits, block = answer(data, "id", f"id-{row}")
        assert (code, splits.tolist()) == (1, [0])
        blocks += block == row // BLOCK_ROWS
        assert block in (-1, row // BLOCK_ROWS)
    assert blocks
    code, _, block = answer(data, "kind", "k3")
    assert code > 200
    assert block == -1
    held = sum("word7" in text.split() for text in rows["txt"].to_pylist())
    assert held > 200
    assert answer(data, "txt", "word7")[0] > 200
    assert answer(data, "txt", "word700") is None


@pytest.mark.parametrize("everything", [False, True])
def test_floats_and_timestamps_are_kept_only_on_request(
    rng: random.Random, tmp_path: Path, everything: bool
) -> None:
    settings = {**ON, "xref.keymap.allTypes": everything}
    data = written(table(rng), tmp_path, settings).member(members.KEYS)
    found = open_keymap(lambda a, b: data[a:b], len(data), "keys")
    named = {f.name for f in DocMapping.from_json(found.kinds.texts[0][0]).fields}
    assert named == {"id", "kind", "txt"} | ({"f", "ts"} if everything else set())
    assert (answer(data, "f", "1") is not None) is everything
    assert (answer(data, "ts", "7000") is not None) is everything
