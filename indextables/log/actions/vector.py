"""The descriptor of a deletion vector: which rows of a split are gone, and where that is written.

It is written as in Delta. ``i`` holds the vector itself, in base 85; ``u`` names a file of
the table by the UUID in its name (after an optional folder) and the place inside it; ``p`` names a
file anywhere, which a log of ours may not; ``x`` is never written: the rows that are gone from a
split of a companion are found out from the table that it indexes. ``cardinality`` is the number of
rows that are gone; the row count of the split stays what it was when the split was written.

An ``add`` of a split that is in the table already *narrows* it: its vector holds all rows of the
earlier one and more. It keeps ``addedAtVersion``, the version that brought the split; a version
that gives rows back removes the split first and adds it as new.
"""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass
from typing import Any, ClassVar

from indextables.errors import CorruptFileError, UnsafePathError
from indextables.log.actions import fields as f
from indextables.log.actions.fields import Field
from indextables.log.actions.spelled import Spelled
from indextables.storage.paths import safe_path

INLINE, STORED, ABSOLUTE, ELSEWHERE = "i", "u", "p", "x"
_UUID_CHARS = 20
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85 = bytes.maketrans(_B85, _Z85)
_FROM_Z85 = bytes.maketrans(_Z85, _B85)


def base85(data: bytes) -> str:
    """Bytes as Delta writes them in text: base 85 in the alphabet of ZeroMQ, filled up with 0."""
    padded = data + b"\0" * (-len(data) % 4)
    return base64.b85encode(padded).translate(_TO_Z85).decode("ascii")


def from_base85(text: str, size: int) -> bytes:
    """The first ``size`` bytes of such a text."""
    try:
        raw = text.encode("ascii")
        if len(raw) % 5 or not set(raw) <= set(_Z85):
            raise ValueError("not base 85")
        data = base64.b85decode(raw.translate(_FROM_Z85))
    except ValueError as error:
        raise CorruptFileError(f"deletionVector.pathOrInlineDv: {error}") from None
    if not 0 <= len(data) - size < 4:
        raise CorruptFileError(f"deletionVector: {len(data)} bytes, sizeInBytes says {size}")
    return data[:size]


def vector_file(file_id: uuid.UUID) -> str:
    """The name of the file that holds the vectors of one commit."""
    return f"deletion_vector_{file_id}.bin"


def _storage_type(value: Any, where: str) -> str:
    if value not in (INLINE, STORED, ABSOLUTE, ELSEWHERE):
        f.wrong_type(where, "one of i, u, p", value)
    return str(value)


@dataclass(frozen=True, slots=True)
class DeletionVector(Spelled):
    """Which rows of a split are gone."""

    storage_type: str
    path_or_inline: str
    size: int
    cardinality: int
    offset: int | None = None

    KEY: ClassVar[str] = "deletionVector"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("storage_type", "storageType", _storage_type, required=True),
        Field("path_or_inline", "pathOrInlineDv", f.name, required=True),
        Field("offset", "offset", f.natural),
        Field("size", "sizeInBytes", f.natural, required=True),
        Field("cardinality", "cardinality", f.natural, required=True),
    )

    @classmethod
    def inline(cls, data: bytes, cardinality: int) -> DeletionVector:
        return cls(INLINE, base85(data), len(data), cardinality)

    @classmethod
    def stored(cls, file_id: uuid.UUID, offset: int, size: int, cardinality: int) -> DeletionVector:
        return cls(STORED, base85(file_id.bytes), size, cardinality, offset)

    @classmethod
    def elsewhere(cls, key: str, cardinality: int) -> DeletionVector:
        """Rows that only the table of the rows can name; ``key`` tells such sets apart."""
        return cls(ELSEWHERE, key, 0, cardinality)

    @classmethod
    def from_text(cls, text: str) -> DeletionVector:
        """From its JSON, as manifests hold it."""
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            raise CorruptFileError("deletionVector is not JSON") from None
        return cls.from_dict(body)

    @property
    def text(self) -> str:
        """Its JSON, as manifests hold it."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @property
    def unique_id(self) -> str:
        """Tells vectors of one table apart: no two with the same id hold different rows."""
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline}{at}"

    @property
    def path(self) -> str | None:
        """The file that holds it, relative to the table; ``None`` for one in the log itself."""
        if self.storage_type in (INLINE, ELSEWHERE):
            return None
        if self.storage_type == ABSOLUTE:
            raise UnsafePathError(
                f"the log names a deletion vector at {self.path_or_inline!r}, outside its table",
                hint="Vectors of a table are inside it; restore the log from a copy",
            )
        folder, name = self.path_or_inline[:-_UUID_CHARS], self.path_or_inline[-_UUID_CHARS:]
        file_name = vector_file(uuid.UUID(bytes=from_base85(name, 16)))
        return safe_path(f"{folder}/{file_name}" if folder else file_name)

    @property
    def inline_data(self) -> bytes:
        """The bytes of a vector that the log holds."""
        return from_base85(self.path_or_inline, self.size)


def decode_vector(value: Any, where: str) -> DeletionVector:
    """The field of an ``add``."""
    vector = DeletionVector.from_dict(value)
    if vector.storage_type == ELSEWHERE:
        f.wrong_type(f"{where}.storageType", "one of i, u, p", ELSEWHERE)
    return vector
