"""Client objects of this process, shared between stores and never across a fork.

Building a client costs tenths of a second, and every task that unpickles a store needs one, so
stores with equal options share it. A forked child must not touch the clients of its parent
(their event loop lives in a thread that does not exist there): the child starts empty.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

_KEPT = 32
_clients: OrderedDict[tuple[int, str], Any] = OrderedDict()
_lock = threading.Lock()


def shared_client(kind: str, options: Mapping[str, Any], build: Callable[[], Any]) -> Any:
    """The client of this process for these options, built on first use."""
    key = (os.getpid(), fingerprint(kind, options))
    with _lock:
        if key not in _clients:
            _clients[key] = build()
            while len(_clients) > _KEPT:
                _clients.popitem(last=False)
        _clients.move_to_end(key)
        return _clients[key]


def fingerprint(kind: str, options: Mapping[str, Any]) -> str:
    """A digest of options, so that no secret is kept as a key."""
    return hashlib.sha256(f"{kind}|{_ordered(options)}".encode()).hexdigest()


def _ordered(value: Any) -> str:
    if isinstance(value, Mapping):
        return repr(sorted((str(name), _ordered(item)) for name, item in value.items()))
    return repr(value)


def _start_empty() -> None:
    global _lock
    _lock = threading.Lock()
    _clients.clear()


os.register_at_fork(after_in_child=_start_empty)
