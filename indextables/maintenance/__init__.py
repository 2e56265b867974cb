"""Maintenance commands, one function each. Decides what merge, purge, delete, repair ... do."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from indextables.maintenance.checkup import doctor
    from indextables.maintenance.columns import (
        add_column,
        alter_column,
        alter_column_type,
        drop_column,
        rename_column,
    )
    from indextables.maintenance.coverage import stats_coverage
    from indextables.maintenance.delete import delete_rows, truncate_table
    from indextables.maintenance.drop import drop_partitions
    from indextables.maintenance.erase import erase_rows
    from indextables.maintenance.logwork import (
        checkpoint,
        describe_state,
        repair_log,
        truncate_time_travel,
    )
    from indextables.maintenance.merge import merge_splits
    from indextables.maintenance.properties import set_properties, unset_properties
    from indextables.maintenance.purging import purge
    from indextables.maintenance.reorg import reorg_splits
    from indextables.maintenance.restore import restore_to_version
    from indextables.maintenance.update import update_rows

_HOMES = {
    "add_column": "columns", "alter_column": "columns", "alter_column_type": "columns",
    "drop_column": "columns", "rename_column": "columns",
    "checkpoint": "logwork", "delete_rows": "delete", "describe_state": "logwork",
    "doctor": "checkup", "drop_partitions": "drop",
    "erase_rows": "erase", "merge_splits": "merge", "purge": "purging",
    "reorg_splits": "reorg", "repair_log": "logwork", "restore_to_version": "restore",
    "set_properties": "properties",
    "stats_coverage": "coverage", "truncate_table": "delete", "truncate_time_travel": "logwork",
    "unset_properties": "properties", "update_rows": "update",
}  # fmt: skip

__all__ = [
    "add_column", "alter_column", "alter_column_type", "checkpoint", "delete_rows",
    "describe_state", "doctor", "drop_column", "drop_partitions", "erase_rows", "merge_splits",
    "purge", "rename_column", "reorg_splits", "repair_log", "restore_to_version", "set_properties",
    "stats_coverage", "truncate_table", "truncate_time_travel", "unset_properties", "update_rows",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"indextables.maintenance.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
