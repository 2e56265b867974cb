"""Which addresses of a source are followed, and with which credentials.

The metadata of a table names its files, and anybody who can write metadata can write any name. A
file is therefore read only below a declared root: the table's own location, and what the caller
adds with the option ``roots``. An address with another scheme or bucket, one that leaves its root
by ``..`` or by a symbolic link, and one that is no address at all is ``UnsafePathError``. Nothing
here writes.

Tables that were copied from elsewhere name the place they came from. The option ``relocate`` says
where that is now (``{"s3://old/warehouse": "s3://new/warehouse"}``); the result is checked like
every other address.

All options that are not ours go to the source's storage. They are not those of the index, which may
lie in another account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from indextables.errors import ConfigError, UnsafePathError
from indextables.storage.base import Store, open_store, safe_path
from indextables.storage.client_options import scheme_of
from indextables.storage.local import local_root

OURS = frozenset(("roots", "relocate", "catalog", "table", "partition_types", "name_mapping"))
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


def canonical(address: str) -> str:
    """An absolute address in one spelling: ``file:///path``, ``s3://bucket/key``."""
    if not isinstance(address, str) or not (address.startswith("/") or _ABSOLUTE.match(address)):
        raise UnsafePathError(
            f"{address!r} is no absolute address",
            hint="Say where such paths begin with the option relocate",
        )
    scheme = scheme_of(address)
    if scheme != "file":
        return f"{scheme}://{address.partition(':')[2].lstrip('/')}"
    path = address[5:] if address[:5].lower() == "file:" else address
    if path.startswith("//"):
        host, slash, rest = path[2:].partition("/")
        if host not in ("", "localhost"):
            raise UnsafePathError(f"{address!r} is a file of another machine")
        path = slash + rest
    return "file://" + path


def split_options(options: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of sources, and options of their storage."""
    given = dict(options or {})
    return {k: v for k, v in given.items() if k in OURS}, {
        k: v for k, v in given.items() if k not in OURS
    }


@dataclass
class Roots:
    """Where files of one source may lie; picklable, clients are opened where they are used."""

    location: str
    storage: Mapping[str, Any] = field(default_factory=dict)
    declared: tuple[str, ...] = ()
    relocate: Mapping[str, str] = field(default_factory=dict)
    _stores: dict[str, Store] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, location: str, options: Mapping[str, Any] | None = None) -> Roots:
        """The roots of a table at a location that the caller named."""
        ours, storage = split_options(options)
        roots = ours.get("roots") or ()
        if isinstance(roots, str):
            roots = (roots,)
        moved = ours.get("relocate") or {}
        if not isinstance(moved, Mapping):
            raise ConfigError("the option relocate is a mapping of old places to new ones")
        places = {str(old).rstrip("/"): rooted(str(new)) for old, new in moved.items()}
        return cls(rooted(location), storage, tuple(rooted(r) for r in roots), places)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stores": {}}

    @property
    def all(self) -> Sequence[str]:
        return (self.location, *self.declared)

    @property
    def store(self) -> Store:
        """The store of the table's own location."""
        return self._store(self.location)

    def _store(self, root: str) -> Store:
        if root not in self._stores:
            self._stores[root] = open_store(root, self.storage)
        return self._stores[root]

    def resolve(self, address: str) -> str:
        """Where an address of the metadata is now, in one spelling."""
        for old in sorted(self.relocate, key=len, reverse=True):
            if address == old or address.startswith(old + "/"):
                return canonical(self.relocate[old] + address[len(old) :])
        return canonical(address)

    def locate(self, address: str) -> tuple[Store, str]:
        """The store of the root that an address lies in, and its path there."""
        found = self.resolve(address)
        for root in sorted(self.all, key=len, reverse=True):
            folder = root if root.endswith("/") else root + "/"
            if found.startswith(folder):
                return self._store(root), safe_path(found[len(folder) :])
        raise UnsafePathError(
            f"the metadata names {address!r}, which is outside of the table",
            path=self.location,
            hint="Add the place to the option roots if the table may use it",
        )


def rooted(location: str) -> str:
    """A location that the caller named, which may be a relative path, in one spelling."""
    if scheme_of(location) == "file":
        return "file://" + local_root(location)
    return canonical(location).rstrip("/")
