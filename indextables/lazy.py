"""A property that is computed once and may do I/O.

``functools.cached_property`` of Python 3.11 holds one lock for all instances of a class while it
computes, so the first reads of many splits would wait for each other. Here no thread waits: two
threads that ask at the same moment both compute, and one result stays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class lazily(Generic[T]):  # noqa: N801
    """``@lazily`` in the place of ``@cached_property``."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> lazily[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> T | lazily[T]:
        if instance is None:
            return self
        kept: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return kept
