"""How often work gives way."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import TypeVar

from tailrace.kvlayer.process.fibre import Fibre

T = TypeVar("T")


def run_in_least_slices(work: Callable[[], T]) -> tuple[int, T]:
    """Returns the number of slices, and the outcome, of work that ends a slice wherever it may: by
    a clock that runs on."""
    fibre = Fibre(work, clock=count().__next__)
    slices = 1
    while not fibre.run_slice():
        slices += 1
    return slices, fibre.result()
