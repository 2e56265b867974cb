"""``_last_checkpoint``: where to start reading. A hint, nothing more.

It is written after a checkpoint, only when it would point further than the one that is there, and
may lag, be damaged or be missing; a reader then lists the log instead. It never decides which
version is the newest.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass
from typing import ClassVar

from indextables.errors import CorruptFileError, ObjectNotFoundError
from indextables.log.actions import fields as f
from indextables.log.actions.codec import decode_object
from indextables.log.actions.fields import Field, decode_fields, encode_fields
from indextables.log.read.versions import HINT_PATH
from indextables.storage.base import Store

logger = logging.getLogger(__name__)

AVRO_STATE = "avro-state"
JSON = "json"
JSON_MULTIPART = "json-multipart"


@dataclass(frozen=True, slots=True)
class LastCheckpoint:
    """The content of the hint."""

    version: int
    size: int = 0
    size_in_bytes: int = 0
    num_files: int = 0
    created_time: int = 0
    parts: int | None = None
    checkpoint_id: str | None = None
    format: str | None = None
    state_dir: str | None = None

    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("version", "version", f.natural, required=True),
        Field("size", "size", f.integer),
        Field("size_in_bytes", "sizeInBytes", f.integer),
        Field("num_files", "numFiles", f.integer),
        Field("created_time", "createdTime", f.integer),
        Field("parts", "parts", f.natural, write_null=True),
        Field("checkpoint_id", "checkpointId", f.text, write_null=True),
        Field("format", "format", f.text, write_null=True),
        Field("state_dir", "stateDir", f.text),
    )


def read_hint(store: Store) -> LastCheckpoint | None:
    """The hint, or ``None`` when there is none or it cannot be read."""
    try:
        body = decode_object(store.read(HINT_PATH), path=HINT_PATH)
        return LastCheckpoint(**decode_fields(LastCheckpoint.FIELDS, body, "_last_checkpoint"))
    except ObjectNotFoundError:
        return None
    except CorruptFileError as error:
        logger.warning("ignoring a damaged checkpoint hint, listing the log instead: %s", error)
        return None


def write_hint(store: Store, hint: LastCheckpoint) -> bool:
    """Write the hint unless one is there that points at least as far; says whether it wrote."""
    known = read_hint(store)
    if known is not None and known.version >= hint.version:
        return False
    body = encode_fields(LastCheckpoint.FIELDS, hint)
    store.put(HINT_PATH, json.dumps(body, separators=(",", ":")).encode())
    return True
