"""Statements about relaxed logs, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import NamedStatement, Statement


class CreateRelaxedLog(NamedStatement):
    tables: tuple[ObjectName, ...]


class DropRelaxedLog(NamedStatement):
    if_exists: bool


class ShowRelaxedLogs(Statement):
    """SHOW RELAXED LOGS."""


RelaxedStatement = CreateRelaxedLog | DropRelaxedLog
