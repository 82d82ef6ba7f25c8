"""`cached_property`, without the lock that Python 3.11 has in its own.

That lock is one for all instances of a class. Planning gives way on a stack of its own
(`kvlayer.process.fibre`): inside a property it would keep the lock while the loop goes on, and the
loop would wait for it for ever. Python 3.12 has no lock there either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801 - as functools calls it
    """A property that is computed once for an instance, and kept in its `__dict__`. Where two
    stacks compute it at once, both get a value, and the later one is kept."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object | None, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._compute(instance)
        return value
