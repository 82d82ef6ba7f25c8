"""Statements about relaxed logs, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from .names import ObjectName


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRelaxedLog:
    name: str
    tables: tuple[ObjectName, ...]
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRelaxedLog:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True)
class ShowRelaxedLogs:
    """SHOW RELAXED LOGS."""


RelaxedStatement = CreateRelaxedLog | DropRelaxedLog
