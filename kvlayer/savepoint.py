"""Savepoints: moments to which a transaction can go back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@runtime_checkable
class Restorable(Protocol):
    """A commit check with a state that savepoints bring back."""

    def mark(self) -> Callable[[], None]:
        """The state now, as what restores it."""
        ...


def marks(checks: Iterable[object]) -> tuple[Callable[[], None], ...]:
    """The functions that restore the present state of those of the checks that have one."""
    return tuple(check.mark() for check in checks if isinstance(check, Restorable))


@dataclass(frozen=True, slots=True)
class Savepoint:
    """A moment of one transaction, to which it can go back.

    What was written and locked since has a greater sequence. The rest is what the transaction kept
    of itself: how many values were written, and what its commit checks knew.
    """

    sequence: int
    write_count: int
    checks: tuple[Callable[[], None], ...]
    restore: tuple[Callable[[], None], ...]
