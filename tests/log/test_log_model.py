"""The log against a dictionary: any mix of operations, on any checkpoint format.

The model keeps, for every version, the live splits with their rows and the skipped ones. After
each step the newest version must equal the model; any other version must equal the model or be
reported as gone, and only a clean-up makes versions go.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from log_helpers import MAPPING, config, forget, memory_store, new_table, reopen, split

from indextables.errors import CommitConflictError, VersionNotFoundError
from indextables.log.actions import Action, SkipFile
from indextables.log.commit.transaction import Transaction
from indextables.log.log import TransactionLog
from indextables.log.read import cache
from indextables.log.read.loader import reachable_versions
from indextables.log.read.versions import list_log

EXAMPLES = int(os.environ.get("INDEXTABLES_MODEL_EXAMPLES", "25"))
STEPS = int(os.environ.get("INDEXTABLES_MODEL_STEPS", "30"))

EAGER = {
    "state.retention.versions": 1,
    "state.retention.hours": -1,
    "state.gc.minManifestAgeHours": -1,
    "checkpointRetention.duration": -1,
}
FORMATS: dict[str, dict[str, Any]] = {
    "avro": {"state__format": "avro", "state__entriesPerManifest": 4},
    "json": {"state__format": "json"},
    "parts": {"state__format": "json", "checkpoint__actionsPerPart": 3},
}
DAYS = st.sampled_from(["1", "2", None])


class LogMachine(RuleBasedStateMachine):
    """Operations of a table, mirrored in ``self.versions``."""

    @initialize(form=st.sampled_from(sorted(FORMATS)), interval=st.sampled_from([0, 1, 3]))
    def create(self, form: str, interval: int) -> None:
        self.log: TransactionLog = new_table(
            memory_store(),
            partitioned=True,
            checkpoint__interval=interval,
            **FORMATS[form],
            **EAGER,
        )
        self.live: dict[str, int] = {}
        self.skipped: set[str] = set()
        self.versions: list[tuple[dict[str, int], set[str]]] = [({}, set())]
        self.counter = 0

    def teardown(self) -> None:
        if hasattr(self, "log"):
            forget(self.log.store)
            cache.SHARED.invalidate()

    # -- helpers --------------------------------------------------------------------------------

    def commit(self, operation: str, actions: list[Action], base: Any = None) -> None:
        result = self.log.commit(Transaction(base, operation, actions=actions))
        assert result.checkpoint_error is None
        assert result.version == len(self.versions)
        for path in {a.path for a in actions if hasattr(a, "path")}:
            self.skipped.discard(path)
        self.skipped |= {a.path for a in actions if isinstance(a, SkipFile)}
        self.versions.append((dict(self.live), set(self.skipped)))

    def fresh(self, day: str | None, rows: int) -> Any:
        self.counter += 1
        return split(f"day={day}/s{self.counter}", day, rows=rows, partitioned=True)

    def take(self, data: st.DataObject, least: int) -> list[str]:
        chosen = st.lists(
            st.sampled_from(sorted(self.live)), min_size=least, max_size=4, unique=True
        )
        return data.draw(chosen)

    def removals(self, paths: list[str], data_change: bool = True) -> list[Action]:
        snapshot = self.log.snapshot()
        found = [snapshot.index_of(path) for path in paths]
        assert None not in found
        return [snapshot.file(i).removal(1, data_change=data_change) for i in found]  # type: ignore[arg-type]

    # -- operations -----------------------------------------------------------------------------

    @rule(days=st.lists(DAYS, min_size=1, max_size=4), rows=st.integers(0, 9))
    def append(self, days: list[str | None], rows: int) -> None:
        adds = [self.fresh(day, rows) for day in days]
        self.live |= {add.path: rows for add in adds}
        self.commit("WRITE", list(adds))

    @precondition(lambda self: self.live)
    @rule(data=st.data(), rows=st.integers(10, 19))
    def add_again(self, data: st.DataObject, rows: int) -> None:
        """The same path once more, with other content."""
        path = data.draw(st.sampled_from(sorted(self.live)))
        known = self.log.snapshot()
        number = known.index_of(path)
        assert number is not None
        self.live[path] = rows
        again = replace(known.file(number), num_records=rows, doc_mapping_json=MAPPING)
        again = replace(again, added_at_version=None, added_at_timestamp=None)
        self.commit("WRITE", [again])

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        paths = self.take(data, 1)
        actions = self.removals(paths)
        for path in paths:
            del self.live[path]
        self.commit("DELETE", actions)

    @rule(day=DAYS, rows=st.integers(0, 9))
    def overwrite(self, day: str | None, rows: int) -> None:
        actions = self.removals(sorted(self.live))
        add = self.fresh(day, rows)
        self.live = {add.path: rows}
        self.commit("OVERWRITE", [*actions, add])

    @precondition(lambda self: len(self.live) >= 2)
    @rule(data=st.data())
    def merge(self, data: st.DataObject) -> None:
        paths = self.take(data, 2)
        base = self.log.snapshot()
        actions = self.removals(paths, data_change=False)
        merged = replace(self.fresh("1", sum(self.live[p] for p in paths)), data_change=False)
        for path in paths:
            del self.live[path]
        self.live[merged.path] = merged.num_records
        self.commit("MERGE SPLITS", [*actions, merged], base)
        stale = Transaction(base, "MERGE SPLITS", actions=[*actions, self.fresh("1", 0)])
        with pytest.raises(CommitConflictError):
            self.log.commit(stale)

    @precondition(lambda self: self.live)
    @rule(data=st.data())
    def skip(self, data: st.DataObject) -> None:
        paths = self.take(data, 1)
        self.commit("MERGE SPLITS", [SkipFile(path, 1, "broken", "merge") for path in paths])

    @rule(compact=st.booleans())
    def checkpoint(self, compact: bool) -> None:
        done = self.log.checkpoint(compact=compact)
        if compact and done.version == len(self.versions):
            self.versions.append(self.versions[-1])
        assert done.version == len(self.versions) - 1
        assert done.num_files == len(self.live)

    @rule()
    def clean_up(self) -> None:
        before = set(reachable_versions(list_log(self.log.store)))
        report = self.log.cleanup(retention_ms=-1)
        after = set(reachable_versions(list_log(self.log.store)))
        assert len(self.versions) - 1 in after
        assert after <= before
        assert 0 not in report.versions
        assert all(version < (report.anchor or 0) for version in report.versions)

    @rule()
    def reopen(self) -> None:
        self.log = reopen(self.log)

    @rule()
    def lose_hint(self) -> None:
        self.log.store.delete(["_transaction_log/_last_checkpoint"])
        self.log = reopen(self.log)

    @rule(cached=st.booleans())
    def switch_cache(self, cached: bool) -> None:
        settings_now = {**self.log.config.raw(), "transaction.cache.enabled": cached}
        self.log = TransactionLog(self.log.path, self.log.store, config(**settings_now))

    @rule(data=st.data())
    def time_travel(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.versions) - 1))
        if version in reachable_versions(list_log(self.log.store)):
            self.same(self.log.snapshot(version=version), version)
        else:
            with pytest.raises(VersionNotFoundError):
                reopen(self.log).snapshot(version=version)

    # -- what must hold -------------------------------------------------------------------------

    def same(self, snapshot: Any, version: int) -> None:
        live, skipped = self.versions[version]
        assert snapshot.version == version
        found = {add.path: add.num_records for add in snapshot.files()}
        assert found == live
        assert snapshot.num_files == len(live)
        assert snapshot.num_rows == sum(live.values())
        assert {p for p in snapshot.skips if p in live} == {p for p in skipped if p in live}
        assert all(add.partition_values.keys() == {"day"} for add in snapshot.files())
        assert [snapshot.index_of(p) is not None for p in live] == [True] * len(live)
        assert all(snapshot.doc_mapping(i) is not None for i in range(snapshot.num_files))

    @invariant()
    def newest_equals_the_model(self) -> None:
        if hasattr(self, "log"):
            self.same(self.log.snapshot(), len(self.versions) - 1)


TestLogModel = LogMachine.TestCase
TestLogModel.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, print_blob=True
)
