"""What a commit carries beside files: cross-references, indexes, skips, and removes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from log_helpers import (
    append,
    new_table,
    remove,
    reopen,
    run,
    split,
)

from indextables.log.actions import (
    AddFile,
    AddXRef,
    DefineIndex,
    IndexBlocks,
    IndexFile,
    RemoveFile,
    RemoveXRef,
    SkipFile,
    Txn,
)
from indextables.log.read.versions import version_path


def xref(name: str, *sources: str) -> AddXRef:
    return AddXRef(f"_xrefsplits/abcd/{name}.split", name, sources, len(sources), 10)


def test_cross_reference_methods() -> None:
    log = new_table()
    append(log, "a", "b")
    run(
        log,
        "WRITE",
        [replace(split("x"), path="d=1/c.split"), replace(split("x"), path="d=2/c.split")],
    )
    log.add_xref(xref("x1", "a.split", "d=1/c.split"))
    assert [x.xref_id for x in log.list_xrefs()] == ["x1"]
    covering = log.get_xref_for_split("a.split")
    assert covering is not None
    assert covering.xref_id == "x1"
    assert log.get_xref_for_split("c.split") is not None
    assert log.get_xref_for_split("d=2/c.split") is None
    assert log.get_xref_for_split("b.split") is None
    assert sorted(f.path for f in log.get_splits_without_xref()) == ["b.split", "d=2/c.split"]
    old = log.list_xrefs()[0]
    log.replace_xref(
        RemoveXRef(old.path, old.xref_id, 5, "replaced"), xref("x2", "a.split", "b.split")
    )
    assert [x.xref_id for x in log.list_xrefs()] == ["x2"]
    assert [x.reason for x in log.list_removed_xrefs()] == ["replaced"]
    log.remove_xref(xref("x2").path, "source_changed")
    assert log.list_xrefs() == []
    assert len(log.get_splits_without_xref()) == 4
    with pytest.raises(Exception, match="list_xrefs"):
        log.remove_xref(xref("x2").path)


@pytest.mark.parametrize("form", ["avro", "json"])
def test_side_actions_survive_a_checkpoint(form: str) -> None:
    log = new_table(state__format=form)
    append(log, "a", "b")
    log.add_xref(xref("x1", "a.split"))
    run(log, "CREATE INDEX", [DefineIndex("1a", "id", 7)])
    blocks = IndexBlocks(
        "1a", "id", files=(IndexFile("a.split", "_colindex/a.idx", 9, 3, 5, 0, 4),)
    )
    run(log, "INDEX", [blocks])
    skip = SkipFile("b.split", 5, "broken", "merge", {}, 105, 99, 2)
    run(log, "SKIP", [skip, Txn("app", 3, 1)])
    before = log.snapshot()
    log.checkpoint()
    log.store.delete([version_path(v) for v in range(1, before.version + 1)])
    after = reopen(log).snapshot()
    assert after.version == before.version
    assert after.xrefs == before.xrefs != ()
    assert after.indexes == before.indexes
    assert after.indexes.files["id", "a.split"] == blocks.files[0]
    assert after.skips == {"b.split": skip}
    assert after.txns == {"app": 3}
    assert after.protocol == before.protocol
    assert after.metadata == before.metadata
    assert sorted(f.path for f in after.files()) == ["a.split", "b.split"]
    remove(log, "b")
    assert reopen(log).snapshot().skips == {}


def test_removes_keep_what_they_know() -> None:
    log = new_table(partitioned=True)
    append(log, "a", day="1")
    add = log.snapshot().file(0)
    removal = add.removal(77, tags={"reason": "overwrite"})
    assert removal == RemoveFile(
        "a.split", 77, True, None, {"day": "1"}, 105, {"reason": "overwrite"}
    )
    assert isinstance(add, AddFile)
    assert (add.added_at_version, add.added_at_timestamp) == (1, log.snapshot().timestamp_ms)
