"""Everything a version says besides its files: the small, keyed part of a table's state.

A ledger is immutable; ``applied`` gives the next one. The rules:

* the latest protocol and metadata win; metadata also carries the schema registry and a mirror of
  column-index definitions in its configuration;
* a cross-reference lives from ``addXRef`` to ``removeXRef`` of the same path;
* a key map lives from ``addKeyMap`` to ``removeKeyMap`` of the same path;
* a column-index definition lives until it is dropped; files of an index count only while the
  definition with the same id lives, and only for splits that live (the snapshot asks by split);
* a skip lives until its split is added again or removed; a later skip of the same split replaces
  the earlier one;
* of an application's transactions only the latest version counts;
* lines of unknown kinds all stay, in order.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from indextables.errors import CorruptFileError
from indextables.log.actions import (
    Action,
    AddFile,
    AddKeyMap,
    AddXRef,
    CommitInfo,
    DefineIndex,
    DropIndex,
    IndexBlocks,
    IndexFile,
    Metadata,
    Protocol,
    RemoveFile,
    RemoveKeyMap,
    RemoveXRef,
    SkipFile,
    Txn,
    UnknownActions,
    parse_action,
)
from indextables.log.actions.schema_registry import COLUMN_INDEX_PREFIX, REGISTRY_PREFIX


@dataclass(frozen=True, slots=True)
class ColumnIndexes:
    """Column indexes of a snapshot: definitions by column, files by (column, split path)."""

    definitions: Mapping[str, DefineIndex] = field(default_factory=dict)
    files: Mapping[tuple[str, str], IndexFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ledger:
    """Protocol, metadata, cross-references, column indexes, skips and transactions."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    registry: Mapping[str, str] = field(default_factory=dict)
    xrefs: Mapping[str, AddXRef] = field(default_factory=dict)
    removed_xrefs: Mapping[str, RemoveXRef] = field(default_factory=dict)
    indexes: ColumnIndexes = field(default_factory=ColumnIndexes)
    skips: Mapping[str, SkipFile] = field(default_factory=dict)
    keymaps: Mapping[str, AddKeyMap] = field(default_factory=dict)
    txns: Mapping[str, Txn] = field(default_factory=dict)
    unknown: str = ""

    def applied(self, actions: Iterable[Action]) -> Ledger:
        """The ledger after these actions, in order."""
        draft = _Draft(self)
        for action in actions:
            draft.apply(action)
        return draft.ledger()

    def to_actions(self) -> list[Action]:
        """The actions that rebuild this ledger from nothing, protocol and metadata first."""
        heads: list[Action] = [a for a in (self.protocol, self.metadata) if a is not None]
        return [*heads, *self.extra_actions()]

    def extra_actions(self) -> list[Action]:
        """All but protocol and metadata."""
        found: list[Action] = [*self.xrefs.values(), *self.removed_xrefs.values()]
        found += self.indexes.definitions.values()
        by_column: dict[str, list[IndexFile]] = {}
        for (column, _), file in self.indexes.files.items():
            by_column.setdefault(column, []).append(file)
        for column, files in by_column.items():
            definition = self.indexes.definitions[column]
            found.append(IndexBlocks(definition.id, column, files=tuple(files)))
        found += [*self.keymaps.values(), *self.skips.values(), *self.txns.values()]
        return [*found, UnknownActions(self.unknown)] if self.unknown else found


class _Draft:
    """A ledger under construction; maps are copied when first written."""

    def __init__(self, base: Ledger) -> None:
        self._base = base
        self._changed: dict[str, Any] = {}

    def ledger(self) -> Ledger:
        if "definitions" in self._changed or "files" in self._changed:
            indexes = self._base.indexes
            self._changed["indexes"] = ColumnIndexes(
                self._changed.pop("definitions", indexes.definitions),
                self._changed.pop("files", indexes.files),
            )
        return replace(self._base, **self._changed) if self._changed else self._base

    def _map(self, name: str, owner: Any = None) -> dict[Any, Any]:
        if name not in self._changed:
            self._changed[name] = dict(getattr(owner or self._base, name))
        found: dict[Any, Any] = self._changed[name]
        return found

    def _peek(self, name: str) -> Mapping[Any, Any]:
        source = self._base.indexes if name in ("definitions", "files") else self._base
        found: Mapping[Any, Any] = self._changed.get(name, getattr(source, name))
        return found

    def apply(self, action: Action) -> None:
        match action:
            case AddFile() | RemoveFile():
                if action.path in self._peek("skips"):
                    del self._map("skips")[action.path]
            case SkipFile():
                self._map("skips")[action.path] = action
            case Protocol():
                self._changed["protocol"] = action
            case Metadata():
                self._apply_metadata(action)
            case Txn():
                self._map("txns")[action.app_id] = action
            case AddXRef() | RemoveXRef():
                self._apply_xref(action)
            case AddKeyMap():
                self._map("keymaps")[action.path] = action
            case RemoveKeyMap():
                self._map("keymaps").pop(action.path, None)
            case DefineIndex() | IndexBlocks() | DropIndex():
                self._apply_index(action)
            case UnknownActions():
                earlier = self._changed.get("unknown", self._base.unknown)
                self._changed["unknown"] = action.after(earlier)
            case CommitInfo():
                pass

    def _apply_xref(self, action: AddXRef | RemoveXRef) -> None:
        if isinstance(action, AddXRef):
            self._map("xrefs")[action.path] = action
            self._map("removed_xrefs").pop(action.path, None)
            return
        self._map("xrefs").pop(action.path, None)
        self._map("removed_xrefs")[action.path] = action

    def _apply_metadata(self, action: Metadata) -> None:
        self._changed["metadata"] = action
        for key, value in action.configuration.items():
            if key.startswith(REGISTRY_PREFIX):
                self._map("registry")[key.removeprefix(REGISTRY_PREFIX)] = value
            elif key.startswith(COLUMN_INDEX_PREFIX):
                self._mirror(key.removeprefix(COLUMN_INDEX_PREFIX), value)

    def _mirror(self, column: str, text: str) -> None:
        """A definition in the configuration: it survives writers that drop unknown actions."""
        try:
            definition = DefineIndex.from_dict({"column": column, **json.loads(text)})
        except (ValueError, TypeError, RecursionError, CorruptFileError):
            return
        if definition.column not in self._peek("definitions"):
            self._map("definitions", self._base.indexes)[definition.column] = definition

    def _apply_index(self, action: DefineIndex | IndexBlocks | DropIndex) -> None:
        known = self._peek("definitions").get(action.column)
        if isinstance(action, DefineIndex):
            self._map("definitions", self._base.indexes)[action.column] = action
            if known is not None and known.id != action.id:
                self._forget_files(action.column)
        elif isinstance(action, IndexBlocks):
            if known is not None and known.id == action.index_id:
                files = self._map("files", self._base.indexes)
                files.update({(action.column, file.split): file for file in action.files})
        elif known is not None and known.id == action.id:
            del self._map("definitions", self._base.indexes)[action.column]
            self._forget_files(action.column)

    def _forget_files(self, column: str) -> None:
        files = self._map("files", self._base.indexes)
        for key in [key for key in files if key[0] == column]:
            del files[key]


def ledger_to_json(ledger: Ledger) -> str:
    """What has no field of its own in a state, as one JSON text of action lines."""
    heads: list[Action] = [] if ledger.protocol is None else [ledger.protocol]
    lines = (line for a in [*heads, *ledger.extra_actions()] for line in a.json_lines())
    return f"[{','.join(lines)}]"


def actions_from_json(text: str | None) -> list[Action]:
    """The inverse of ``ledger_to_json``."""
    if not text:
        return []
    try:
        lines = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"the state's extra actions are not JSON: {error}") from None
    if not isinstance(lines, list):
        raise CorruptFileError("the state's extra actions are not a JSON array")
    return [action for action in map(parse_action, lines) if action is not None]
