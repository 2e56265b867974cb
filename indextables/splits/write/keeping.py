"""Whether splits keep their keys for key maps, and tables have key maps.

A key map costs about a tenth of a split's bytes and one small commit for every few splits. What it
saves are requests and bytes of an object store: one bucket of some KB is read where filters have to
be read whole. On local disk a filter that is loaded once answers as well. So the default ``auto``
means yes for tables on object stores and no for others; ``true`` and ``false`` insist.
"""

from __future__ import annotations

from indextables.config import Config
from indextables.storage.base import Store

SETTING = "xref.keymap.enabled"


def is_automatic(config: Config) -> bool:
    """Is it left to the store?"""
    return bool(config[SETTING] == "auto")


def keeps_keys(config: Config, store: Store) -> bool:
    """Do splits of a table in this store keep their keys?"""
    return store.capabilities.remote if is_automatic(config) else bool(config[SETTING] == "true")


def decided(config: Config, store: Store) -> Config:
    """The configuration for writers, which do not know the store."""
    return config.updated({SETTING: str(keeps_keys(config, store)).lower()})
