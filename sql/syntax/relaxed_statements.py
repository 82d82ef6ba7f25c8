"""Statements about relaxed logs, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import Statement


class CreateRelaxedLog(Statement):
    name: str
    tables: tuple[ObjectName, ...]
    position: int


class DropRelaxedLog(Statement):
    name: str
    if_exists: bool
    position: int


class ShowRelaxedLogs(Statement):
    """SHOW RELAXED LOGS."""


RelaxedStatement = CreateRelaxedLog | DropRelaxedLog
