"""Statements that keep a PostgreSQL in shape, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .names import ObjectName


class Chore(Enum):
    """A maintenance command. The value is the command tag."""

    VACUUM = "VACUUM"
    ANALYZE = "ANALYZE"
    LOCK = "LOCK TABLE"


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintain:
    """A chore that has nothing to do here, and the tables that it names."""

    chore: Chore
    tables: tuple[ObjectName, ...]
