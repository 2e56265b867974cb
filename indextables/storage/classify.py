"""What an exception of a client library means.

The libraries disagree: a taken slot is ``FileExistsError`` on one server and ``OSError(22)`` on
another, a throttled request is ``OSError(16)``, an HTTP status hides in the cause of the cause.
So the chain is walked for an HTTP status or a known type, nearest first, and mapped to one
``Verdict``. What is not recognised is ``UNKNOWN``: for a conditional create that is ambiguous.
"""

from __future__ import annotations

import errno
import re
from enum import Enum

from indextables.storage.machine import chain, ran_out


class Verdict(Enum):
    MISSING = "nothing is there"
    EXISTS = "the condition of a create failed"
    OUT_OF_RANGE = "the object is shorter than the asked range"
    REFUSED = "definitely not done, and asking again will not help"
    MACHINE = "this machine ran out of descriptors, memory or space: perhaps done"
    TRANSIENT = "no answer, or one that may change: perhaps done"
    UNKNOWN = "an unexpected error: perhaps done"


_BY_STATUS = {
    400: Verdict.REFUSED,
    401: Verdict.REFUSED,
    403: Verdict.REFUSED,
    404: Verdict.MISSING,
    405: Verdict.REFUSED,
    411: Verdict.REFUSED,
    412: Verdict.EXISTS,
    413: Verdict.REFUSED,
    416: Verdict.OUT_OF_RANGE,
    501: Verdict.REFUSED,
}
_BY_CODE = {
    "PreconditionFailed": Verdict.EXISTS,
    "BlobAlreadyExists": Verdict.EXISTS,
    "RequestTimeout": Verdict.TRANSIENT,
    "InvalidRange": Verdict.OUT_OF_RANGE,
}
_NEVER_SENT = frozenset(
    (
        "ClientAuthenticationError",
        "CredentialRetrievalError",
        "CredentialUnavailableError",
        "DefaultCredentialsError",
        "InvalidURL",
        "NoCredentialsError",
        "NoRegionError",
        "ParamValidationError",
        "PartialCredentialsError",
        "ProfileNotFound",
        "RefreshError",
        "TokenRetrievalError",
    )
)
_CLIENTS = frozenset(
    (
        "aiobotocore",
        "aiohttp",
        "asyncio",
        "azure",
        "botocore",
        "gcsfs",
        "google",
        "obstore",
        "requests",
    )
)
_STATUS_IN_TEXT = re.compile(r"non-2xx status code: (\d{3})")
_CODE_IN_TEXT = re.compile(r"<Code>(\w+)</Code>")


def classify(error: BaseException) -> Verdict:
    """The verdict on an exception and its chain."""
    for current in chain(error):
        verdict = _of_one(current)
        if verdict is not None:
            return verdict
    return _by_origin(error)


def _of_one(error: BaseException) -> Verdict | None:
    if isinstance(error, FileNotFoundError):
        return Verdict.MISSING
    if isinstance(error, FileExistsError):
        return Verdict.EXISTS
    code, status = _service_answer(error)
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status is not None:
        return _BY_STATUS.get(status, Verdict.TRANSIENT)
    if type(error).__name__ in _NEVER_SENT:
        return Verdict.REFUSED
    if isinstance(error, OSError) and str(error).startswith("Forbidden:"):
        return Verdict.REFUSED
    return None


def _service_answer(error: BaseException) -> tuple[str, int | None]:
    """Error code and HTTP status, only from exceptions that carry a service's own answer.

    A broken answer is not an answer: the HTTP parser's exceptions also have a ``code`` of 400.
    """
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        return str(response.get("Error", {}).get("Code", "")), _as_status(status)
    name = f"{type(error).__module__}.{type(error).__name__}"
    if name == "gcsfs.retry.HttpError":
        return "", _as_status(getattr(error, "code", None))
    if name.startswith("obstore."):
        return _answer_in_text(str(error))
    if name.startswith("azure."):
        code = getattr(error, "error_code", "")
        status = _as_status(getattr(error, "status_code", None))
        return str(getattr(code, "value", code)), status
    return "", None


def _answer_in_text(text: str) -> tuple[str, int | None]:
    """obstore gives status and code as text only, and calls every 409 "exists"."""
    if "Wanted range starting at" in text:
        return "InvalidRange", None
    status, code = _STATUS_IN_TEXT.search(text), _CODE_IN_TEXT.search(text)
    return code[1] if code else "", _as_status(status[1]) if status else None


def _as_status(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isdigit() and 400 <= int(text) < 600 else None


def _by_origin(error: BaseException) -> Verdict:
    if any(map(ran_out, chain(error))):
        return Verdict.MACHINE
    for current in chain(error):
        if isinstance(current, PermissionError) or (
            isinstance(current, OSError) and current.errno in (errno.EACCES, errno.EPERM)
        ):
            return Verdict.REFUSED
        if isinstance(current, (OSError, TimeoutError)):
            return Verdict.TRANSIENT
        if type(current).__module__.partition(".")[0] in _CLIENTS:
            return Verdict.TRANSIENT
    return Verdict.UNKNOWN
