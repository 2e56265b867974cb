"""Which client library talks to a service.

obstore starts faster and costs less (``obstore``), the fsspec clients know more ways to find
credentials and have more options. So ``storage.client = auto`` takes obstore where it is installed
and certainly does the same as the other: all options are ones it knows, and credentials and region
(or endpoint) were given, as options or in the environment. Shared profiles, single sign-on,
discovery of a bucket's region and every raw option of s3fs or adlfs mean the fsspec client.

``obstore`` insists, and says what stands in the way; ``fsspec`` never uses it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from typing import Any

from indextables.errors import ConfigError, UnsupportedStoreError
from indextables.storage.client_options import CLIENT, OURS

QUICK = {
    "s3": "indextables.storage.obstore:ObstoreS3Store",
    "az": "indextables.storage.obstore:ObstoreAzureStore",
}
_KNOWN: dict[str, frozenset[str]] = {
    "s3": frozenset(
        (
            "key",
            "secret",
            "token",
            "endpoint_url",
            "anon",
            "client_kwargs.region_name",
            "config_kwargs.s3.addressing_style",
        )
    ),
    "az": frozenset(("account_name", "account_key", "sas_token", "endpoint")),
}
_SERVED = ("AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
"""Credentials that a server hands out and obstore renews by itself."""
_FOREIGN = {
    "s3": re.compile(r"AWS_(ENDPOINT|S3_EXPRESS|REQUEST_PAYER|SSE_.*|SERVER_SIDE_ENCRYPTION)"),
    "az": re.compile(r"AZURE_(\w*ENDPOINT|\w*USE_\w+|STORAGE_TOKEN)"),
}
"""Variables that obstore follows and the other client does not."""


def uses_obstore(scheme: str, options: Mapping[str, Any]) -> bool:
    """Whether obstore serves a store with these resolved options."""
    asked = options.get(CLIENT, "auto")
    if asked == "fsspec":
        return False
    installed = find_spec("obstore") is not None
    why_not = _why_not(scheme, options)
    if asked == "auto":
        return installed and why_not is None
    if not installed:
        raise UnsupportedStoreError(
            "storage.client is obstore, which is not installed", hint="pip install obstore"
        )
    if why_not is not None:
        raise ConfigError(
            f"storage.client is obstore, but {why_not}",
            hint="Set spark.indextables.storage.client to auto, or change that",
        )
    return True


def _why_not(scheme: str, options: Mapping[str, Any]) -> str | None:
    unknown = sorted(set(_names(options)) - _KNOWN[scheme])
    if unknown:
        return f"it has no option {unknown[0]!r}"
    foreign = [name for name in os.environ if _FOREIGN[scheme].fullmatch(name)]
    if foreign:
        return f"it would follow the variable {foreign[0]}, as no other client does"
    return _lacking_s3(options) if scheme == "s3" else _lacking_azure(options)


def _lacking_s3(options: Mapping[str, Any]) -> str | None:
    served = any(os.environ.get(name) for name in _SERVED)
    if not ((options.get("key") and options.get("secret")) or options.get("anon") or served):
        return "no credentials were given"
    region = options.get("client_kwargs", {}).get("region_name")
    return None if region or options.get("endpoint_url") else "no region was given"


def _lacking_azure(options: Mapping[str, Any]) -> str | None:
    if not options.get("account_name"):
        return "no account was given"
    given = options.get("account_key") or options.get("sas_token")
    return None if given else "no credentials were given"


def _names(options: Mapping[str, Any], inside: str = "") -> Iterable[str]:
    for name, value in options.items():
        if name.lower().startswith(OURS):
            continue
        if isinstance(value, Mapping):
            yield from _names(value, f"{inside}{name}.")
        else:
            yield inside + name
