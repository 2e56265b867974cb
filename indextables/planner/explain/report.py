"""What a plan did, as data: counters, bytes and durations of each stage."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StageReport:
    """One stage: how many splits came in, how many were left, in which time."""

    name: str
    columns: tuple[str, ...]
    splits_in: int
    splits_out: int
    bytes_out: int
    seconds: float
    detail: str = ""

    @property
    def pruned(self) -> int:
        return self.splits_in - self.splits_out


@dataclass(frozen=True, slots=True)
class PlanReport:
    """The whole plan. ``must_match`` splits need no filter; ``rows`` is exact when not None."""

    version: int
    splits_total: int
    splits_selected: int
    bytes_total: int
    bytes_selected: int
    must_match: int
    rows: int | None
    most_rows: int | None
    bind_seconds: float
    seconds: float
    stages: tuple[StageReport, ...]
    unevaluated: bool = False
    """Did cross-references leave some part of the filter undecided?"""

    def stage(self, name: str) -> StageReport | None:
        """The stage of that name, if it ran."""
        return next((s for s in self.stages if s.name == name), None)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)
