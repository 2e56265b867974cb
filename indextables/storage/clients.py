"""Client objects of this process, shared between stores and never across a fork.

Building a client costs tenths of a second, and every task that unpickles a store needs one, so
stores with equal options share it. A forked child must not touch the clients of its parent
(their event loop lives in a thread that does not exist there): the child starts empty.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

from indextables.lru import LRU

_clients: LRU[str, Any] = LRU(32)


def shared_client(kind: str, options: Mapping[str, Any], build: Callable[[], Any]) -> Any:
    """The client of this process for these options, built on first use."""
    return _clients.load(fingerprint(kind, options), build)


def fingerprint(kind: str, options: Mapping[str, Any]) -> str:
    """A digest of options, so that no secret is kept as a key."""
    return hashlib.sha256(f"{kind}|{_ordered(options)}".encode()).hexdigest()


def _ordered(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr(sorted((str(name), _ordered(item)) for name, item in value.items()))
    return repr(value)
