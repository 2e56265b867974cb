"""Scans that Spark is planning, by handle.

The first question about a scan carries the whole request and fixes the version it reads. Its answer
names the scan by a handle, and what comes later (an aggregation, columns, a limit) is added to what
the handle stands for. Equal requests for one version share a scan and its plans, so a query that is
repeated is not planned again.

A handle is a convenience: scans that were not asked about for long are dropped, and so are those of
a table that has been replaced by another at its path. A question with such a handle is answered
that it is gone, and sends the whole request again.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import PlanningError
from indextables.expr.datemath import uses_now
from indextables.log.read.snapshot import Snapshot
from indextables.lru import LRU
from indextables.planner import Plan
from indextables.spark.driver.scan import VIRTUAL, Request, Scan
from indextables.spark.tasks import grouped as aggregating
from indextables.spark.tasks.grouped import Aggregation

MOST_OPEN = 64
MOST_PLANS = 8
_KEPT = ("options", "session", "timeZone", "caseSensitive", "ansi", "filters")


class GoneError(Exception):
    """Nothing is remembered under this handle."""


@dataclass(frozen=True)
class Opened:
    """A scan, perhaps aggregated, under its handle."""

    handle: int
    scan: Scan
    aggregation: Aggregation | None = None
    _plans: dict[Any, Plan] = field(default_factory=dict)

    @property
    def named(self) -> dict[str, Any]:
        """What an answer says of it: its handle, and the version it reads."""
        return {"scan": self.handle, "version": self.scan.table.snapshot.version}

    def plan(self, output: str | None, limit: int | None) -> Plan:
        """The splits needed for the columns of ``output``, made once."""
        columns = self._columns(output)
        found = self._plans.get((columns, limit))
        if found is None:
            found = self.scan.plan(columns, limit)
            if len(self._plans) >= MOST_PLANS:
                self._plans.clear()
            self._plans[columns, limit] = found
        return found

    def _columns(self, output: str | None) -> tuple[str, ...] | None:
        if self.aggregation is not None:
            return self.aggregation.columns
        if output is None:
            return None
        names = [f["name"] for f in json.loads(output)["fields"]]
        return tuple(n for n in names if n not in VIRTUAL)


class OpenScans:
    """The scans in use; those not asked about for longest are dropped first."""

    def __init__(self, parallelism: int | None = None) -> None:
        self.parallelism = parallelism
        self._by_handle: LRU[int, Opened] = LRU(MOST_OPEN)
        self._handles: LRU[str, int] = LRU(2 * MOST_OPEN)
        self._numbers = itertools.count(1)
        self._moments = itertools.count(1)

    def find(self, body: Mapping[str, Any]) -> Opened:
        """What a question is about, by its handle or by its whole request."""
        opened = self.scan(body)
        if "aggregates" not in body:
            return opened
        found = self.aggregated(opened, body)
        if found is None:
            raise PlanningError(
                f"the table at {opened.scan.request.access.path} was replaced while Spark planned",
                hint="Run the query again",
            )
        return found

    def scan(self, body: Mapping[str, Any]) -> Opened:
        """The scan that a question is about, an aggregation in the question left aside."""
        if "scan" in body:
            return self._known(body["scan"])
        request = Request(body)
        version = self.current(request).version
        fixed = {k: body[k] for k in _KEPT if k in body}
        key = json.dumps([version, fixed], sort_keys=True)
        if uses_now(json.dumps(fixed.get("filters"))):
            key = f"{key} {next(self._moments)}"
        request = Request({**fixed, "version": version})
        return self._shared(key, lambda n: Opened(n, Scan(request, self.parallelism)))

    def aggregated(self, opened: Opened, body: Mapping[str, Any]) -> Opened | None:
        """The scan with the aggregation of a question, where tasks can compute it exactly."""
        scan = opened.scan
        if not scan.decides_all:
            return None
        keys, functions = body["groupBy"], body["aggregates"]
        ansi = bool(scan.request.body.get("ansi", True))
        found = aggregating.supported(scan.table.snapshot.schema, keys, functions, ansi)
        if found is None:
            return None
        key = json.dumps([opened.handle, keys, functions], sort_keys=True)
        return self._shared(key, lambda n: Opened(n, scan, found))

    def current(self, request: Request) -> Snapshot:
        """The snapshot asked for; scans of what stood at its path before it are forgotten."""
        snapshot = request.table().snapshot

        def is_replaced(handle: int, opened: Opened) -> bool:
            known = opened.scan.table.snapshot
            replaced = known.version == snapshot.version and known is not snapshot
            return replaced and opened.scan.request.access.key == request.access.key

        self._by_handle.remove_if(is_replaced)
        return snapshot

    def _known(self, handle: int) -> Opened:
        found = self._by_handle.get(handle)
        if found is None:
            raise GoneError
        return found

    def _shared(self, key: str, make: Any) -> Opened:
        """What is remembered for this key, else what is made now under a new handle."""
        found = self._by_handle.get(self._handles.get(key) or 0)
        if found is not None:
            return found
        handle = next(self._numbers)
        opened: Opened = make(handle)
        self._by_handle.put(handle, opened)
        self._handles.put(key, handle)
        return opened
