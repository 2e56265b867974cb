"""Which table, at which moment, with which settings: from options and session alike.

Options win over the session's settings, those over the defaults. Keys are matched without case,
with or without ``spark.indextables.``; an unknown key under our prefix is an error with a
suggestion, and so is a plain one that is nearly ours. Keys that begin with two underscores are our
own notes between planner and writer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from indextables.config import SPARK_OPTIONS, Config, refuse_misspelt
from indextables.errors import ConfigError
from indextables.log.log import TransactionLog
from indextables.log.read.pinned import Pinned, pinned, refuse_other

_PASSING = ("__session", "__ask", "__verb", "__plan")


@dataclass(frozen=True)
class Access:
    """One table and the settings to reach it; small and picklable."""

    path: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    storage_options: Mapping[str, Any] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def config(self) -> Config:
        return Config(self.settings)

    @property
    def key(self) -> tuple[Any, ...]:
        """What distinguishes two accesses."""
        return (
            self.path,
            tuple(sorted((k, str(v)) for k, v in self.settings.items())),
            tuple(sorted((k, str(v)) for k, v in self.storage_options.items())),
        )


def access(options: Mapping[str, str], session: Mapping[str, str] | None = None) -> Access:
    """The access that options and session settings describe."""
    given = {_plain(k): v for k, v in options.items()}
    path = _value(given, "path") or _value(given, "location")
    if not path:
        raise ConfigError(
            "an indextables table needs a path",
            hint='Use .load(path), .save(path) or option("path", ...)',
        )
    refuse_misspelt(given, spark=True)
    layers = {SPARK_OPTIONS.get(k.lower(), k): v for k, v in given.items()}
    config = Config.of(layers, session)
    storage = {k: v for k, v in given.items() if k.lower().startswith("fs.")}
    at = _pinned(_local(path), storage, config)
    settings, notes = config.raw(), _notes(given)
    if at.is_pinned:
        settings |= {"read.version": at.version} if at.timestamp is None else {}
        settings |= {"read.timestamp": at.timestamp.isoformat()} if at.timestamp else {}
        notes["__at"] = path
    return Access(path=at.path, settings=settings, storage_options=storage, notes=notes)


def _pinned(path: str, storage: Mapping[str, str], config: Config) -> Pinned:
    """A version in the path (``path@v12``), as far as none is given beside it."""

    def exists(place: str) -> bool:
        return TransactionLog.exists(place, storage_options=storage, config=config)

    at = pinned(path, exists)
    refuse_other(at, config["read.version"], config["read.timestamp"])
    return at


def _notes(given: Mapping[str, str]) -> dict[str, str]:
    """Our own notes; the option ``partitionBy`` is how layer 1 learns of partition columns."""
    asked = _value(given, "partitionby")
    notes = {"__partitionby": asked} if asked else {}
    ours = {k.lower(): v for k, v in given.items() if k.startswith("__")}
    return {k: v for k, v in {**notes, **ours}.items() if k not in _PASSING}


def asks_for_feed(options: Mapping[str, Any]) -> bool:
    """Is it the change feed of a table that is wanted, instead of its rows?"""
    said = str(plain_options(options).get("readchangefeed", "false")).strip().lower()
    if said not in ("true", "false"):
        raise ConfigError(f"readChangeFeed must be true or false, not '{said}'")
    return said == "true"


def plain_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by their names in lower case."""
    return {_plain(key).lower(): value for key, value in options.items()}


def session_settings(spark: Any) -> dict[str, str]:
    """Our settings of a session, on classic and on Connect."""
    found = spark.conf.getAll
    pairs = found() if callable(found) else found
    return {k: v for k, v in dict(pairs).items() if k.lower().startswith("spark.indextables.")}


def _plain(key: str) -> str:
    return key[len("option.") :] if key.startswith("option.") else key


def _value(options: Mapping[str, str], name: str) -> str | None:
    return next((v for k, v in options.items() if k.lower() == name), None)


def _local(path: str) -> str:
    """Spark's form of local paths as a plain path."""
    for head in ("file:///", "file:/"):
        if path.startswith(head):
            return "/" + path[len(head) :]
    return path
