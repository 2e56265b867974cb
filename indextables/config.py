"""The settings of one operation, out of the registry in ``settings``.

Keys live under ``spark.indextables.`` and are matched without case, with or without the prefix.
Precedence is option over session over default: ``Config.of(options, session)``. A key under our
prefix that is not in the registry is an error with a suggestion, except families that end in
``*`` (``indexing.typemap.*``) and the store credentials, which are passed through. A key that is
accepted and has no effect here is named in the log, once per process.
The documentation page of all settings is generated from the registry (``render_markdown``).
"""

from __future__ import annotations

import logging
import operator
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from indextables.errors import ConfigError, PlanningError, did_you_mean, nearest
from indextables.settings import (
    BY_KEY,
    FAMILIES,
    LARGEST,
    PREFIX,
    SETTINGS,
    Setting,
    parse_int,
    parse_size,
)

__all__ = [
    "PREFIX",
    "SETTINGS",
    "Config",
    "Setting",
    "checked_count",
    "find_setting",
    "parse_int",
    "parse_size",
    "refuse_misspelt",
    "render_markdown",
    "settings_page",
    "short_key",
]

LOG = logging.getLogger("indextables.config")
MOST_ROWS = 2**63 - 1
SPARK_OPTIONS = {
    "versionasof": "read.version",
    "timestampasof": "read.timestamp",
    "where": "read.where",
    "columns": "read.columns",
    "mergeschema": "write.mergeSchema",
    "overwriteschema": "write.overwriteSchema",
    "replacewhere": "write.replaceWhere",
    "partitionoverwritemode": "write.partitionOverwriteMode",
}
"""Options of Spark's readers and writers that have no prefix, and the settings they mean."""
_ELSEWHERE = ("path", "paths", "location", "partitionby")
_ARGUMENTS = {
    "versionasof": "version",
    "timestampasof": "timestamp",
    "mergeschema": "merge_schema",
    "replacewhere": "replace_where",
}
_told: set[str] = set()


class Config(Mapping[str, Any]):
    """Settings of one operation: typed, defaulted, case-insensitive, immutable."""

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values: dict[str, Any] = {}
        self._families: dict[str, Any] = {}
        for key, value in (values or {}).items():
            self._set(key, value)

    @classmethod
    def of(cls, *layers: Mapping[str, Any] | None) -> Config:
        """Merge layers, strongest first: ``Config.of(options, session)``."""
        merged: dict[str, Any] = {}
        for layer in reversed(layers):
            source = layer.raw() if isinstance(layer, Config) else (layer or {})
            merged.update({short_key(k): v for k, v in source.items() if _is_ours(k)})
        return cls(merged)

    def _set(self, key: str, value: Any) -> None:
        name = short_key(key)
        setting = find_setting(name)
        if setting is None:
            raise ConfigError(
                f"unknown setting '{PREFIX}{name}'",
                hint=did_you_mean(name, (s.key for s in SETTINGS)),
            )
        if value is None:
            return
        if setting.is_inert:
            _tell_once(setting, name)
        if setting.is_family:
            self._families[name] = value
        else:
            self._values[setting.key.lower()] = setting.parse(value)

    def __getitem__(self, key: str) -> Any:
        name = short_key(key)
        setting = BY_KEY.get(name)
        if setting is None:
            raise ConfigError(
                f"unknown setting '{PREFIX}{name}'",
                hint=did_you_mean(name, (s.key for s in SETTINGS)),
            )
        return self._values.get(setting.key.lower(), setting.default)

    def is_set(self, key: str) -> bool:
        """Was the key given, rather than defaulted?"""
        return short_key(key) in self._values

    def family(self, prefix: str) -> dict[str, Any]:
        """The given keys of a family, without the prefix: ``family("indexing.typemap.")``."""
        lowered = prefix.lower()
        return {
            k[len(lowered) :]: v for k, v in self._families.items() if k.lower().startswith(lowered)
        }

    def raw(self) -> dict[str, Any]:
        """What was given, by short key; small enough to send to a worker."""
        return {**self._values, **self._families}

    def updated(self, values: Mapping[str, Any]) -> Config:
        return Config({**self.raw(), **{short_key(k): v for k, v in values.items()}})

    def __iter__(self) -> Iterator[str]:
        return iter(s.key for s in SETTINGS if not s.is_family)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        from indextables.storage.redaction import redact

        return f"Config({redact(self.raw())})"


def checked_count(value: Any, what: str = "a limit", least: int = 0) -> int:
    """A number of rows that a caller gave; text, fractions and what no counter holds are errors."""
    try:
        number = -1 if isinstance(value, bool | str) else operator.index(value)
    except TypeError:
        number = -1
    if number < least or number > MOST_ROWS:
        raise PlanningError(
            f"{what} cannot be {value!r}", hint=f"Give a whole number from {least} on"
        )
    return number


def refuse_misspelt(options: Mapping[str, Any] | None, spark: bool = False) -> None:
    """Refuse plain options that nothing reads and that look like one of ours.

    Others are left alone: Spark and stores pass options of their own.
    """
    known = {name.lower(): name for name in (*SPARK_OPTIONS, *(s.key for s in SETTINGS))}
    for key in options or ():
        lowered = str(key).lower()
        if _is_ours(str(key)) or lowered in _ELSEWHERE or lowered.startswith(("__", "fs.")):
            continue
        if lowered in SPARK_OPTIONS:
            if not spark:
                raise ConfigError(f"the option '{key}' is Spark's", hint=_instead(lowered))
            continue
        near = nearest(lowered, known)
        if near is not None:
            plain = spark or near not in SPARK_OPTIONS
            hint = f"Did you mean '{known[near]}'?" if plain else _instead(near)
            raise ConfigError(f"unknown option '{key}'", hint=hint)


def _instead(option: str) -> str:
    argument = _ARGUMENTS.get(option)
    setting = f"the setting '{SPARK_OPTIONS[option]}'"
    return f"Use {setting}" if argument is None else f"Use the argument {argument}=, or {setting}"


def _tell_once(setting: Setting, name: str) -> None:
    """One line per process for a key that changes nothing."""
    if name not in _told:
        _told.add(name)
        LOG.warning("%s%s is set. %s", PREFIX, name, setting.doc)


def short_key(key: str) -> str:
    """The registry's spelling of a key: no prefix; lower case except in a family's last part."""
    lowered = key.lower()
    if lowered.startswith(PREFIX):
        key = key[len(PREFIX) :]
        lowered = key.lower()
    for family in FAMILIES:
        if lowered.startswith(family):
            return family + key[len(family) :]
    return lowered


def _is_ours(key: str) -> bool:
    return key.lower().startswith(PREFIX) or find_setting(short_key(key)) is not None


def find_setting(name: str) -> Setting | None:
    """The setting of a short key, or the family it belongs to."""
    found = BY_KEY.get(name.lower())
    if found is not None:
        return found
    return next((s for f, s in FAMILIES.items() if name.lower().startswith(f)), None)


def render_markdown(settings: Iterable[Setting] | None = None) -> str:
    """The settings as a Markdown table, grouped by first word."""
    lines: list[str] = []
    group = ""
    for setting in settings or SETTINGS:
        head = setting.key.split(".")[0]
        if head != group:
            group = head
            lines += [
                "",
                f"## {head}",
                "",
                "| key | type | default | meaning |",
                "|---|---|---|---|",
            ]
        meaning = setting.doc
        if setting.choices:
            meaning += f" One of {', '.join(f'`{choice}`' for choice in setting.choices)}."
        if setting.is_number and (setting.low, setting.high) != (0, LARGEST):
            meaning += f" Allowed: {setting.range}."
        default = _shown_default(setting)
        lines.append(f"| `{setting.full_key}` | {setting.kind} | {default} | {meaning} |")
    return "\n".join(lines).strip() + "\n"


def _shown_default(setting: Setting) -> str:
    """A default as one would write it in an option."""
    value = setting.default
    if value is None or value == ():
        return ""
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if setting.kind == "size":
        power = next(p for p in (30, 20, 10, 0) if value % (1 << p) == 0)
        return f"`{value >> power}{ {30: 'G', 20: 'M', 10: 'K', 0: ''}[power] }`"
    return f"`{value}`"


def settings_page() -> str:
    """The whole page ``docs/settings.md``."""
    return f"{PAGE_HEAD}\n{render_markdown()}"


PAGE_HEAD = """\
# Settings

Generated from the code by `python -m indextables.config`; a test keeps it current. An option of a
call wins over the Spark session, the session over the default. Keys are matched without case, and
the prefix `spark.indextables.` may be left out of options. A misspelled key is an error that
suggests the nearest. Sizes are bytes, or a number with `K`, `M` or `G` (powers of 1024). A key that
ends in `.*` stands for a family: the rest of the key names a column or an account. A key marked "No
effect" is accepted because JVM IndexTables has it; setting one is noted once in the log.
"""

if __name__ == "__main__":
    print(settings_page(), end="")
