from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol

Form = Literal["split", "xref"]

class _Writable(Protocol):
    def write(self, data: Any, /) -> Any: ...

class Bundle:
    files: dict[str, tuple[int, int]]
    form: str
    size: int
    @staticmethod
    def parse(buffer: Any) -> Bundle: ...
    @staticmethod
    def parse_footer(footer: Any, file_size: int) -> Bundle: ...
    @property
    def footer_range(self) -> tuple[int, int]: ...
    @property
    def hotcache(self) -> memoryview: ...
    def member(self, name: str) -> memoryview: ...

class BundleWriter:
    files: dict[str, dict[str, int]]
    position: int
    def __init__(self, file: _Writable, form: Form = "split") -> None: ...
    def add(self, name: str, data: Any) -> tuple[int, int]: ...
    def finish(self, hotcache: Any = b"", trailer: bool = False) -> tuple[int, int]: ...

def write_bundle(
    members: Mapping[str, Any] | Iterable[tuple[str, Any]],
    hotcache: Any = b"",
    form: Form = "split",
    trailer: bool = False,
) -> bytes: ...
