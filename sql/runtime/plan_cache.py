"""Texts parsed and planned once.

A plan is good for the versions of the tables that it was made from; whoever runs it leases these
tables and compares. Parameters are not part of it.

Most statements are parsed and planned in less time than a slice of the loop takes. What may take
longer is known by the length of its text, and by the relations that it names: a view is as long as
its query, a star as wide as its table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...catalog.descriptors.temporary_schema import session_schema
from ...catalog.values.session_zone import UTC_NAME, zone_name
from ...kvlayer.fibre import in_slices
from ..analyze.binder import Relations
from ..parse import ParsedText, parse
from ..parse.pieces import SMALL_LENGTH, lengthy
from ..plan.needs import Needs
from ..plan.plans import Plan
from ..syntax.statements import Statement
from .shapes import give_slots, serves_shape, shape_of

V = TypeVar("V")

TEXTS_MAX = 1000
TEXT_LENGTH_MAX = 16 * 1024
"""Longer texts are loads in disguise, and come once."""


PLANS_MAX = 100
"""Plans of one text: statements, databases, zones, and sessions with temporary tables."""


class Prepared:
    """One text: its statements and, by statement and current database, their plans.

    Texts of one shape share statements and plans, and each has the numbers of its own in `slots`.
    """

    __slots__ = (
        "_needs", "_plans", "_template", "_text", "lengthy", "lengthy_trees", "parameter_count",
        "slots", "statements",
    )  # fmt: skip

    def __init__(self, parsed: ParsedText, *, lengthy: bool = False) -> None:
        self.lengthy = lengthy
        self.lengthy_trees = lengthy and not parsed.brief
        """Whether a walk over its trees may take longer than one step of the loop may."""
        self.statements: tuple[Statement, ...] = parsed.statements
        self.parameter_count = parsed.parameter_count
        self.slots: tuple[int, ...] = ()
        self._plans: dict[tuple[int, str], Plan] = {}
        self._needs: dict[tuple[int, str], Needs] = {}
        self._template: Template | None = None
        self._text = ""

    def takes(self, plan: Plan) -> bool:
        """Whether a plan of these statements is one for this text's numbers as well.

        If it is not, nobody will share the statements any more.
        """
        if self._template is None or serves_shape(plan):
            return True
        self._template.useful = False
        return False

    def own_statement(self) -> Statement:
        """The statement of a text that shares the plan of another text of its shape, with its
        own constants."""
        (statement,) = parse(self._text).statements
        return statement

    def plan(self, index: int, database: str) -> Plan | None:
        return self._plans.get((index, zoned(database)))

    def needs(self, index: int, database: str) -> Needs:
        """The privileges that the plan needs."""
        return self._needs[index, zoned(database)]

    def keep(self, index: int, database: str, plan: Plan, needs: Needs) -> None:
        key = index, zoned(database)
        if key not in self._plans and len(self._plans) >= PLANS_MAX:
            oldest = next(iter(self._plans))
            del self._plans[oldest]
            self._needs.pop(oldest, None)
        self._plans[key] = plan
        self._needs[key] = needs

    def forget(self, index: int, database: str) -> None:
        self._plans.pop((index, zoned(database)), None)


def zoned(database: str) -> str:
    """A database, the session's time zone, in which a plan's constants were read, and which
    temporary tables it has: what a plan of one text is kept by."""
    zone, own = zone_name(), session_schema()
    if own is not None and own.name:
        database = f"{database} {own.name} {own.changes}"
    return database if zone == UTC_NAME else f"{database} {zone}"


class TypedTexts:
    """Statements whose parameters have types, by text, declared types and database.

    What is kept is its maker's own (`sql.session.prepared`), who also knows whether it still holds.
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


class Template:
    """The statement of a shape, and whether a plan was found that all its texts can share."""

    __slots__ = ("prepared", "useful")

    def __init__(self, prepared: Prepared) -> None:
        self.prepared = prepared
        self.useful = True

    def of(self, text: str, numbers: tuple[int, ...]) -> Prepared:
        shared = self.prepared
        made = Prepared(ParsedText(shared.statements, 0), lengthy=shared.lengthy)
        made.slots = numbers
        made._plans, made._needs = shared._plans, shared._needs
        made._template, made._text = self, text
        return made


class PlanCache:
    """The texts that were prepared last, shared by a node's sessions."""

    def __init__(self) -> None:
        self.typed = TypedTexts()
        self._texts: dict[str, Prepared] = {}
        self._templates: dict[str, Template] = {}

    def knows(self, text: str) -> bool:
        """Whether the text is parsed already."""
        return text in self._texts

    async def prepared(self, text: str) -> Prepared:
        """`prepare`, with a long text in slices of the loop."""
        if text in self._texts:
            return self._texts[text]
        return await planned(lambda: self.prepare(text), lengthy=lengthy(text))

    async def reading(self, text: str) -> Prepared:
        """`read`, with a long text in slices of the loop."""
        if text in self._texts:
            return self._texts[text]
        return await planned(lambda: self.read(text), lengthy=lengthy(text))

    def prepare(self, text: str) -> Prepared:
        """The text's statements, to be run. Raises SQLError."""
        prepared = self._texts.get(text)
        if prepared is not None:
            return prepared
        shape = shape_of(text)
        if shape is None:
            return self.read(text)
        template = self._templates.get(shape.text)
        if template is None:
            parsed = parse(text)
            template = Template(Prepared(parsed, lengthy=lengthy(text)))
            single = len(parsed.statements) == 1
            template.useful = single and give_slots(parsed.statements[0], shape)
            _keep(self._templates, shape.text, template)
            if not template.useful:
                _keep(self._texts, text, template.prepared)
        return template.of(text, shape.numbers) if template.useful else self.read(text)

    def read(self, text: str) -> Prepared:
        """The text's statements as they are written, which no other text shares."""
        prepared = self._texts.get(text)
        if prepared is None:
            prepared = Prepared(parse(text), lengthy=lengthy(text))
            if len(text) <= TEXT_LENGTH_MAX:
                _keep(self._texts, text, prepared)
        return prepared


def _keep(kept: dict[str, V], text: str, value: V) -> None:
    if len(kept) >= TEXTS_MAX:
        del kept[next(iter(kept))]
    kept[text] = value


T = TypeVar("T")

_COLUMNS_SMALL = 200
"""Columns of all the tables of a statement that is planned in one step."""


async def planned(work: Callable[[], T], *, lengthy: bool) -> T:
    """Returns the result of `work`, run in slices of the loop where it is lengthy."""
    return await in_slices(work) if lengthy else work()


def lengthy_relations(relations: Relations) -> bool:
    """Whether what is named makes the plan of a short text long."""
    tables = relations.values()
    if any(table.view is not None and len(table.view.text) > SMALL_LENGTH for table in tables):
        return True
    return sum(len(table.visible_columns) for table in tables) > _COLUMNS_SMALL
