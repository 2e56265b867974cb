"""The actions of column indexes: what is defined, which files hold it, what was dropped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from indextables.log.actions import fields as f
from indextables.log.actions.fields import Field
from indextables.log.actions.spelled import Spelled


@dataclass(frozen=True, slots=True)
class DefineIndex(Spelled):
    """A column gets an index; splits written from now on carry it."""

    id: str
    column: str
    created_time: int = 0
    format: str = "bbidx2"

    KEY: ClassVar[str] = "defineIndex"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "id", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("created_time", "createdTime", f.integer),
        Field("format", "format", f.text),
    )


@dataclass(frozen=True, slots=True)
class IndexFile(Spelled):
    """The index of one column over one split, in a file of its own."""

    split: str
    path: str
    size: int
    cardinality: int | None = None
    rows: int | None = None
    nulls: int | None = None
    footer_offset: int | None = None

    KEY: ClassVar[str] = "indexBlocks.files"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("split", "split", f.name, required=True),
        Field("path", "path", f.name, required=True),
        Field("size", "size", f.natural, required=True),
        Field("cardinality", "cardinality", f.natural),
        Field("rows", "rows", f.natural),
        Field("nulls", "nulls", f.natural),
        Field("footer_offset", "footerOffset", f.natural),
    )


def _index_files(value: Any, where: str) -> tuple[IndexFile, ...]:
    if not isinstance(value, list):
        f.wrong_type(where, "an array of objects", value)
    return tuple(IndexFile.from_dict(item) for item in value)


def _index_file_dicts(value: tuple[IndexFile, ...]) -> list[dict[str, Any]]:
    return [item.to_dict() for item in value]


@dataclass(frozen=True, slots=True)
class IndexBlocks(Spelled):
    """Index files of one column for splits that were written without them."""

    index_id: str
    column: str
    format: str = "BBIDX002"
    files: tuple[IndexFile, ...] = ()

    KEY: ClassVar[str] = "indexBlocks"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("index_id", "indexId", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("format", "format", f.text),
        Field("files", "files", _index_files, _index_file_dicts),
    )


@dataclass(frozen=True, slots=True)
class DropIndex(Spelled):
    """A column's index is no longer to be used."""

    id: str
    column: str
    deletion_timestamp: int = 0

    KEY: ClassVar[str] = "dropIndex"
    FIELDS: ClassVar[tuple[Field, ...]] = (
        Field("id", "id", f.name, required=True),
        Field("column", "column", f.name, required=True),
        Field("deletion_timestamp", "deletionTimestamp", f.integer),
    )
