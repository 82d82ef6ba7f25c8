"""The time of AS OF SYSTEM TIME, as written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AsOf:
    """The text of a literal, the number of a parameter, or the name of a function."""

    literal: str | None
    parameter: int | None
    position: int
    function: str | None = None
