"""Deletion vectors in the log: their bytes, their descriptors, and every form a snapshot has."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import indextables
from indextables.config import Config
from indextables.errors import CorruptFileError, ProtocolError, UnsafePathError
from indextables.log.actions import AddFile, DeletionVector, Protocol, parse_action
from indextables.log.actions import protocol as protocols
from indextables.log.actions.vector import base85, from_base85
from indextables.log.checkpoint.encode import pack_adds
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.vectors.codec import framed, read_vector, vector_bytes
from indextables.log.vectors.stored import deleted_rows, store_vectors
from indextables.storage.base import open_store

LAKE = Path(__file__).parents[3] / "shared" / "lake"
QUIET = {"checkpoint.interval": 0, "xref.autoIndex.enabled": False}


def rows_of(*rows: int) -> Any:
    return np.array(rows, np.uint32)


def table_of(path: Path, count: int = 20) -> TransactionLog:
    data = pa.table({"k": pa.array(range(count), pa.int64())})
    indextables.write(data, str(path), options=QUIET)
    return TransactionLog.open(str(path), config=Config(QUIET))


def narrowed(log: TransactionLog, rows: Any, most_inline: int = 1024) -> None:
    """Commit a vector for the only split of a table."""
    snapshot = log.snapshot()
    (add,) = snapshot.files()
    vector = store_vectors(log.store, {add.path: rows}, most_inline)[add.path]
    actions = [replace(add, deletion_vector=vector)]
    log.commit(Transaction(snapshot, "TEST", actions=actions))


# -- bytes ----------------------------------------------------------------------------------------


def test_a_vector_is_read_with_and_without_its_frame() -> None:
    data = vector_bytes(rows_of(3, 4, 70_000))
    assert data.startswith(b"\xd1\xd3\x39\x64")
    assert read_vector(data).tolist() == [3, 4, 70_000]
    assert read_vector(framed(data)).tolist() == [3, 4, 70_000]


def test_every_changed_byte_of_a_frame_is_seen() -> None:
    whole = framed(vector_bytes(rows_of(3, 4, 70_000)))
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        with pytest.raises(CorruptFileError):
            read_vector(bytes(damaged))


def test_base85_is_that_of_delta() -> None:
    """The example of Delta's protocol: a UUID, and its text in a descriptor."""
    file_id = uuid.UUID("61d16c75-6994-46b7-a15b-8b538852e50e")
    assert base85(file_id.bytes) == "vBn[lx{q8@P<9BNH/isA"
    assert from_base85("vBn[lx{q8@P<9BNH/isA", 16) == file_id.bytes
    for size in range(1, 9):
        data = bytes(range(250, 250 + size)) if size < 6 else bytes(size)
        assert from_base85(base85(data), size) == data
    for wrong in ("abc", "abcd~", "abcdé"):
        with pytest.raises(CorruptFileError):
            from_base85(wrong, 4)


def test_vectors_of_delta_are_read() -> None:
    """Tables that Delta wrote: each vector has the rows its descriptor says."""
    lake = LAKE / "delta"
    if not lake.exists():
        pytest.skip("no tables of Delta here")
    seen = 0
    for file in lake.glob("*/_delta_log/*.json"):
        for line in file.read_text().splitlines():
            add = json.loads(line).get("add") or {}
            if add.get("deletionVector"):
                vector = DeletionVector.from_dict(add["deletionVector"])
                store = open_store(str(file.parents[1]))
                rows = deleted_rows(store, vector, json.loads(add["stats"])["numRecords"], "x")
                assert len(rows) == vector.cardinality
                seen += 1
    assert seen >= 2


def test_a_vector_of_iceberg_is_read() -> None:
    """The blob of a Puffin file, which a table of version 3 may also hold bare."""
    files = list(LAKE.glob("iceberg/**/legacy-bare-deletion-vector.puffin"))
    if not files:
        pytest.skip("no tables of Iceberg here")
    assert read_vector(files[0].read_bytes()).tolist() == [1]


# -- descriptors ----------------------------------------------------------------------------------


def test_the_action_is_spelled_as_delta_spells_it(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    large = np.arange(0, 9000, 2, dtype=np.uint32)
    vectors = store_vectors(store, {"a": rows_of(1), "b": large, "c": large[:4000]}, 100)
    small, one, two = vectors["a"], vectors["b"], vectors["c"]
    assert (small.storage_type, small.path, small.offset) == ("i", None, None)
    assert one.storage_type == "u"
    assert one.path == two.path == next(tmp_path.glob("deletion_vector_*.bin")).name
    assert one.offset == 1
    spelled = AddFile("x.split", size=1, deletion_vector=one).envelope()["add"]["deletionVector"]
    assert list(spelled) == [
        "storageType", "pathOrInlineDv", "offset", "sizeInBytes", "cardinality",
    ]  # fmt: skip
    assert parse_action({"add": {"path": "x.split", "size": 1, "deletionVector": spelled}}) == (
        AddFile("x.split", size=1, deletion_vector=one)
    )
    for path, vector, rows in (("a", small, rows_of(1)), ("b", one, large), ("c", two, large)):
        assert (
            deleted_rows(store, vector, 9000, path).tolist() == rows[: vector.cardinality].tolist()
        )


@pytest.mark.parametrize("field", ["storageType", "pathOrInlineDv", "sizeInBytes", "cardinality"])
def test_a_descriptor_must_be_complete(field: str) -> None:
    body = DeletionVector.inline(vector_bytes(rows_of(1)), 1).to_dict()
    del body[field]
    with pytest.raises(CorruptFileError, match=field):
        parse_action({"add": {"path": "x", "size": 1, "deletionVector": body}})


def test_a_vector_outside_the_table_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with pytest.raises(UnsafePathError, match="outside"):
        deleted_rows(store, DeletionVector("p", "/etc/passwd", 4, 1, 0), 10, "s")
    escaping = DeletionVector("u", "../x" + base85(uuid.uuid4().bytes), 4, 1, 0)
    with pytest.raises(UnsafePathError):
        deleted_rows(store, escaping, 10, "s")


def test_a_vector_is_compared_with_what_the_log_says(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    vector = store_vectors(store, {"s": rows_of(1, 7)}, 0)["s"]
    assert deleted_rows(store, vector, 8, "s").tolist() == [1, 7]
    with pytest.raises(CorruptFileError, match="names row 7 of 7"):
        deleted_rows(store, vector, 7, "s")
    with pytest.raises(CorruptFileError, match="holds 2 rows, not 3"):
        deleted_rows(store, replace(vector, cardinality=3), 8, "s")
    file = next(tmp_path.glob("*.bin"))
    raw = bytearray(file.read_bytes())
    raw[-6] ^= 1
    file.write_bytes(raw)
    with pytest.raises(CorruptFileError, match="checksum"):
        deleted_rows(store, vector, 9, "s")


# -- snapshots ------------------------------------------------------------------------------------


def test_every_form_of_an_entry_carries_the_vector(tmp_path: Path, rng: random.Random) -> None:
    adds = []
    for k in range(300):
        rows = np.array(sorted(rng.sample(range(100), rng.randint(1, 9))), np.uint32)
        vector = DeletionVector.inline(vector_bytes(rows), len(rows)) if k % 3 else None
        if k % 7 == 1:
            vector = DeletionVector.stored(uuid.uuid4(), k, 50, 5)
        adds.append(AddFile(f"{k}.split", size=9, num_records=100, deletion_vector=vector))
    (packed,) = pack_adds(adds)
    assert [packed.add(k).deletion_vector for k in range(300)] == [a.deletion_vector for a in adds]


@pytest.mark.parametrize("form", ["json", "avro"])
def test_checkpoints_and_states_carry_the_vector(tmp_path: Path, form: str) -> None:
    table_of(tmp_path / "t")
    config = Config({**QUIET, "state.format": form})
    log = TransactionLog.open(str(tmp_path / "t"), config=config)
    narrowed(log, rows_of(2, 3, 5))
    log.checkpoint()
    fresh = TransactionLog.open(str(tmp_path / "t"), config=Config(QUIET)).snapshot()
    assert fresh.num_rows == 17
    assert fresh.num_deleted.tolist() == [3]
    assert fresh.num_records.tolist() == [20]
    assert fresh.file(0).num_live == 17
    assert fresh.file(0).added_at_version == 1


def test_the_feature_is_named_with_the_first_vector_only(tmp_path: Path) -> None:
    log = table_of(tmp_path / "t")
    before = log.snapshot().protocol
    assert "deletionVectors" not in (before.reader_features or ())
    narrowed(log, rows_of(1))
    after = log.snapshot().protocol
    assert "deletionVectors" in (after.reader_features or ())
    assert "deletionVectors" in (after.writer_features or ())
    assert after.min_reader_version == before.min_reader_version


def test_a_reader_without_the_feature_refuses_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrowed(table_of(tmp_path / "t"), rows_of(1))
    for name in ("READER_FEATURES", "WRITER_FEATURES"):
        old = frozenset(getattr(protocols, name)) - {"deletionVectors"}
        monkeypatch.setattr(protocols, name, old)
    with pytest.raises(ProtocolError, match=r"cannot read: deletionVectors") as refused:
        indextables.open(str(tmp_path / "t")).to_arrow()
    assert "Upgrade indextables" in str(refused.value)


def test_autoupgrade_off_refuses_the_first_vector(tmp_path: Path) -> None:
    table_of(tmp_path / "t")
    config = Config({**QUIET, "protocol.autoUpgrade": False})
    log = TransactionLog.open(str(tmp_path / "t"), config=config)
    with pytest.raises(ProtocolError, match="deletionVectors"):
        narrowed(log, rows_of(1))
    assert log.snapshot().num_rows == 20


def test_the_protocol_names_what_its_version_implies_and_no_other_named_feature() -> None:
    raised = protocols.upgraded(Protocol(4, 4), [protocols.DELETION_VECTORS])
    assert "crossReferenceIndex" not in (raised.reader_features or ())
    assert "avroState" in (raised.reader_features or ())
