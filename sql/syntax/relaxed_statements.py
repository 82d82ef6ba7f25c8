"""Statements about relaxed logs, as the parser hands them on."""

from __future__ import annotations

from .names import ObjectName
from .statement import NamedStatement, Statement


class CreateRelaxedLog(NamedStatement):
    grammar = (
        "CREATE RELAXED LOG ^ name:relaxed_log FOR TABLE/TABLES "
        "( tables:(table,…) | tables:table,… )"
    )
    tables: tuple[ObjectName, ...]


class DropRelaxedLog(NamedStatement):
    grammar = "DROP RELAXED LOG if_exists:[IF EXISTS] ^ name:relaxed_log"
    if_exists: bool


class ShowRelaxedLogs(Statement):
    grammar = "SHOW RELAXED LOGS"


RelaxedStatement = CreateRelaxedLog | DropRelaxedLog
