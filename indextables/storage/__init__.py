"""Object stores behind one interface. Decides how bytes are read, created, listed and deleted."""

from indextables.storage.base import (
    Capabilities,
    ObjectInfo,
    Store,
    open_store,
    redact,
    resolve_options,
    safe_path,
)
from indextables.storage.commit import commit_slot

__all__ = [
    "Capabilities",
    "ObjectInfo",
    "Store",
    "commit_slot",
    "open_store",
    "redact",
    "resolve_options",
    "safe_path",
]
