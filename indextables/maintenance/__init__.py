"""Maintenance: one function per verb, each returning typed rows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indextables.maintenance.delete import delete_rows
    from indextables.maintenance.drop import drop_partitions
    from indextables.maintenance.merge import merge_splits
    from indextables.maintenance.restore import restore_to_version

_HOMES = {
    "delete_rows": "delete",
    "drop_partitions": "drop",
    "merge_splits": "merge",
    "restore_to_version": "restore",
}

__all__ = ["delete_rows", "drop_partitions", "merge_splits", "restore_to_version"]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"indextables.maintenance.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
