"""Texts parsed and planned once.

A plan is good for the versions of the tables that it was made from; whoever runs it leases these
tables and compares. Parameters are not part of it.
"""

from __future__ import annotations

from .needs import Needs
from .parser import ParsedText, parse
from .parser.statements import Statement
from .plans import Plan

TEXTS_MAX = 1000
TEXT_LENGTH_MAX = 16 * 1024
"""Longer texts are loads in disguise, and come once."""


class Prepared:
    """One text: its statements and, by statement and current database, their plans."""

    __slots__ = ("_needs", "_plans", "parameter_count", "statements")

    def __init__(self, parsed: ParsedText) -> None:
        self.statements: tuple[Statement, ...] = parsed.statements
        self.parameter_count = parsed.parameter_count
        self._plans: dict[tuple[int, str], Plan] = {}
        self._needs: dict[tuple[int, str], Needs] = {}

    def plan(self, index: int, database: str) -> Plan | None:
        return self._plans.get((index, database))

    def needs(self, index: int, database: str) -> Needs:
        """The privileges that the plan needs."""
        return self._needs[index, database]

    def keep(self, index: int, database: str, plan: Plan, needs: Needs) -> None:
        self._plans[index, database] = plan
        self._needs[index, database] = needs

    def forget(self, index: int, database: str) -> None:
        self._plans.pop((index, database), None)


class TypedTexts:
    """Statements whose parameters have types, by text, declared types and database.

    What is kept is its maker's own (`sql.prepared`), who also knows whether it still holds.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[str, tuple[object, ...], str], object] = {}

    def find(self, key: tuple[str, tuple[object, ...], str]) -> object | None:
        return self._kept.get(key)

    def keep(self, key: tuple[str, tuple[object, ...], str], statement: object) -> None:
        if len(key[0]) > TEXT_LENGTH_MAX:
            return
        if key not in self._kept and len(self._kept) >= TEXTS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = statement


class PlanCache:
    """The texts that were prepared last, shared by a node's sessions."""

    def __init__(self) -> None:
        self.typed = TypedTexts()
        self._texts: dict[str, Prepared] = {}

    def prepare(self, text: str) -> Prepared:
        """The text's statements. Raises SQLError."""
        prepared = self._texts.get(text)
        if prepared is not None:
            return prepared
        prepared = Prepared(parse(text))
        if len(text) <= TEXT_LENGTH_MAX:
            if len(self._texts) >= TEXTS_MAX:
                del self._texts[next(iter(self._texts))]
            self._texts[text] = prepared
        return prepared
