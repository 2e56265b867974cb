"""Bugs that we plant ourselves: the yardstick of the simulation.

Each bug is a wrong variant of one function at its real site, put there from outside while a run
lasts. So there is no switch in the package, nothing to forget in a release, and wheels have none of
it (they do not hold ``tests``). A bug names its site, the stories that can meet it, the number of
their seeds within which the simulation has to catch it. A site that no longer exists fails before
any seed runs.

``from_issue`` marks the defects that an afternoon of attack had found and that months of random
tests had not: with these stories they would have been met.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any
from unittest import mock

import numpy as np

Plant = Callable[[ExitStack], None]
PLANTED: dict[str, Bug] = {}


@dataclass(frozen=True)
class Bug:
    """One planted bug."""

    name: str
    where: str
    what: str
    budget: int
    plant: Plant
    from_issue: bool = False
    stories: tuple[str, ...] = ()
    """Stories that can meet it; only their seeds are played and counted."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        with ExitStack() as stack:
            self.plant(stack)
            yield


def bug(where: str, *, budget: int, stories: str, issue: bool = False) -> Any:
    """Registers a bug; the function plants it, its docstring says what is wrong."""

    def register(plant: Plant) -> Plant:
        name = plant.__name__
        what = (plant.__doc__ or "").strip().rstrip(".")
        PLANTED[name] = Bug(name, where, what, budget, plant, issue, tuple(stories.split(", ")))
        return plant

    return register


def at(stack: ExitStack, place: str, new: Any) -> None:
    """Put ``new`` at ``package.module:name`` or ``package.module:Class.name``."""
    module, _, path = place.partition(":")
    owner: Any = import_module(f"indextables.{module}")
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    getattr(owner, name)
    stack.enter_context(mock.patch.object(owner, name, new))


def real(place: str) -> Any:
    module, _, path = place.partition(":")
    found: Any = import_module(f"indextables.{module}")
    for part in path.split("."):
        found = getattr(found, part)
    return found


# -- commits ---------------------------------------------------------------------------------------


@bug("storage/commit.py::commit_slot", budget=10, stories="anything, lost_replies")
def unconditional_create(stack: ExitStack) -> None:
    """A version is written without asking whether it is there"""
    from store_doubles import UnconditionalStore

    slot = real("storage.commit:commit_slot")

    def commit_slot(store: Any, path: str, data: bytes, **rest: Any) -> None:
        slot(UnconditionalStore(store), path, data, **rest)

    at(stack, "log.commit.loop:commit_slot", commit_slot)


@bug("storage/commit.py::commit_slot", budget=10, stories="lost_replies")
def lost_reply_is_a_failure(stack: ExitStack) -> None:
    """A reply that was lost counts as a refusal, and the write is said to have failed"""
    from indextables.errors import (
        AmbiguousWriteError,
        CommitConflictError,
        CommitFailedError,
        ObjectExistsError,
        StorageError,
    )

    def commit_slot(store: Any, path: str, data: bytes, **rest: Any) -> None:
        try:
            store.put_if_absent(path, data)
        except ObjectExistsError as error:
            raise CommitConflictError("another writer committed first", path=path) from error
        except (AmbiguousWriteError, StorageError) as error:
            raise CommitFailedError("the store refused the commit", path=path) from error

    at(stack, "log.commit.loop:commit_slot", commit_slot)


@bug(
    "storage/commit.py::_settle, log/commit/loop.py::CommitLoop._earlier_run",
    budget=10,
    stories="lost_replies",
)
def own_commit_taken_for_another(stack: ExitStack) -> None:
    """What is found in the slot is always another writer's, here and on the next attempt"""
    from indextables.errors import CommitConflictError

    def settle(found: bytes, path: str, is_mine: Any) -> None:
        raise CommitConflictError("another writer committed first", path=path)

    at(stack, "storage.commit:_settle", settle)
    at(stack, "log.commit.loop:CommitLoop._earlier_run", lambda *_: None)


@bug("log/commit/loop.py::CommitLoop._is_overtaken", budget=10, stories="overtaken")
def truncated_slot_is_taken(stack: ExitStack) -> None:
    """A slot that a truncation emptied is taken for a free one"""
    at(stack, "log.commit.loop:CommitLoop._is_overtaken", lambda self, change: False)


@bug("maintenance/logwork.py::truncate_time_travel", budget=10, stories="short_logs")
def version_is_reused(stack: ExitStack) -> None:
    """A truncation deletes the newest version file too, and its number is given again"""
    from indextables.log.read.versions import version_path

    truncate = real("maintenance.logwork:truncate_time_travel")

    def truncating(log: Any, **rest: Any) -> Any:
        done = truncate(log, **rest)
        newest = log.snapshot().version
        if newest > 0:
            log.store.delete([version_path(newest)])
        return done

    at(stack, "maintenance.logwork:truncate_time_travel", truncating)


@bug(
    "maintenance/logwork.py::truncate_time_travel",
    budget=10,
    stories="readers_and_purges, short_logs",
)
def truncated_without_a_base(stack: ExitStack) -> None:
    """A truncation takes the checkpoint it needs for written"""
    from indextables.log.read.versions import list_log, version_path

    def truncating(log: Any, *, dry_run: bool = False) -> Any:
        newest = log.writable_snapshot().version
        old = [v for v in list_log(log.store).versions if 0 < v < newest]
        log.store.delete([version_path(v) for v in old])

    at(stack, "maintenance.logwork:truncate_time_travel", truncating)


@bug("log/commit/follow_up.py::follow_up", budget=10, issue=True, stories="counters, checkpoints")
def failure_after_the_commit(stack: ExitStack) -> None:
    """What goes wrong after a commit makes the commit look failed"""

    def follow_up(step: str, path: str, failures: Any, work: Any) -> None:
        work()

    for module in ("log.log", "log.commit.loop", "maintenance.after_write", "maintenance.merge"):
        at(stack, f"{module}:follow_up", follow_up)


@bug("log/read/moments.py::commit_moment", budget=10, issue=True, stories="wrong_clocks")
def times_run_backwards(stack: ExitStack) -> None:
    """A commit is dated by its writer's clock, whatever the version before says"""
    at(stack, "log.commit.loop:commit_moment", lambda now_ms, previous_ms, path: now_ms)


@bug(
    "log/commit/gate.py, log/log.py::TransactionLog.writable",
    budget=10,
    issue=True,
    stories="newer_release",
)
def gate_is_open(stack: ExitStack) -> None:
    """PURGE, CHECKPOINT and TRUNCATE TIME TRAVEL do not look at the protocol"""
    at(stack, "log.log:TransactionLog.writable", lambda self, snapshot: snapshot)


# -- conflicts -------------------------------------------------------------------------------------


@bug("log/commit/conflict.py::_check_reads", budget=10, stories="meetings, rewriters")
def new_rows_slip_through(stack: ExitStack) -> None:
    """A DELETE or UPDATE does not look at rows that were added since it read the table"""
    at(stack, "log.commit.conflict:_check_reads", lambda *_: None)


@bug("log/commit/conflict.py::_check_vectors", budget=10, stories="meetings, rewriters")
def merged_rows_come_back(stack: ExitStack) -> None:
    """A merge does not notice that rows of its sources were deleted meanwhile"""
    at(stack, "log.commit.conflict:_check_vectors", lambda *_: None)


@bug("log/commit/rowlevel.py::Narrowing._joined", budget=10, stories="meetings, rewriters")
def vectors_are_not_joined(stack: ExitStack) -> None:
    """A deletion vector replaces the one that another writer put there meanwhile"""

    def joined(self: Any, one: Any, now: Any, version: int) -> Any:
        return np.union1d(one.gone_before(self._store), one.rows).astype(np.uint32)

    at(stack, "log.commit.rowlevel:Narrowing._joined", joined)


@bug("log/commit/conflict.py::_check_removed_files", budget=10, stories="rewriters, meetings")
def removed_twice(stack: ExitStack) -> None:
    """A commit may remove a split that is not there any more"""
    at(stack, "log.commit.conflict:_check_removed_files", lambda *_: None)


@bug(
    "maintenance/rowchange.py::LOST, log/retention/rules.py::discard",
    budget=10,
    stories="unanswered",
)
def unsure_files_are_deleted(stack: ExitStack) -> None:
    """When it is unknown whether a commit landed, its files are deleted"""
    from indextables.errors import CommitStateUnknownError

    lost = real("maintenance.rowchange:LOST")
    at(stack, "maintenance.rowchange:LOST", (*lost, CommitStateUnknownError))
    at(stack, "maintenance.rowchange:discard", lambda log, kind, paths: log.store.delete(paths))


# -- reading ---------------------------------------------------------------------------------------


@bug("log/log.py::TransactionLog.newest", budget=10, stories="lost_replies, readers_and_purges")
def stale_cache_is_trusted(stack: ExitStack) -> None:
    """A snapshot out of the cache is served without a look at the log"""
    newest = real("log.log:TransactionLog.newest")

    def cached(self: Any) -> Any:
        found = self.cache.latest.guess(self.store.identity)
        return newest(self) if found is None else (found, found.version)

    at(stack, "log.log:TransactionLog.newest", cached)


@bug("log/vectors/codec.py::unframed", budget=10, stories="torn_vectors")
def checksum_is_ignored(stack: ExitStack) -> None:
    """A deletion vector is not compared with its checksum"""
    at(stack, "log.vectors.codec:unframed", lambda raw: raw[4:-4])


@bug("planner/stages/ranges.py::Ranges.verdicts", budget=10, stories="questions")
def unknown_is_pruned(stack: ExitStack) -> None:
    """A split without statistics of a column is dropped"""
    from indextables.planner.stages.verdict import ALL_NULL, CANNOT_MATCH, HAS_HIGH, HAS_LOW

    verdicts = real("planner.stages.ranges:Ranges.verdicts")

    def pruned(self: Any, column: Any, selection: Any) -> Any:
        found = verdicts(self, column, selection).copy()
        facts = column.facts if selection is None else column.facts[selection]
        found[(facts & (HAS_LOW | HAS_HIGH | ALL_NULL)) == 0] = CANNOT_MATCH
        return found

    at(stack, "planner.stages.ranges:Ranges.verdicts", pruned)


@bug("planner/stages/xref.py::route", budget=10, stories="indexers")
def uncovered_is_pruned(stack: ExitStack) -> None:
    """A split that no cross-reference or key map covers counts as one without the term"""
    route = real("planner.stages.xref:route")

    def routed(router: Any, snapshot: Any, questions: Any, config: Any) -> Any:
        done = route(router, snapshot, questions, config)
        covered = (
            {s for x in snapshot.xrefs for s in x.source_split_paths} if snapshot.xrefs else None
        )
        if not covered:
            return done
        kept = [i for i in done.selection.tolist() if snapshot.path(i) in covered]
        return replace(done, selection=np.array(kept, np.int32))

    at(stack, "planner.stages.xref:route", routed)


@bug("splits/read/source.py::SplitRef.of", budget=10, stories="rewriters, counters")
def vector_is_dropped(stack: ExitStack) -> None:
    """A reader does not pass on the deletion vector of a split"""
    of = real("splits.read.source:SplitRef.of")
    at(
        stack,
        "splits.read.source:SplitRef.of",
        classmethod(lambda cls, add: replace(of(add), vector=None)),
    )


@bug("log/read/diverged.py::united", budget=10, issue=True, stories="two_programs")
def forked_version_is_not_seen(stack: ExitStack) -> None:
    """A version that another program made too is read from its state alone"""
    at(stack, "log.checkpoint.choose:united", lambda snapshot, *_: snapshot)


# -- checkpoints -----------------------------------------------------------------------------------


@bug("log/read/snapshot.py::Snapshot.with_versions", budget=10, stories="rewriters, counters")
def removal_is_lost(stack: ExitStack) -> None:
    """A version that only rearranges rows is applied without its removals"""
    from indextables.log.actions import RemoveFile

    with_versions = real("log.read.snapshot:Snapshot.with_versions")

    def applied(self: Any, changes: Any) -> Any:
        kept = [c._replace(actions=[a for a in c.actions if not _rearranges(a)]) for c in changes]
        return with_versions(self, kept)

    def _rearranges(action: Any) -> bool:
        return isinstance(action, RemoveFile) and not action.data_change

    at(stack, "log.read.snapshot:Snapshot.with_versions", applied)


@bug("log/checkpoint/encode.py::_source", budget=10, stories="shared_manifests, checkpoints")
def vector_is_left_out_of_states(stack: ExitStack) -> None:
    """A checkpoint forgets the deletion vectors"""
    source = real("log.checkpoint.encode:_source")
    encode = real("log.checkpoint.encode:ManifestEncoder._encode")
    writing: list[bool] = []

    def encoded(self: Any, *given: Any) -> Any:
        writing.append(True)
        try:
            return iter(list(encode(self, *given)))
        finally:
            writing.pop()

    def without(loose: Any, name: str, optional: bool) -> Any:
        found = source(loose, name, optional)
        if not writing or "eletion" not in name or found[0] != "optional_text":
            return found
        from indextables.log.read.columns import StringColumn

        return found[0], None, [(None, StringColumn.from_texts([None] * loose.num_files))]

    at(stack, "log.checkpoint.encode:ManifestEncoder._encode", encoded)
    at(stack, "log.checkpoint.encode:_source", without)


@bug("log/retention/gc.py::orphaned_manifests", budget=10, stories="states_meet")
def young_manifests_are_collected(stack: ExitStack) -> None:
    """Manifests that no state names yet are deleted at once"""
    from indextables.log.retention import gc

    orphaned, references = gc.orphaned_manifests, gc.references

    def at_once(store: Any, retention: Any, states: Any) -> Any:
        return orphaned(store, replace(retention, manifest_ms=-1), states)

    def needed(store: Any, states: Any) -> Any:
        return set() if isinstance(states, set) else references(store, states)

    at(stack, "log.retention.gc:orphaned_manifests", at_once)
    at(stack, "log.retention.gc:references", needed)


# -- deleting --------------------------------------------------------------------------------------


@bug(
    "log/retention/rules.py::Needed.deletable_since",
    budget=10,
    stories="held_readers",
)
def purge_by_file_time(stack: ExitStack) -> None:
    """A file's retention counts from when it was written, not from when it was removed"""

    def since(self: Any, info: Any) -> int | None:
        return None if info.path in self.live else info.modified_ms

    at(stack, "log.retention.rules:Needed.deletable_since", since)


@bug("maintenance/purging.py::_listed_by", budget=10, stories="long_history")
def old_versions_are_not_asked(stack: ExitStack) -> None:
    """A purge does not look at what remaining version files list"""
    at(stack, "maintenance.purging:_listed_by", lambda action: ())


@bug(
    "maintenance/purging.py::_paths_of_snapshot",
    budget=10,
    stories="readers_and_purges, old_vectors",
)
def vectors_are_purged(stack: ExitStack) -> None:
    """A purge does not know the files of deletion vectors"""
    paths = real("maintenance.purging:_paths_of_snapshot")
    listed = real("maintenance.purging:_listed_by")
    at(
        stack,
        "maintenance.purging:_paths_of_snapshot",
        lambda log, version: (p for p in paths(log, version) if "deletion_vector" not in p),
    )
    at(
        stack,
        "maintenance.purging:_listed_by",
        lambda action: tuple(p for p in listed(action) if "deletion_vector" not in p),
    )


@bug("maintenance/purging.py::stale_temporaries", budget=10, issue=True, stories="leftovers")
def temporaries_are_forgotten(stack: ExitStack) -> None:
    """A purge does not list the temporary files of killed writers"""
    at(stack, "maintenance.purging:stale_temporaries", lambda *_: [])


@bug("maintenance/purging.py::stale_temporaries", budget=10, stories="uploads")
def uploads_are_purged(stack: ExitStack) -> None:
    """A purge deletes the temporary files of writers that are at work"""
    at(
        stack,
        "maintenance.purging:stale_temporaries",
        lambda log, hours, now_ms: list(log.store.list_temporaries()),
    )


@bug("storage/workfolders.py::_sweep_one", budget=10, issue=True, stories="neighbours")
def live_folder_is_swept(stack: ExitStack) -> None:
    """Work folders of other processes are deleted although their lock is held"""
    import os

    from indextables.storage.deleting import remove_tree

    def sweep(path: str) -> bool:
        remove_tree(path, os.path.dirname(path))
        return True

    at(stack, "storage.workfolders:_sweep_one", sweep)


@bug("storage/local.py::_drop_checksum", budget=10, issue=True, stories="hadoop_beside_us")
def sidecar_stays_behind(stack: ExitStack) -> None:
    """Hadoop's checksum of a file that is replaced stays, and its readers see damage"""
    at(stack, "storage.local:_drop_checksum", lambda full: None)


# -- verdicts --------------------------------------------------------------------------------------


@bug(
    "storage/machine.py::refuse_to_judge, maintenance/checkup.py",
    budget=10,
    issue=True,
    stories="short_of_everything",
)
def verdict_without_descriptors(stack: ExitStack) -> None:
    """A machine without descriptors calls sound splits damaged"""

    class NeverRaisedError(Exception):
        pass

    at(stack, "maintenance.checkup:MachineError", NeverRaisedError)
    for module in ("maintenance.checkup", "maintenance.rewrite", "maintenance.purging"):
        with contextlib.suppress(AttributeError):
            at(stack, f"{module}:refuse_to_judge", lambda error, **_: None)


# -- streams ---------------------------------------------------------------------------------------


@bug("log/commit/conflict.py::is_applied", budget=10, stories="sinks")
def batches_are_written_twice(stack: ExitStack) -> None:
    """A batch that is replayed does not find itself in the log"""
    at(stack, "log.commit.loop:is_applied", lambda actions, latest: False)
    at(stack, "log.commit.loop:CommitLoop._earlier_run", lambda *_: None)


@bug("spark/driver/streaming.py::query_of", budget=10, issue=True, stories="sinks")
def stream_is_named_by_its_path(stack: ExitStack) -> None:
    """A new checkpoint where an old one stood has the old one's name"""

    def named(messages: Sequence[Any], path: str) -> str:
        return hashlib.sha256(path.encode()).hexdigest()[:32]

    at(stack, "spark.driver.streaming:query_of", named)
