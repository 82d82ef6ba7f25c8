"""Statements that keep a PostgreSQL in shape, as the parser hands them on."""

from __future__ import annotations

from enum import Enum

from .names import ObjectName
from .statement import Statement


class Chore(Enum):
    """A maintenance command. The value is the command tag."""

    VACUUM = "VACUUM"
    ANALYZE = "ANALYZE"
    LOCK = "LOCK TABLE"


class Maintain(Statement):
    """A chore that has nothing to do here, and the tables that it names."""

    chore: Chore
    tables: tuple[ObjectName, ...]
