"""Where a store's options come from, and how its client library names them.

Three sources, the first that names an option wins: ``storage_options`` (the caller, in fsspec's
own names or as ``spark.indextables.*`` keys), configuration (Spark conf), the environment.
Credentials are one unit: the key, secret and session token of one account come from the same
source, never mixed, because a key of one source with a token of another is refused by the server
in confusing ways. Key names are compared without case, as Spark lowers them.

The result is what the client library takes, nested where it wants nesting, and is accepted again
as ``storage_options`` (resolving twice changes nothing).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indextables.config import PREFIX, Config
from indextables.errors import ConfigError, did_you_mean, is_text

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
_ALIASES = {
    "s3a": "s3",
    "s3n": "s3",
    "gcs": "gs",
    "abfs": "az",
    "abfss": "az",
    "wasb": "az",
    "wasbs": "az",
}
_TRUE = frozenset(("true", "1", "yes", "on"))
_FALSE = frozenset(("false", "0", "no", "off"))

FSYNC = "spark.indextables.storage.fsync"
TIMEOUT = "spark.indextables.storage.timeoutSeconds"
CONNECT_TIMEOUT = "spark.indextables.storage.connectTimeoutSeconds"
RETRIES = "spark.indextables.storage.attempts"
CLIENT = "spark.indextables.storage.client"
CLIENTS = ("auto", "obstore", "fsspec")
OURS = ("spark.indextables.", "fs.s3a.")


@dataclass(frozen=True, slots=True)
class _Option:
    """One client option: where it goes and the names it is known by."""

    target: tuple[str, ...]
    keys: tuple[str, ...]
    environment: tuple[str, ...] = ()
    unit: str | None = None
    kind: str = "text"


_ANY = (
    _Option((FSYNC,), (FSYNC,), kind="flag"),
    _Option((TIMEOUT,), (TIMEOUT,), kind="number"),
    _Option((CONNECT_TIMEOUT,), (CONNECT_TIMEOUT,), kind="number"),
    _Option((RETRIES,), (RETRIES,), kind="number"),
    _Option((CLIENT,), (CLIENT,), kind="client"),
)

_S3 = (
    _Option(
        ("key",),
        ("spark.indextables.aws.accessKey", "fs.s3a.access.key"),
        ("AWS_ACCESS_KEY_ID",),
        unit="credentials",
    ),
    _Option(
        ("secret",),
        ("spark.indextables.aws.secretKey", "fs.s3a.secret.key"),
        ("AWS_SECRET_ACCESS_KEY",),
        unit="credentials",
    ),
    _Option(
        ("token",),
        ("spark.indextables.aws.sessionToken", "fs.s3a.session.token"),
        ("AWS_SESSION_TOKEN",),
        unit="credentials",
    ),
    _Option(
        ("endpoint_url",),
        ("spark.indextables.s3.endpoint", "fs.s3a.endpoint"),
        ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
        kind="endpoint",
    ),
    _Option(
        ("client_kwargs", "region_name"),
        ("spark.indextables.aws.region", "spark.indextables.s3.region", "fs.s3a.endpoint.region"),
        ("AWS_REGION", "AWS_DEFAULT_REGION"),
    ),
    _Option(
        ("config_kwargs", "s3", "addressing_style"),
        ("spark.indextables.s3.pathStyleAccess", "fs.s3a.path.style.access"),
        kind="path_style",
    ),
    _Option(("anon",), ("spark.indextables.s3.anonymous",), kind="flag"),
)

_GS = (
    _Option(
        ("project",),
        ("spark.indextables.gcs.projectId", "spark.indextables.gcs.project"),
        ("GOOGLE_CLOUD_PROJECT",),
    ),
    _Option(
        ("token",),
        ("spark.indextables.gcs.serviceAccountKeyFile", "spark.indextables.gcs.token"),
    ),
    _Option(
        ("endpoint_url",),
        ("spark.indextables.gcs.endpoint",),
        kind="endpoint",
    ),
)

_AZ = (
    _Option(
        ("account_name",),
        ("spark.indextables.azure.accountName",),
        ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"),
    ),
    _Option(
        ("account_key",),
        ("spark.indextables.azure.accountKey",),
        ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"),
        unit="credentials",
    ),
    _Option(
        ("sas_token",),
        ("spark.indextables.azure.sasToken",),
        ("AZURE_STORAGE_SAS_TOKEN",),
        unit="credentials",
    ),
    _Option(
        ("connection_string",),
        ("spark.indextables.azure.connectionString",),
        ("AZURE_STORAGE_CONNECTION_STRING",),
        unit="credentials",
    ),
    _Option(
        ("tenant_id",),
        ("spark.indextables.azure.tenantId",),
        ("AZURE_TENANT_ID", "AZURE_STORAGE_TENANT_ID"),
        unit="credentials",
    ),
    _Option(
        ("client_id",),
        ("spark.indextables.azure.clientId",),
        ("AZURE_CLIENT_ID", "AZURE_STORAGE_CLIENT_ID"),
        unit="credentials",
    ),
    _Option(
        ("client_secret",),
        ("spark.indextables.azure.clientSecret",),
        ("AZURE_CLIENT_SECRET", "AZURE_STORAGE_CLIENT_SECRET"),
        unit="credentials",
    ),
    _Option(("endpoint",), ("spark.indextables.azure.endpoint",), kind="endpoint"),
)

_TABLES: dict[str, tuple[_Option, ...]] = {
    "s3": _ANY + _S3,
    "gs": _ANY + _GS,
    "az": _ANY + _AZ,
    "file": _ANY,
    "memory": _ANY,
}


def _check_root(uri: str) -> None:
    """A table's path is text that every store can spell."""
    if not is_text(uri) or "\0" in uri:
        raise ConfigError(
            f"{uri!r} cannot be the path of a table",
            hint="Give a str of valid Unicode without NUL; str(path) of a pathlib.Path",
        )


def scheme_of(uri: str) -> str:
    """The canonical scheme: ``file`` for plain paths, ``s3`` for ``s3a://`` and so on."""
    _check_root(uri)
    match = _SCHEME.match(uri)
    if match is None:
        return "file"
    scheme = match[1].lower()
    return _ALIASES.get(scheme, scheme)


def resolve_options(
    uri: str,
    storage_options: Mapping[str, Any] | None = None,
    config: Config | Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Options of the client library behind ``uri``; see the module's docstring for the order."""
    table = _TABLES.get(scheme_of(uri), _ANY)
    given = dict(storage_options or {})
    raw = {name: value for name, value in given.items() if not name.lower().startswith(OURS)}
    sources = [
        _with_raw(_pick_keys(table, given), table, raw),
        _pick_keys(table, _spelled_out(config)),
        _pick_environment(table, os.environ if environ is None else environ),
    ]
    return _merge(raw, table, sources)


def _spelled_out(config: Config | Mapping[str, Any] | None) -> dict[str, Any]:
    """Configuration by full key; a ``Config`` holds short keys, and only what was given counts."""
    given = config.raw() if isinstance(config, Config) else (config or {})
    return {
        name if name.lower().startswith(OURS) else PREFIX + name: value
        for name, value in given.items()
    }


def flag(value: object, name: str) -> bool:
    """A boolean option as people write it."""
    text = str(value).strip().lower()
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ConfigError(f"option '{name}' is not a boolean: {value!r}", hint="Use true or false")


def _number(value: object, name: str) -> float:
    try:
        number = float(str(value))
    except ValueError:
        number = -1.0
    if not 0 < number < 1e9:
        raise ConfigError(f"option '{name}' is not a positive number: {value!r}")
    return number


def _client(value: object, name: str) -> str:
    text = str(value).strip().lower()
    if text not in CLIENTS:
        raise ConfigError(
            f"option '{name}' is not one of {', '.join(CLIENTS)}: {value!r}",
            hint=did_you_mean(text, CLIENTS),
        )
    return text


def _pick_keys(table: tuple[_Option, ...], given: Mapping[str, Any]) -> dict[_Option, Any]:
    lowered = {name.lower(): value for name, value in given.items() if value is not None}
    return _first(
        table, {option: [key.lower() for key in option.keys] for option in table}, lowered
    )


def _pick_environment(table: tuple[_Option, ...], environ: Mapping[str, str]) -> dict[_Option, Any]:
    present = {name: value for name, value in environ.items() if value}
    return _first(table, {option: list(option.environment) for option in table}, present)


def _first(
    table: tuple[_Option, ...], names: Mapping[_Option, list[str]], given: Mapping[str, Any]
) -> dict[_Option, Any]:
    picked = {}
    for option in table:
        for name in names[option]:
            if name in given:
                picked[option] = _convert(option, given[name], option.keys[0])
                break
    return picked


def _with_raw(
    picked: dict[_Option, Any], table: tuple[_Option, ...], raw: Mapping[str, Any]
) -> dict[_Option, Any]:
    for option in table:
        value = _dig(raw, option.target)
        if value is not None:
            picked[option] = value
    return picked


def _dig(options: Mapping[str, Any], target: tuple[str, ...]) -> Any:
    value: Any = options
    for name in target:
        if not isinstance(value, Mapping) or value.get(name) is None:
            return None
        value = value[name]
    return value


def _convert(option: _Option, value: Any, name: str) -> Any:
    if option.kind == "flag":
        return flag(value, name)
    if option.kind == "path_style":
        return "path" if flag(value, name) else "auto"
    if option.kind == "number":
        return _number(value, name)
    if option.kind == "client":
        return _client(value, name)
    if option.kind == "endpoint" and "://" not in str(value):
        return f"https://{value}"
    return value


def _merge(
    raw: Mapping[str, Any], table: tuple[_Option, ...], sources: list[dict[_Option, Any]]
) -> dict[str, Any]:
    merged: dict[str, Any] = {name: _copied(value) for name, value in raw.items()}
    owner: dict[str, int] = {}
    for rank, source in enumerate(sources):
        for option in source:
            if option.unit:
                owner.setdefault(option.unit, rank)
    for option in table:
        for rank, source in enumerate(sources):
            if option in source and owner.get(option.unit or "", rank) == rank:
                _plant(merged, option.target, source[option])
                break
    return merged


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _copied(item) for name, item in value.items()}
    return value


def _plant(options: dict[str, Any], target: tuple[str, ...], value: Any) -> None:
    for name in target[:-1]:
        options = options.setdefault(name, {})
    options[target[-1]] = value
