"""The transaction log of one table: open or create it, read it at any version, commit to it.

``snapshot()`` gives the newest version and reads only what is new since the last call in this
process. ``commit`` runs a transaction against other writers and, every ``checkpoint.interval``
versions, writes a checkpoint afterwards; a checkpoint that fails is reported in the result and
never undoes or fails the commit. Reading checks the protocol first.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from indextables.config import PREFIX, Config
from indextables.errors import (
    CommitConflictError,
    IndexTablesError,
    ObjectNotFoundError,
    TableExistsError,
    UnknownColumnError,
)
from indextables.log.actions import Metadata, Protocol, Txn
from indextables.log.actions.codec import decode_actions, encode_actions, encoding
from indextables.log.actions.protocol import (
    AVRO_STATE,
    check_readable,
    check_writable,
    protocol_of,
    supports,
)
from indextables.log.checkpoint import choose
from indextables.log.checkpoint.choose import Checkpoint, is_foreign, write_checkpoint
from indextables.log.commit.follow_up import follow_up
from indextables.log.commit.loop import CommitLoop
from indextables.log.commit.transaction import CommitResult, Transaction
from indextables.log.commit.xrefs import XRefMethods
from indextables.log.read import cache as caching
from indextables.log.read.checksum import verify
from indextables.log.read.history import HistoryEntry, read_history, version_at, version_time
from indextables.log.read.kinds import check_kind
from indextables.log.read.loader import (
    FirstLook,
    VanishedError,
    first_look,
    load_snapshot,
    no_table,
    reachable_versions,
    read_first,
    read_versions,
    undisturbed,
)
from indextables.log.read.moments import to_millis, warn_of_future
from indextables.log.read.snapshot import Snapshot, VersionActions
from indextables.log.read.versions import LogListing, asked_version, list_log, version_path
from indextables.log.retention.cleanup import (
    CleanupReport,
    clean_states,
    execute,
    has_expired_state,
    plan_cleanup,
)
from indextables.log.retention.rules import Retention
from indextables.storage.base import Store, open_store, resolve_options
from indextables.storage.commit import commit_slot
from indextables.types import normalize_schema, schema_to_json


class TransactionLog(XRefMethods):
    """The log of one table; safe to share between threads."""

    def __init__(self, path: str, store: Store, config: Config) -> None:
        self.path = path
        self.store = store
        self.config = config
        self.cache = caching.SHARED
        self.clock: Callable[[], float] = time.time
        self._key: Hashable = None

    # -- opening --------------------------------------------------------------------------------

    @classmethod
    def open(
        cls,
        path: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        config: Config | None = None,
        store: Store | None = None,
        check: bool = True,
    ) -> TransactionLog:
        """The log of the table at ``path``; ``TableNotFoundError`` when there is none.

        Without ``check`` that error is raised by the first call that needs the table, and opening
        costs no request.
        """
        log = cls._at(path, storage_options, config, store)
        if check and not log._is_there():
            raise no_table(path)
        return log

    @classmethod
    def exists(
        cls,
        path: str,
        *,
        storage_options: Mapping[str, Any] | None = None,
        config: Config | None = None,
        store: Store | None = None,
    ) -> bool:
        """Is there a table at ``path``?"""
        return cls._at(path, storage_options, config, store)._is_there()

    @classmethod
    def create(
        cls,
        path: str,
        schema: pa.Schema,
        *,
        partition_columns: Sequence[str] = (),
        configuration: Mapping[str, str] | None = None,
        name: str | None = None,
        description: str | None = None,
        protocol_version: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        config: Config | None = None,
        store: Store | None = None,
    ) -> TransactionLog:
        """Write version 0 of a new table; ``TableExistsError`` when one is there."""
        metadata = new_metadata(schema, partition_columns, configuration, name, description)
        return cls.begin(
            path,
            metadata,
            protocol_version=protocol_version,
            storage_options=storage_options,
            config=config,
            store=store,
        )

    @classmethod
    def begin(
        cls,
        path: str,
        metadata: Metadata,
        *,
        protocol_version: int | None = None,
        storage_options: Mapping[str, Any] | None = None,
        config: Config | None = None,
        store: Store | None = None,
    ) -> TransactionLog:
        """Write version 0 with this metadata; begun again, a table finds itself and is opened."""
        log = cls._at(path, storage_options, config, store)
        version = log.config["protocol.version"] if protocol_version is None else protocol_version
        log._write_first(protocol_of(version, metadata), metadata)
        return log

    @classmethod
    def _at(
        cls,
        path: str,
        storage_options: Mapping[str, Any] | None,
        config: Config | None,
        store: Store | None,
    ) -> TransactionLog:
        settings = config or Config()
        if store is None:
            given = {PREFIX + key: value for key, value in settings.raw().items()}
            store = open_store(path, resolve_options(path, storage_options, given))
        return cls(path, store, settings)

    def _is_there(self) -> bool:
        return self.store.exists(version_path(0)) or not list_log(self.store).is_empty

    def _write_first(self, protocol: Protocol, metadata: Metadata) -> None:
        taken = TableExistsError(
            "a table is already there", path=self.path, hint="Open it, or choose another path"
        )
        if self._is_there():
            if self._begun_as() == metadata.id:
                return
            raise taken
        if self.config["storage.probe"]:
            self.store.probe_conditional_create()
        try:
            commit_slot(
                self.store,
                version_path(0),
                encode_actions([protocol, metadata], **encoding(self.config)),
                is_mine=lambda found: self._first_id(found) == metadata.id,
                deadline_s=self.config["transaction.commit.deadlineSeconds"],
            )
        except CommitConflictError:
            raise taken from None

    def _begun_as(self) -> str | None:
        """The table's id as version 0 has it; ``None`` when that is gone."""
        try:
            return self._first_id(self.store.read(version_path(0)))
        except ObjectNotFoundError:
            return None

    def _first_id(self, data: bytes) -> str | None:
        actions = decode_actions(data, root=self.store.uri, path=version_path(0), version=0)
        return next((a.id for a in actions if isinstance(a, Metadata)), None)

    # -- reading --------------------------------------------------------------------------------

    @property
    def table_id(self) -> str:
        return self.snapshot().metadata.id

    def snapshot(
        self,
        version: int | None = None,
        timestamp: int | str | datetime.datetime | None = None,
    ) -> Snapshot:
        """The table at a version, at a moment (epoch millis, ISO text, datetime), or now."""
        if version is not None and timestamp is not None:
            raise IndexTablesError("give a version or a timestamp, not both", path=self.path)
        if timestamp is not None:
            version = self._version_at(to_millis(timestamp))
        if version is None:
            return self.newest()[0]
        return self._snapshot_of(asked_version(version))

    def newest(self) -> tuple[Snapshot, int]:
        """A fresh snapshot, and the highest version any file of the log speaks of."""
        guess = self.cache.latest.guess(self.store.identity)
        look = first_look(self.store, 0 if guess is None else guess.version + 1)
        table = self._key = (self.store.identity, look.token)
        cached = self.cache.latest.get(table)
        if cached is not None:
            advanced = self._advance(table, cached, look.listing)
            if advanced is not None:
                return advanced
        if look.listing.since:
            look = first_look(self.store)
            table = self._key = (self.store.identity, look.token)
        snapshot, newest = load_snapshot(self.store, self.config, look=look)
        snapshot = self._checked(snapshot)
        if look.is_of(snapshot):
            self.cache.latest.put(caching.snapshot_ttl_s(self.config), snapshot, table)
        return snapshot, newest

    def _advance(
        self, table: Hashable, cached: Snapshot, listing: LogListing
    ) -> tuple[Snapshot, int] | None:
        """The cached snapshot with what is new, ``None`` when it must be read again."""
        if listing.since > cached.version + 1 or not listing.complete:
            listing = list_log(self.store, cached.version + 1)
        run = listing.run_after(cached.version)
        newest = max(listing.newest, cached.version)
        reached = run[-1] if run else cached.version
        if newest > reached:
            return None
        if not run:
            return cached, newest
        if any(is_foreign(self.store, version) for version in listing.states.intersection(run)):
            return None
        changes = self._changes(cached.version, reached, listing)
        if changes is None:
            return None
        snapshot = self._checked(verify(cached.with_versions(changes), changes, self.config))
        self.cache.latest.replace(snapshot, table)
        return snapshot, newest

    def _checked(self, snapshot: Snapshot) -> Snapshot:
        if self.config["protocol.checkEnabled"]:
            check_readable(snapshot.protocol, self.path)
        check_kind(snapshot, self.path)
        return snapshot if snapshot.source is self else snapshot.with_source(self)

    def _snapshot_of(self, version: int) -> Snapshot:
        table = self._table_key()
        latest = self.cache.latest.get(table)
        if latest is not None and latest.version < version:
            latest = self.newest()[0]
        if latest is not None and latest.version == version:
            return latest
        cached = self.cache.snapshots.get(table, version)
        if cached is not None:
            return cached
        snapshot = self._checked(load_snapshot(self.store, self.config, version)[0])
        self.cache.snapshots.put(caching.snapshot_ttl_s(self.config), snapshot, table, version)
        return snapshot

    @undisturbed
    def _version_at(self, moment_ms: int) -> int:
        listing = list_log(self.store)
        newest = self.newest()[0]
        versions = [v for v in reachable_versions(listing) if v <= newest.version]

        def time_of(version: int) -> int:
            return version_time(self.store, self.config, listing, version)

        found = version_at(versions, time_of, moment_ms, self.path)
        last = newest.version, newest.timestamp_ms
        warn_of_future(self.path, moment_ms, found, last, int(self.clock() * 1000))
        return found

    def changes(self, after: int, until: int) -> list[VersionActions] | None:
        """The versions in between, ``None`` when the log no longer has them all."""
        return self._changes(after, until, None)

    def _changes(
        self, after: int, until: int, listing: LogListing | None
    ) -> list[VersionActions] | None:
        if after >= until:
            return []
        table = self._key or self._table_key()
        wanted = range(after + 1, until + 1)
        known: dict[int, VersionActions] = {}
        for version in wanted:
            kept = self.cache.versions.get(table, version)
            if kept is not None:
                known[version] = kept
        missing = [version for version in wanted if version not in known]
        if missing:
            listing = listing or list_log(self.store, missing[0])
            if any(version not in listing.versions for version in missing):
                return None
            try:
                found = read_versions(self.store, self.config, missing, listing)
            except VanishedError:
                return None
            for change in found:
                known[change.version] = change
                self._remember(table, change)
        return [known[version] for version in wanted]

    @undisturbed
    def history(self, limit: int | None = None) -> list[HistoryEntry]:
        """What happened, newest first; versions that were cleaned away are not in it."""
        newest = self.newest()[0].version
        return read_history(self.store, self.config, list_log(self.store), newest, limit)

    # -- writing --------------------------------------------------------------------------------

    def commit(self, transaction: Transaction) -> CommitResult:
        """Make the transaction's version; see ``commit`` and ``conflict`` for what may go wrong."""
        result = CommitLoop(self, transaction, self.clock).run()
        result.load = lambda: self.snapshot(version=result.version)
        if result.attempts and not result.already_committed and self._is_due(result.version):
            follow_up("checkpoint", self.path, result.failures, self._due_checkpoint)
        return result

    def writable_snapshot(self) -> Snapshot:
        """The newest snapshot, refused where this release must not write; see ``gate``."""
        return self.writable(self.snapshot())

    def writable(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, which was just taken, if this release may write its table."""
        if self.config["protocol.checkEnabled"]:
            check_writable(snapshot.protocol, self.path)
        return snapshot

    def committed(self, snapshot: Snapshot, change: VersionActions) -> None:
        """Remember our own version, so that the next snapshot need not read it back."""
        self._remember(self._key, change)

    def _is_due(self, version: int) -> bool:
        interval = self.config["checkpoint.interval"]
        return bool(self.config["checkpoint.enabled"] and interval > 0 and version % interval == 0)

    def _due_checkpoint(self) -> None:
        self.checkpoint()
        self._cleanup(None, None, thorough=False)

    def checkpoint(self, *, compact: bool = False, migrate: bool = False) -> Checkpoint:
        """Write the newest version as a checkpoint, in the format of settings and protocol.

        ``migrate`` raises an old protocol so that there is a state; ``compact`` rewrites manifests.
        """
        snapshot = self.writable_snapshot()
        if snapshot.disputed and is_foreign(self.store, snapshot.version):
            snapshot = self._in_own_version(snapshot)
        asked = migrate or self.config.is_set("state.format")
        asks_avro = asked and self.config["state.format"] == "avro"
        if asks_avro and not supports(snapshot.protocol, AVRO_STATE):
            self.upgrade_protocol(AVRO_STATE.version, AVRO_STATE.version)
            snapshot = self.snapshot()
        if compact and choose.wants_own_version(self.store, snapshot, self.config):
            snapshot = self._in_own_version(snapshot, "COMPACT")
        done = write_checkpoint(self.store, snapshot, self.config, compact=compact)
        snapshot.disputed = frozenset()
        return done

    def settled(self) -> Snapshot:
        """The newest snapshot, in a state of ours where two programs had made its version.

        Deleting old versions needs it: the rows of one program may be in those alone.
        """
        if self.writable_snapshot().disputed:
            self.checkpoint()
        return self.snapshot()

    def _in_own_version(self, snapshot: Snapshot, operation: str = "SETTLE") -> Snapshot:
        """The same files in a version of their own, whose state is still to be written."""
        done = Txn("indextables.settled", snapshot.version, _now_ms())
        parameters = {"version": snapshot.version, "files": len(snapshot.disputed)}
        self.commit(Transaction(snapshot, operation, parameters=parameters, actions=[done]))
        return self.snapshot()

    def cleanup(
        self, *, retention_ms: int | None = None, dry_run: bool | None = None
    ) -> CleanupReport:
        """Delete log files that a checkpoint made superfluous; ``cleanup`` has the rules."""
        return self._cleanup(retention_ms, dry_run, thorough=True)

    def _cleanup(
        self, retention_ms: int | None, dry_run: bool | None, *, thorough: bool
    ) -> CleanupReport:
        now_ms = _now_ms()
        limits = Retention.of(self.config, now_ms, retention_ms)
        only_look = self.config["cleanup.dryRun"] if dry_run is None else dry_run
        newest = (self.writable_snapshot() if only_look else self.settled()).version
        listing = list_log(self.store)
        report = plan_cleanup(self.store, self.config, listing, newest, limits)
        report.dry_run = only_look
        execute(self.store, self.config, report)
        if thorough or has_expired_state(self.store, self.config, listing, now_ms):
            clean_states(self.store, self.config, listing, report, now_ms)
        return report

    def upgrade_protocol(
        self,
        min_reader_version: int | None = None,
        min_writer_version: int | None = None,
    ) -> CommitResult | None:
        """Raise the table's protocol (default: to the newest); ``None`` when it is there."""
        current = self.writable_snapshot().protocol
        reader = protocol_of(min_reader_version or 4).min_reader_version
        writer = protocol_of(min_writer_version or reader).min_writer_version
        if current.min_reader_version >= reader and current.min_writer_version >= writer:
            return None
        wanted = Protocol(reader, writer)
        parameters = {"minReaderVersion": reader, "minWriterVersion": writer}
        return self.commit(
            Transaction(None, "UPGRADE PROTOCOL", parameters=parameters, actions=[wanted])
        )

    # -- caches ---------------------------------------------------------------------------------

    def invalidate_cache(self) -> int:
        """Forget what this process knows of the table; says how many entries went."""
        return self.cache.invalidate(self._table_key())

    def _table_key(self) -> Hashable:
        """Names the table in the cache; asked again by every operation, as tables get replaced."""
        self._key = (self.store.identity, FirstLook(read_first(self.store), LogListing()).token)
        return self._key

    def _remember(self, table: Hashable, change: VersionActions) -> None:
        ttl_s = caching.version_ttl_s(self.config)
        self.cache.versions.put(ttl_s, change, table, change.version)

    def __repr__(self) -> str:
        return f"TransactionLog({self.path!r})"


def new_metadata(
    schema: pa.Schema,
    partition_columns: Sequence[str] = (),
    configuration: Mapping[str, str] | None = None,
    name: str | None = None,
    description: str | None = None,
) -> Metadata:
    """The metadata of a table that begins now, under an id of its own."""
    return Metadata(
        id=str(uuid.uuid4()),
        name=name,
        description=description,
        schema_string=schema_to_json(normalize_schema(schema)),
        partition_columns=_partitioning(schema, partition_columns),
        configuration=dict(configuration or {}),
        created_time=_now_ms(),
    )


def _partitioning(schema: pa.Schema, columns: Sequence[str]) -> tuple[str, ...]:
    """Partition columns in the letter case of the schema."""
    spelled = {name.lower(): name for name in schema.names}
    found = []
    for column in columns:
        if column.lower() not in spelled:
            raise UnknownColumnError.of(column, schema.names)
        found.append(spelled[column.lower()])
    if len(set(found)) != len(found):
        raise IndexTablesError(f"a partition column is listed twice: {', '.join(found)}")
    return tuple(found)


def _now_ms() -> int:
    return int(time.time() * 1000)
