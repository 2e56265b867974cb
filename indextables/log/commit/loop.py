"""From a transaction to a version file, against other writers.

One attempt: take the newest snapshot, see whether the transaction may still follow it, make the
version's bytes, and try to create the next version file. Losing the race means the next attempt,
after a pause with jitter; ``transaction.retry.*`` says how often and how long. What a lost reply
meant is settled by ``storage.commit.commit_slot``, which finds our commit id in the slot.

Making the bytes decides what goes along with the caller's actions: ``commitInfo`` first, then a
protocol action if a feature is used for the first time, then a metaData action if the schema
registry grows. Both are recomputed on every attempt, so that no writer undoes another's. A log
with a gap is not written to: the next version would be invisible, or would bring back what the
gap hides.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from typing import Protocol as Interface

from indextables.config import Config
from indextables.errors import (
    CommitConflictError,
    CommitFailedError,
    CommitStateUnknownError,
)
from indextables.log.actions import (
    Action,
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    RemoveFile,
)
from indextables.log.actions.codec import decode_lines, encode_actions, encoding, inside_table
from indextables.log.actions.protocol import (
    SCHEMA_DEDUPLICATION,
    check_writable,
    features_of,
    raised,
    refuse_upgrade,
    supports,
    upgraded,
)
from indextables.log.actions.schema_registry import merge_managed, reference_of, with_registry
from indextables.log.commit.conflict import check_conflicts, is_applied, is_blind
from indextables.log.commit.follow_up import follow_up
from indextables.log.commit.gate import refuse_foreign_splits
from indextables.log.commit.transaction import CommitResult, Transaction
from indextables.log.read.checksum import ENABLED as CHECKSUMS
from indextables.log.read.checksum import checksum_of
from indextables.log.read.moments import commit_moment
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import list_log, next_version, version_path
from indextables.storage.base import Store
from indextables.storage.commit import commit_slot
from indextables.storage.retry import RetryPolicy, tries


class CommitTarget(Interface):
    """What a commit needs of its log."""

    store: Store
    config: Config

    def newest(self) -> tuple[Snapshot, int]:
        """A fresh snapshot, and the highest version any file of the log speaks of."""
        ...

    def changes(self, after: int, until: int) -> list[VersionActions] | None:
        """The versions in between, ``None`` when the log no longer has them all."""
        ...

    def committed(self, snapshot: Snapshot, change: VersionActions) -> None:
        """Called once a version of ours is in the log."""
        ...


@dataclass(slots=True)
class CommitLoop:
    """Commits one transaction; see the module's docstring."""

    target: CommitTarget
    transaction: Transaction
    clock: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep
    rng: random.Random = field(default_factory=random.Random)
    _is_first_run: bool = True

    def run(self) -> CommitResult:
        self._is_first_run = self.transaction.first_seen_version is None
        config = self.target.config
        attempts = config["transaction.retry.maxAttempts"]
        base_ms = config["transaction.retry.baseDelayMs"]
        most_ms = config["transaction.retry.maxDelayMs"]
        budget_s = config["transaction.retry.budgetSeconds"]
        policy = RetryPolicy.of_ms(attempts, base_ms, most_ms, budget_s)
        lost: CommitConflictError | None = None
        for attempt in tries(policy, sleep=self.sleep, rng=self.rng):
            try:
                return self._attempt(attempt)
            except _LostRaceError as race:
                lost = race.conflict
        raise CommitConflictError(
            f"other writers took {attempt} versions in a row",
            path=self.target.store.uri,
            hint="Run it again later, or raise spark.indextables.transaction.retry.maxAttempts "
            "or budgetSeconds",
        ) from lost

    def _attempt(self, attempt: int) -> CommitResult:
        latest, listed = self.target.newest()
        next_version(latest.version, self.target.store.uri)
        _refuse_gap(latest.version, listed)
        base = self.transaction.base or latest
        actions = self.transaction.actions_on(latest)
        since = self._since(actions, base, latest)
        earlier = self._earlier_run(since or (), actions, latest)
        if earlier is not None:
            return CommitResult(earlier, self.transaction.commit_id, attempt, True)
        if not actions:
            return CommitResult(latest.version, self.transaction.commit_id, 0)
        self._check(actions, base, since, latest)
        refuse_foreign_splits(latest, actions)
        change = self._change(actions, base, latest)
        self._put(change)
        result = CommitResult(change.version, self.transaction.commit_id, attempt)
        tell = partial(self.target.committed, latest, change)
        follow_up("cache", self.target.store.uri, result.failures, tell)
        return result

    def _since(
        self, actions: Sequence[Action], base: Snapshot, latest: Snapshot
    ) -> list[VersionActions] | None:
        """What others committed meanwhile; not looked at where nothing can depend on it."""
        origin = self.transaction.first_seen_version
        if origin is None:
            origin = self.transaction.first_seen_version = base.version
        if self._is_first_run and is_blind(self.transaction.reads, actions):
            return []
        return self.target.changes(min(origin, base.version), latest.version)

    def _earlier_run(
        self, since: Sequence[VersionActions], actions: Sequence[Action], latest: Snapshot
    ) -> int | None:
        """The version in which this very transaction, or this step of a stream, landed before."""
        ours = self.transaction.commit_id
        for change in since:
            for action in change.actions:
                if isinstance(action, CommitInfo) and action.commit_id == ours:
                    self._refuse_left_behind(change)
                    return change.version
        return latest.version if is_applied(actions, latest) else None

    def _refuse_left_behind(self, change: VersionActions) -> None:
        """A version of ours counts only if readers saw it, not if it took an emptied slot."""
        if self._may_be_left_behind(change.version) and not self._is_live(change):
            raise CommitStateUnknownError(
                "the log was truncated around the version of this commit, which readers may have "
                "left behind before it was written",
                path=version_path(change.version),
                hint="Keep every file of this commit; look for its rows before making a new one",
            )

    def _check(
        self,
        actions: Sequence[Action],
        base: Snapshot,
        since: Sequence[VersionActions] | None,
        latest: Snapshot,
    ) -> None:
        reads = self.transaction.reads
        if since is None and (reads.sees_adds or reads.metadata):
            raise CommitConflictError(
                f"the versions after {base.version} were cleaned away, so what was read cannot "
                "be checked",
                path=self.target.store.uri,
                hint="Refresh, decide again on the new snapshot, and commit that",
            )
        check_conflicts(reads, actions, base, since or (), latest)

    def _change(
        self, actions: Sequence[Action], base: Snapshot, latest: Snapshot
    ) -> VersionActions:
        now_ms, root = int(self.clock() * 1000), self.target.store.uri
        timestamp_ms = commit_moment(now_ms, latest.timestamp_ms, root)
        prepared = prepare(actions, base, latest, root, self.target.config)
        info = CommitInfo(
            commit_id=self.transaction.commit_id,
            timestamp=timestamp_ms,
            operation=self.transaction.operation,
            operation_parameters=_json_safe(self.transaction.parameters),
            operation_metrics={**count_metrics(prepared), **_json_safe(self.transaction.metrics)},
            engine=engine_name(),
        )
        version = next_version(latest.version, root)
        if self.target.config[CHECKSUMS]:
            after = latest.with_versions([VersionActions(version, timestamp_ms, prepared)])
            info = replace(info, state_checksum=checksum_of(after))
        return VersionActions(version, timestamp_ms, [info, *prepared])

    def _put(self, change: VersionActions) -> None:
        config = self.target.config
        data = encode_actions(change.actions, **encoding(config))
        path = version_path(change.version)
        commit_id = self.transaction.commit_id
        try:
            commit_slot(
                self.target.store,
                path,
                data,
                is_mine=lambda found: found == data or commit_id_of(found, path) == commit_id,
                deadline_s=config["transaction.commit.deadlineSeconds"],
                sleep=self.sleep,
                rng=self.rng,
                overtaken=lambda: self._is_overtaken(change),
            )
        except CommitConflictError as conflict:
            raise _LostRaceError(conflict) from conflict

    def _is_overtaken(self, change: VersionActions) -> bool:
        """Did readers leave this version behind before we wrote it?

        Version 1 looks for its files in the newest snapshot; without any the question stays open.
        """
        if not self._may_be_left_behind(change.version):
            return False
        if change.version > 1:
            return True
        if self._is_live(change):
            return False
        raise CommitStateUnknownError(
            "other writers checkpointed the log while its first version was on its way",
            path=version_path(change.version),
            hint="Keep every file of this commit; look for its rows before running it again",
        )

    def _may_be_left_behind(self, version: int) -> bool:
        """Can this slot have been emptied by a truncation and taken again?

        Truncation deletes versions from the oldest up to the newest, so a slot that was emptied
        has no predecessor, and something newer. Version 0 is never deleted, so it says nothing
        about version 1; any checkpoint may have emptied that.
        """
        store = self.target.store
        if version > 1 and store.exists(version_path(version - 1)):
            return False
        listing = list_log(store, version + 1)
        return (
            listing.newest > version if version > 1 else bool(listing.states or listing.checkpoints)
        )

    def _is_live(self, change: VersionActions) -> bool:
        newest = self.target.newest()[0]
        added = (a for a in change.actions if isinstance(a, AddFile))
        return any(_holds(newest, add) for add in added)


def _holds(snapshot: Snapshot, add: AddFile) -> bool:
    """Is an added file in the table; for one that was there before: with the vector it got?"""
    place = snapshot.index_of(add.path)
    if place is None:
        return False
    if not add.narrows:
        return True
    (vector,) = snapshot.vectors([place])
    return vector is not None and add.deletion_vector == vector


class _LostRaceError(Exception):
    """Another writer created the version first."""

    def __init__(self, conflict: CommitConflictError) -> None:
        super().__init__(str(conflict))
        self.conflict = conflict


def _refuse_gap(version: int, listed: int) -> None:
    if listed > version:
        raise CommitFailedError(
            f"the log has a gap: version {version + 1} is missing, files up to {listed} exist",
            path=version_path(version + 1),
            version=version + 1,
            hint="Restore the missing file from a copy, or move the files after the gap away; "
            "then commit again",
        )


def commit_id_of(data: bytes, path: str) -> str | None:
    """The commit id inside a version file, ``None`` when its writer left none."""
    for line in decode_lines(data, path=path):
        if isinstance(line, dict) and isinstance(line.get(CommitInfo.KEY), dict):
            return CommitInfo.from_dict(line[CommitInfo.KEY]).commit_id
    return None


# -- what goes into the version ------------------------------------------------------------------


def prepare(
    actions: Sequence[Action], base: Snapshot, latest: Snapshot, root: str, config: Config
) -> list[Action]:
    """The caller's actions, checked, with the protocol and metadata they need in front."""
    if config["protocol.checkEnabled"]:
        check_writable(latest.protocol, root)
    inside = [inside_table(action, root) for action in actions]
    _check_shape(inside, latest)
    protocol = _protocol(inside, latest.protocol, root, config)
    rest: list[Action] = [a for a in inside if not isinstance(a, Protocol | Metadata)]
    registry: dict[str, str] = {}
    if supports(protocol, SCHEMA_DEDUPLICATION):
        rest = [_slim(action, registry) for action in rest]
    metadata = _metadata(inside, base, latest, registry)
    heads: list[Action] = []
    if protocol != latest.protocol:
        heads.append(protocol)
    if metadata != latest.metadata:
        heads.append(metadata)
    return heads + rest


def _check_shape(actions: Sequence[Action], latest: Snapshot) -> None:
    seen: set[str] = set()
    for action in actions:
        if isinstance(action, AddFile):
            if action.path in seen:
                raise CommitFailedError(
                    f"'{action.path}' is added twice in one commit", hint="Add each file once"
                )
            seen.add(action.path)
        elif isinstance(action, CommitInfo):
            raise CommitFailedError(
                "a transaction may not carry commitInfo", hint="Use operation and parameters"
            )
        elif isinstance(action, Metadata) and action.id != latest.metadata.id:
            raise CommitFailedError(
                f"metadata of table {action.id} in a commit to table {latest.metadata.id}",
                hint="Derive new metadata from the snapshot's",
            )


def _protocol(actions: Sequence[Action], current: Protocol, root: str, config: Config) -> Protocol:
    for action in actions:
        if isinstance(action, Protocol):
            names = (action.reader_features or frozenset()) | (
                action.writer_features or frozenset()
            )
            current = raised(current, action.min_reader_version, action.min_writer_version, names)
    missing = [feature for feature in features_of(actions) if not supports(current, feature)]
    if missing and not config["protocol.autoUpgrade"]:
        raise refuse_upgrade(missing, root)
    return upgraded(current, missing)


def _slim(action: Action, registry: dict[str, str]) -> Action:
    """An add with a reference in place of its mapping's text, which goes to the registry."""
    if not isinstance(action, AddFile) or action.doc_mapping_json is None:
        return action
    reference = reference_of(action.doc_mapping_json)
    registry.setdefault(reference, action.doc_mapping_json)
    return replace(action, doc_mapping_ref=reference, doc_mapping_json=None)


def _metadata(
    actions: Sequence[Action], base: Snapshot, latest: Snapshot, registry: dict[str, str]
) -> Metadata:
    given = [action for action in actions if isinstance(action, Metadata)]
    if given:
        known = base.metadata.configuration, latest.metadata.configuration
        merged = merge_managed(given[-1].configuration, *known)
        return with_registry(replace(given[-1], configuration=merged), registry)
    new = {r: text for r, text in registry.items() if r not in latest.ledger.registry}
    return with_registry(latest.metadata, new) if new else latest.metadata


def count_metrics(actions: Iterable[Action]) -> dict[str, int]:
    """What a commit did, in numbers, for the history."""
    adds = [a for a in actions if isinstance(a, AddFile) and not a.narrows]
    narrowed = [a for a in actions if isinstance(a, AddFile) and a.narrows]
    removes = [a for a in actions if isinstance(a, RemoveFile)]
    metrics = {
        "numAddedFiles": len(adds),
        "numRemovedFiles": len(removes),
        "numAddedBytes": sum(add.size for add in adds),
        "numRemovedBytes": sum(remove.size or 0 for remove in removes),
    }
    if all(add.num_records is not None for add in adds):
        metrics["numAddedRows"] = sum(add.num_live or 0 for add in adds)
    if narrowed:
        metrics["numDeletionVectors"] = len(narrowed)
    return metrics


def _json_safe(values: Any) -> dict[str, Any]:
    try:
        return dict(json.loads(json.dumps(dict(values), default=str, allow_nan=False)))
    except ValueError as error:
        raise CommitFailedError(f"parameters cannot be written as JSON: {error}") from None


def engine_name() -> str:
    """Name and version of this program, for ``commitInfo``."""
    from indextables import __version__

    return f"indextables/{__version__}"
