"""No secret in any repr, log line or error.

Two nets: exact values (a store hands over every secret it was given) and shapes (a client library
may quote what we never saw: signed URLs, connection strings, authorisation headers, key ids).
Text is cleaned before it enters an exception; a client's exception is chained to ours only when
nothing in its whole chain had to be cleaned.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MASK = "***"

_SECRET_NAME = re.compile(
    r"(?i)(secret|token(?!i[sz]|[._-]?length)|password|passwd|credential|signature|private|sas"
    r"|connection_?string"
    r"|(?:access|account|auth|api|storage|sse|encryption)[._-]?key|^key$|(?<![a-z])sig(?![a-z]))"
)
_NAMED = re.compile(
    r"""(?ix)
    (["']?[\w.-]*
      (?:secret[\w.-]*|token|password|passwd|credential|signature|sig|private_key|sas
         |(?:access|account|auth|api)[._-]?key(?:[._-]?id)?|sharedaccesskey)
     ["']?\s*[=:]\s*)
    (?: "[^"]*" | '[^']*' | [^\s"'&;,}\)\]<>]+ )
    """
)
_HEADER = re.compile(
    r"(?i)((?:authorization|x-amz-security-token)[\"']?\s*[:=]\s*[\"']?)[^\"'\r\n]+"
)
_BEARER = re.compile(r"(?i)\b(bearer|basic|sharedkey)\s+[\w.:+/=-]{6,}")
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{12,}\b")
_USERINFO = re.compile(r"(?i)\b([a-z][a-z0-9+.-]*://)[^/@\s:]+:(?!\d+/)[^@\s]+@")
_TAG = re.compile(r"(?i)<(AWSAccessKeyId|StringToSign\w*|Signature\w*)>.*?</\1>", re.DOTALL)


def is_secret_name(name: str) -> bool:
    """Whether an option of that name holds a secret."""
    return bool(_SECRET_NAME.search(name)) and not name.lower().endswith(("file", "anon"))


def secrets_of(options: Mapping[str, Any]) -> frozenset[str]:
    """Every secret string in (nested) options, for exact replacement."""
    return frozenset(_walk_secrets(options, inside=False))


def _walk_secrets(value: Any, inside: bool) -> Iterator[str]:
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk_secrets(item, inside or is_secret_name(str(name)))
    elif isinstance(value, (list, tuple, set, frozenset)):
        for item in value:
            yield from _walk_secrets(item, inside)
    elif isinstance(value, bytes):
        yield from _walk_secrets(value.decode("utf-8", "replace"), inside)
    elif inside and isinstance(value, str) and len(value) >= 4:
        yield value


def redact(value: object, secrets: Iterable[str] = ()) -> str:
    """Text of any value with every secret replaced by ``***``."""
    text = _masked_mapping(value) if isinstance(value, Mapping) else str(value)
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    text = _USERINFO.sub(rf"\1{MASK}@", text)
    text = _TAG.sub(rf"<\1>{MASK}</\1>", text)
    text = _HEADER.sub(rf"\g<1>{MASK}", text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    text = _NAMED.sub(rf"\g<1>{MASK}", text)
    return _KEY_ID.sub(MASK, text)


def _masked_mapping(options: Mapping[Any, Any]) -> str:
    shown = []
    for name, item in options.items():
        if is_secret_name(str(name)):
            text = f"'{MASK}'"
        elif isinstance(item, Mapping):
            text = _masked_mapping(item)
        else:
            text = repr(item)
        shown.append(f"{name!r}: {text}")
    return "{" + ", ".join(shown) + "}"


def is_clean(error: BaseException, secrets: Iterable[str]) -> bool:
    """Whether no text in the whole chain of an exception would need redaction."""
    known = list(secrets)
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        current = waiting.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        for text in (str(current), repr(current)):
            if redact(text, known) != text:
                return False
        waiting += (current.__cause__, current.__context__)
    return True
