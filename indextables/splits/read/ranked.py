"""A split's index that scores with the mean lengths of the whole table, and skips deleted rows.

tantivy takes the mean length of a text from the index it has open: tokens over documents. So the
segment of a split is put into a folder beside a second one that holds no row: a segment whose
``meta.json`` says just so many documents, all of them deleted, and whose postings say just so many
tokens that both together have the table's means. With 2^24 documents in all every mean is met to
the last bit. The frequency of a word, which belongs to the table too, is put right by a boost:
``idf`` is a factor, and a boost another (``read.ranking``).

Rows that the table deleted are marked for tantivy in its own way: by a bitmap of those alive.

The files of the split's own index are linked, not copied; slices that are fetched later are seen.
"""

from __future__ import annotations

import json
import os
import struct
import tempfile
import weakref
from collections.abc import Hashable, Iterable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indextables.lru import LRU
from indextables.native._crc32c import crc32c
from indextables.splits.format.fields import has_own_field, tantivy_fields
from indextables.splits.format.info import SplitInfo
from indextables.splits.read.indexfiles import SEGMENT, composite_slices, footer_start, tokens_of
from indextables.splits.read.source import SplitSource
from indextables.splits.read.workspace import OpenIndex, Part, run
from indextables.storage.scratch import in_scratch, scratch_folder
from indextables.storage.workfolders import release

OTHER_ID = "00000000-0000-0000-0000-000000000002"
OTHER = OTHER_ID.replace("-", "")
FEWEST, MOST = 24, 31
MAX_RANKED = 64
_STAMP = 1


class RankedIndex:
    """One split's index with the means of a table."""

    def __init__(
        self,
        base: OpenIndex,
        source: SplitSource,
        means: Mapping[str, float],
        deleted: NDArray[np.uint32] | None = None,
    ) -> None:
        """``means`` are mean numbers of tokens by the names of the index's fields."""
        assert source.info is not None
        self.base = base
        self.rows = source.info.num_rows
        self._path = source.path
        tokens = {name: field_tokens(source, name) for name in means}
        self.documents = _documents(self.rows, means, tokens)
        folder = scratch_folder("open")
        self._finalizer = weakref.finalize(self, release, folder)
        try:
            with in_scratch(os.path.dirname(os.path.dirname(folder))):
                base.link_into(folder)
                self._lay_other(folder, source.info, means, tokens)
                self._lay_meta(folder, source.info, deleted)
                self.searcher = _opened(folder, source.path)
        except BaseException:
            self._finalizer()
            raise

    def _lay_other(
        self,
        folder: str,
        info: SplitInfo,
        means: Mapping[str, float],
        tokens: Mapping[str, int],
    ) -> None:
        names = tantivy_fields(list(info.fields.values()))
        for extension, raw in _other_segment(_kinds(info)).items():
            data = bytearray(raw)
            if extension == "idx":
                found, _ = composite_slices(raw, self._path)
                for number, (start, _end) in found.items():
                    name = names[number]
                    if name in means:
                        missing = round(means[name] * self.documents) - tokens[name]
                        data[start : start + 8] = struct.pack("<Q", max(missing, 0))
                self._footer = bytes(raw[footer_start(raw) :])
            with open(os.path.join(folder, f"{OTHER}.{extension}"), "wb") as file:
                file.write(data)
        others = self.documents - self.rows
        self._lay_alive(os.path.join(folder, f"{OTHER}.{_STAMP}.del"), others, None)

    def _lay_alive(self, path: str, count: int, deleted: NDArray[np.uint32] | None) -> None:
        """The bitmap of documents alive: none, or all but the deleted ones."""
        size = -(-count // 64) * 8
        with open(path, "wb") as file:
            file.write(struct.pack("<I", count))
            if deleted is not None:
                alive = np.zeros(size * 8, np.bool_)
                alive[:count] = True
                alive[deleted] = False
                file.write(np.packbits(alive, bitorder="little").tobytes())
            file.truncate(4 + size)
            file.seek(4 + size)
            file.write(self._footer)

    def _lay_meta(self, folder: str, info: SplitInfo, deleted: NDArray[np.uint32] | None) -> None:
        meta = json.loads(info.index_meta)
        (own,) = meta["segments"]
        if deleted is not None and len(deleted):
            self._lay_alive(os.path.join(folder, f"{SEGMENT}.{_STAMP}.del"), self.rows, deleted)
            own["deletes"] = {"num_deleted_docs": len(deleted), "opstamp": _STAMP}
        others = self.documents - self.rows
        gone = {"num_deleted_docs": others, "opstamp": _STAMP}
        empty = {**own, "segment_id": OTHER_ID, "max_doc": others, "deletes": gone}
        meta["segments"] = [own, empty]
        meta["opstamp"] = _STAMP
        with open(os.path.join(folder, "meta.json"), "w") as file:
            json.dump(meta, file)

    def ensure(self, needs: Iterable[Part]) -> None:
        self.base.ensure(needs)

    def search(self, query: Any, limit: int) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """The best rows and their scores, best first."""
        searcher = self.searcher
        hits = run(lambda: searcher.search(query, limit, False), self._path).hits
        rows = np.array([address.doc for _, address in hits], np.uint32)
        return rows, np.array([score for score, _ in hits], np.float32)


def _opened(folder: str, path: str) -> Any:
    import tantivy

    return run(lambda: tantivy.Index.open(folder).searcher(), path)


def field_tokens(source: SplitSource, name: str) -> int:
    """How many tokens a field of a split's index has; only this function knows where it stands."""
    assert source.info is not None
    file = source.info.index_files.get("idx")
    if file is None or name not in file.slices:
        return 0
    if name in file.tokens:
        return file.tokens[name]
    part = file.slices[name]
    (raw,) = source.member_ranges(file.member, [(part.start, part.end)])
    if crc32c(raw) != part.crc:
        raise source.corrupt(f"member '{file.member}' has a wrong checksum")
    return tokens_of(raw)


def _documents(rows: int, means: Mapping[str, float], tokens: Mapping[str, int]) -> int:
    """How many documents to claim: a power of two that leaves no mean out of reach."""
    exponent = FEWEST
    while exponent < MOST and (
        1 << exponent <= rows
        or any(
            mean * (1 << exponent) < tokens[name] or (mean * (1 << exponent)) % 1
            for name, mean in means.items()
        )
    ):
        exponent += 1
    return 1 << exponent


def _kinds(info: SplitInfo) -> tuple[bool, ...]:
    """Which of the index's own fields are words (and not addresses)."""
    fields = info.fields.values()
    own = tuple(f.kind != "ip" for f in fields if has_own_field(f))
    return own + tuple(True for f in fields if f.grams)


@lru_cache(64)
def _other_segment(words: tuple[bool, ...]) -> dict[str, bytes]:
    """The files of a segment with one document that has one token in every field."""
    import tantivy

    entries = [_entry(f"f{number}", is_word) for number, is_word in enumerate((True, *words))]
    schema = tantivy.Schema._internal_from_pythonized({"inner": entries})
    with tempfile.TemporaryDirectory() as folder:
        index = tantivy.Index(schema, path=folder)
        writer = index.writer(15_000_000, num_threads=1)
        document = tantivy.Document()
        for entry in entries:
            if entry["type"] == "text":
                document.add_text(entry["name"], "x")
        writer.add_document(document)
        writer.commit()
        writer.wait_merging_threads()
        found = {}
        for name in os.listdir(folder):
            stem, _, extension = name.partition(".")
            if len(stem) == len(OTHER):
                with open(os.path.join(folder, name), "rb") as file:
                    found[extension] = file.read()
        return found


def _entry(name: str, is_word: bool) -> dict[str, Any]:
    if is_word:
        indexing = {"record": "basic", "fieldnorms": False, "tokenizer": "whitespace"}
        options: dict[str, Any] = {"indexing": indexing, "stored": False, "fast": False}
        return {"name": name, "type": "text", "options": options}
    options = {"indexed": False, "fieldnorms": False, "fast": True, "stored": False}
    return {"name": name, "type": "ip_addr", "options": options}


ranked_indexes: LRU[Hashable, RankedIndex] = LRU(MAX_RANKED)
"""The ranked indexes of this process."""
