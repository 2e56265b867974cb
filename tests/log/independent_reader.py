"""A second reader of the table format, written from its description alone.

Plain ``json``, ``gzip`` and ``fastavro``, nothing of the package under test, slow and obvious. It
reads a folder on disk and answers what a table is at its newest version. What it does not know it
ignores, as the description asks.
"""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro


@dataclass
class Table:
    """A table as this reader understands it."""

    version: int
    protocol: dict[str, Any]
    metadata: dict[str, Any]
    adds: dict[str, dict[str, Any]]
    xrefs: dict[str, dict[str, Any]] = field(default_factory=dict)
    skips: dict[str, dict[str, Any]] = field(default_factory=dict)
    checkpoint: str | None = None

    @property
    def num_rows(self) -> int:
        return sum(add["numRecords"] for add in self.adds.values())

    @property
    def columns(self) -> list[str]:
        return [f["name"] for f in json.loads(self.metadata["schemaString"])["fields"]]

    def doc_mapping(self, add: dict[str, Any], registry: dict[str, str]) -> str | None:
        if add.get("docMappingJson"):
            return add["docMappingJson"]
        reference = add.get("docMappingRef")
        key = f"docMappingSchema.{reference}"
        return self.metadata["configuration"].get(key, registry.get(reference))


def lines_of(path: Path) -> list[dict[str, Any]]:
    data = path.read_bytes()
    if data[:2] == b"\x01\x01":
        data = data[2:]
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return [json.loads(line) for line in data.decode("utf-8").splitlines() if line.strip()]


def read_table(folder: Path) -> Table:
    """The newest version of the table in ``folder``."""
    log = folder / "_transaction_log"
    versions = sorted(
        int(p.name[:20]) for p in log.iterdir() if re.fullmatch(r"[0-9]{20}\.json", p.name)
    )
    table = Table(-1, {}, {}, {})
    registry: dict[str, str] = {}
    hint = log / "_last_checkpoint"
    if hint.exists():
        pointer = json.loads(hint.read_text())
        if pointer.get("format") == "avro-state":
            registry = _apply_state(log, pointer, table)
        else:
            _apply_json_checkpoint(log, pointer["version"], table)
        table.version = pointer["version"]
        table.checkpoint = pointer.get("format") or "json"
    for version in versions:
        if version <= table.version:
            continue
        if version != table.version + 1:
            break
        for action in lines_of(log / f"{version:020d}.json"):
            _apply(action, table)
        table.version = version
    if not table.metadata or not table.protocol:
        for action in lines_of(log / f"{0:020d}.json"):
            if "metaData" in action and not table.metadata:
                table.metadata = action["metaData"]
            if "protocol" in action and not table.protocol:
                table.protocol = action["protocol"]
    table.registry = registry  # type: ignore[attr-defined]
    return table


def _apply(action: dict[str, Any], table: Table) -> None:
    if action.get("protocol"):
        table.protocol = action["protocol"]
    elif action.get("metaData"):
        table.metadata = action["metaData"]
    elif action.get("add"):
        table.adds[action["add"]["path"]] = action["add"]
    elif action.get("remove"):
        table.adds.pop(action["remove"]["path"], None)
    elif action.get("addXRef"):
        table.xrefs[action["addXRef"]["path"]] = action["addXRef"]
    elif action.get("removeXRef"):
        table.xrefs.pop(action["removeXRef"]["path"], None)
    elif action.get("mergeskip"):
        table.skips[action["mergeskip"]["path"]] = action["mergeskip"]


def _apply_json_checkpoint(log: Path, version: int, table: Table) -> None:
    lines = lines_of(log / f"{version:020d}.checkpoint.json")
    if len(lines) == 1 and "parts" in lines[0]:
        lines = [line for name in lines[0]["parts"] for line in lines_of(log / name)]
    for line in lines:
        _apply(line, table)


def _apply_state(log: Path, pointer: dict[str, Any], table: Table) -> dict[str, str]:
    folder = log / pointer["stateDir"]
    if (folder / "_manifest.json").exists():
        state = json.loads((folder / "_manifest.json").read_text())
    else:
        with (folder / "_manifest.avro").open("rb") as file:
            (state,) = fastavro.reader(file)
    assert state["stateVersion"] == pointer["version"]
    dead = set(state["tombstones"])
    for info in state["manifests"]:
        path = info["path"]
        shared = path.startswith(("manifests/", "state-v"))
        with (log / path if shared else folder / path).open("rb") as file:
            entries = list(fastavro.reader(file))
        assert len(entries) == info["numEntries"]
        for entry in entries:
            if entry["path"] not in dead:
                table.adds[entry["path"]] = entry
    assert len(table.adds) == state["numFiles"]
    if state.get("metadata"):
        body = json.loads(state["metadata"])
        table.metadata = body.get("metaData", body)
    return {k.removeprefix("docMappingSchema."): v for k, v in state["schemaRegistry"].items()}
