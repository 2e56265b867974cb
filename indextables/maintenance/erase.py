"""ERASE: rows go for good, and the table proves it.

DELETE hides rows: their bytes stay in splits and in the versions before. ERASE does all that a law
on personal data asks for, in an order in which every step can be cut off and repeated:

1. the matching rows are deleted; the commit does not say by which condition;
2. every split with deleted rows is written again without them, also those that other commands
   deleted: a matching row may be among them;
3. one more version is committed, which changes nothing and names no file, and a checkpoint of it
   with manifests of its own, so that nothing older is needed;
4. the versions before end: their files in the log are deleted;
5. what only they listed (splits, indexes, vectors, cross-references) is deleted at once. Files that
   no version ever listed stay: they may belong to a write that is under way;
6. the proof: the newest version is asked for matching rows without any cache; every file that was
   to go is looked for; the log that is left is searched for the texts of the condition; splits that
   no version lists are opened and asked too.

What the proof finds is an error, or, for files that no version lists, part of the answer: PURGE
deletes those after its retention. A reader that is at an older version fails from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from indextables.columnindex.manage import prune_stale_indexes
from indextables.config import Config
from indextables.errors import IndexTablesError, MaintenanceError
from indextables.expr.predicate import (
    Compare,
    Constant,
    InSet,
    Like,
    NullTest,
    Predicate,
    StringMatch,
    TextMatch,
    Undecided,
    leaves,
)
from indextables.expr.typednode import Typed
from indextables.log.actions.codec import decompress
from indextables.log.commit.gate import mutates
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read.snapshot import Snapshot
from indextables.log.read.versions import LOG_DIR, list_log
from indextables.log.retention.rules import Needed
from indextables.maintenance.delete import delete_rows
from indextables.maintenance.logwork import truncate_time_travel
from indextables.maintenance.purging import FILES, needed_files, table_files
from indextables.maintenance.reorg import reorg_splits
from indextables.maintenance.rewrite import Runner
from indextables.maintenance.rows import EraseResult
from indextables.planner import Planner
from indextables.planner.tasks import split_refs
from indextables.splits.read.access import SplitScan
from indextables.splits.read.reader import SplitReader, forget_readers
from indextables.splits.read.source import SplitRef
from indextables.storage.deleting import Kind, delete, sift
from indextables.storage.machine import refuse_to_judge
from indextables.xref.builder import XRefBuildManager

NOTE = {"where": "not kept"}
SHORTEST = 3
"""Shorter texts of a condition are not looked for in the log: they stand in it by chance."""


@mutates("ERASE")
def erase_rows(
    log: TransactionLog,
    where: Any,
    *,
    dry_run: bool = False,
    config: Config | None = None,
    run: Runner | None = None,
) -> EraseResult:
    """Delete the rows that match, and every trace of them."""
    settings = config or log.config
    if dry_run:
        return _foreseen(log, where, settings)
    log.writable_snapshot()
    before = needed_files(log)
    deleted = delete_rows(log, where, config=settings, run=run, note=NOTE)
    rewritten = reorg_splits(log, config=settings, run=run)
    XRefBuildManager(log, settings).retire_orphans(dry_run=False)
    log.commit(_last_word(log.snapshot()))
    log.checkpoint(compact=True)
    ended = truncate_time_travel(log)
    gone = _delete_unlisted(log, before)
    indexes = prune_stale_indexes(log)
    proved = prove(log, where, gone, settings)
    text = f"Erased {deleted.rows_deleted:,} rows; proved by {proved.looked_at:,} files"
    if proved.unlisted:
        text += (
            f"; {len(proved.unlisted)} files that no version lists hold matching rows, for example "
            f"{proved.unlisted[0]}: PURGE deletes them after its retention"
        )
    return EraseResult(
        log.path,
        "PARTIAL_SUCCESS" if proved.unlisted else "SUCCESS",
        deleted.rows_deleted,
        rewritten.splits_rewritten + deleted.splits_rewritten,
        ended.versions_deleted,
        len(gone) + indexes,
        log.snapshot().version,
        text,
    )


def _last_word(snapshot: Snapshot) -> Transaction:
    """A version that says what the table is already: a commit without actions would be none."""
    return Transaction(snapshot, "ERASE", parameters=NOTE, actions=lambda now: [now.metadata])


def _foreseen(log: TransactionLog, where: Any, config: Config) -> EraseResult:
    plan = Planner(log, config=config).plan(where)
    plan.check_decidable()
    found = delete_rows(log, where, dry_run=True, config=config)
    older = [v for v in list_log(log.store).versions if v > 0]
    text = f"Would end {len(older)} versions; {found.message[:1].lower()}{found.message[1:]}"
    return EraseResult(log.path, "DRY_RUN", 0, 0, len(older), 0, -1, text)


def _delete_unlisted(log: TransactionLog, before: Needed) -> list[str]:
    """Delete what versions listed that have ended, and nothing that any version needs."""
    needed = needed_files(log)
    stays = needed.live
    candidates = sorted({*before.listed, *before.removed_at})
    there = {info.path for info in table_files(log)}
    allowed, _ = sift(FILES, [p for p in candidates if p in there and p not in stays], stays)
    delete(log.store, FILES, allowed, stays)
    return list(allowed)


# -- the proof ------------------------------------------------------------------------------------


class Proof:
    """What was looked at, and files that no version lists but that hold matching rows."""

    def __init__(self) -> None:
        self.looked_at = 0
        self.unlisted: list[str] = []


def prove(log: TransactionLog, where: Any, gone: list[str], config: Config) -> Proof:
    """Raise unless no file that a version lists holds a matching row, and the log says nothing."""
    forget_readers()
    log.invalidate_cache()
    proof = Proof()
    planner = Planner(log, config=config)
    snapshot, predicate = log.snapshot(), planner.bind(where)
    listed = set(snapshot.paths.to_pylist())
    for ref in split_refs(snapshot, range(snapshot.num_files)):
        proof.looked_at += 1
        if _holds(log, ref.physical(), predicate, config):
            raise _not_erased(log, f"{ref.path} holds matching rows")
    there = {info.path: info for info in table_files(log)}
    left = [path for path in gone if path in there]
    if left:
        raise _not_erased(log, f"{left[0]} could not be deleted")
    for path, info in there.items():
        if Kind.SPLIT.has(path) and path not in listed:
            proof.looked_at += 1
            if _may_hold(log, path, info.size, predicate, config):
                proof.unlisted.append(path)
    proof.looked_at += _search_log(log, predicate)
    return proof


def _holds(log: TransactionLog, ref: SplitRef, predicate: Predicate, config: Config) -> bool:
    """Are there matching rows in a split, whatever the log and its deletion vectors say?"""
    reader = SplitReader.open(log.store, ref, config=config)
    schema = log.snapshot().schema
    scan = SplitScan(reader, predicate, schema=schema, partition_values=ref.partition_values)
    return scan.count() > 0


def _may_hold(
    log: TransactionLog, path: str, size: int, predicate: Predicate, config: Config
) -> bool:
    """The same of a file that no version lists; one that cannot be read as a split holds none."""
    try:
        return _holds(log, SplitRef(path, size), predicate, config)
    except IndexTablesError as error:
        refuse_to_judge(error)
        return False


def _search_log(log: TransactionLog, predicate: Predicate) -> int:
    """Look for the texts of the condition in what is left of the log."""
    sought = [text.encode() for text in _texts(predicate) if len(text) >= SHORTEST]
    looked_at = 0
    for change in log.history():
        looked_at += 1
        said = repr(change).encode()
        if any(text in said for text in sought):
            raise _not_erased(log, f"version {change.version} still names a value", change.version)
    for info in log.store.list(LOG_DIR, recursive=True) if sought else ():
        looked_at += 1
        raw = plain_text(log.store.read(info.path))
        if any(text in raw for text in sought) and not _is_of_schema(log, raw, sought):
            raise _not_erased(log, f"{info.path} still names a value")
    return looked_at


def plain_text(data: bytes) -> bytes:
    """The bytes of a file of the log, unpacked where it is JSON that was packed."""
    try:
        return decompress(data)
    except IndexTablesError:
        return data


def _is_of_schema(log: TransactionLog, raw: bytes, sought: list[bytes]) -> bool:
    """Do the texts stand in the names of columns, which stay?"""
    names = " ".join(log.snapshot().schema.names).encode()
    return all(text in names or text not in raw for text in sought)


def _texts(predicate: Predicate) -> Iterator[str]:
    """The texts that a condition looks for."""
    for leaf in leaves(predicate):
        match leaf:
            case Compare():
                yield from [leaf.value] if isinstance(leaf.value, str) else []
            case InSet():
                yield from (value for value in leaf.values if isinstance(value, str))
            case StringMatch():
                yield leaf.text
            case Like():
                yield from (part for part in leaf.pattern.segments if isinstance(part, str))
            case TextMatch():
                yield leaf.source
            case Undecided():
                yield from _literals(leaf.expression)
            case NullTest() | Constant():
                pass
            case _:
                assert_never(leaf)


def _literals(node: Typed | None) -> Iterator[str]:
    if node is not None:
        yield from [node.value] if isinstance(node.value, str) and node.op == "literal" else []
        for arg in node.args:
            yield from _literals(arg)


def _not_erased(log: TransactionLog, what: str, version: int | None = None) -> MaintenanceError:
    return MaintenanceError(
        f"the rows are deleted but not proved to be erased: {what}",
        path=log.path,
        version=version,
        hint="Another writer may have been faster; run ERASE again, then DOCTOR",
    )
