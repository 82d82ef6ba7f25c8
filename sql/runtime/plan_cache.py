"""Texts parsed and planned once.

A plan is good for the versions of the tables that it was made from; whoever runs it leases these
tables and compares. Parameters are not part of it.

Most statements are parsed and planned in less time than a slice of the loop takes. What may take
longer is known by the length of its text, and by the relations that it names: a view is as long as
its query, a star as wide as its table.

Texts that differ in their numbers alone have one *shape*. Clients of the simple protocol write
their values into the text, so that no two texts are the same:

    SELECT abalance FROM accounts WHERE aid = 4711       shape   … WHERE aid = 0000
    SELECT abalance FROM accounts WHERE aid = 8150       shape   … WHERE aid = 0000

The first text of a shape is parsed, and its numbers become *slots*: in Python they are evaluated
to what the text at hand says. A number keeps its length in the shape, so what an error says of
positions is true of every text.

Only numbers that are values have slots (`sql.analyze.slots`). A statement with a number elsewhere
(LIMIT 10, ORDER BY 1, DECIMAL(8,2)) has a shape of its own, which is no use to others, and neither
is a DuckDB query with a number beside another type.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ...catalog.descriptors.temporary_schema import session_schema
from ...catalog.values.column_types import INT8_MAX
from ...catalog.values.session_zone import UTC_NAME, zone_name
from ...kvlayer.process.fibre import in_slices
from ..analyze.binder import Relations
from ..analyze.slots import give_slots
from ..parse import ParsedText, parse
from ..parse.pieces import SMALL_LENGTH, lengthy
from ..plan.needs import Needs
from ..plan.plans import DeletePlan, InsertPlan, Plan, SelectPlan, UpdatePlan
from ..syntax.statement import Statement

K = TypeVar("K")
V = TypeVar("V")

TEXTS_MAX = 1000
TEXT_LENGTH_MAX = 16 * 1024
"""Longer texts are loads in disguise, and come once."""

PLANS_MAX = 100
"""Plans of one text: statements, databases, zones, and sessions with temporary tables."""

KeptPlan = tuple[Plan, Needs]
"""A plan, and the privileges that it needs."""


class Prepared:
    """One text: its statements and, by statement and current database, their plans.

    Texts of one shape share statements and plans, and each has the numbers of its own in `slots`.
    """

    __slots__ = (
        "_plans", "_template", "_text", "lengthy", "lengthy_trees", "parameter_count",
        "slots", "statements",
    )  # fmt: skip

    def __init__(self, parsed: ParsedText, *, lengthy: bool = False) -> None:
        self.lengthy = lengthy
        self.lengthy_trees = lengthy and not parsed.brief
        """Whether a walk over its trees may take longer than one step of the loop may."""
        self.statements: tuple[Statement, ...] = parsed.statements
        self.parameter_count = parsed.parameter_count
        self.slots: tuple[int, ...] = ()
        self._plans: dict[tuple[int, str], KeptPlan] = {}
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

    def kept(self, index: int, database: str) -> KeptPlan | None:
        return self._plans.get((index, zoned(database)))

    def keep(self, index: int, database: str, plan: Plan, needs: Needs) -> None:
        key = index, zoned(database)
        if key not in self._plans and len(self._plans) >= PLANS_MAX:
            del self._plans[next(iter(self._plans))]
        self._plans[key] = plan, needs


def zoned(database: str) -> str:
    """A database, the session's time zone, in which a plan's constants were read, and which
    temporary tables it has: what a plan of one text is kept by."""
    zone, own = zone_name(), session_schema()
    if own is not None and own.name:
        database = f"{database} {own.name} {own.made}"
    return database if zone == UTC_NAME else f"{database} {zone}"


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
        made._plans = shared._plans
        made._template, made._text = self, text
        return made


TypedKey = tuple[str, tuple[object, ...], str]
"""A text, the types that are declared for its parameters, and the database (`zoned`)."""


class PlanCache:
    """The texts that were prepared last, shared by a node's sessions."""

    def __init__(self) -> None:
        self.typed: dict[TypedKey, object] = {}
        """Statements whose parameters have types. Each is its maker's own (`sql.session.prepared`),
        who also knows whether it still holds."""
        self._texts: dict[str, Prepared] = {}
        self._templates: dict[str, Template] = {}

    def keep_typed(self, key: TypedKey, statement: object) -> None:
        if len(key[0]) <= TEXT_LENGTH_MAX:
            _keep(self.typed, key, statement)

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
        shape = shape_of(text)
        if shape is None:
            return self.read(text)
        template = self._templates.get(shape.text)
        if template is None:
            parsed = parse(text)
            template = Template(Prepared(parsed, lengthy=lengthy(text)))
            single = len(parsed.statements) == 1
            template.useful = single and give_slots(parsed.statements[0], shape.starts)
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


def _keep(kept: dict[K, V], key: K, value: V) -> None:
    if key not in kept and len(kept) >= TEXTS_MAX:
        del kept[next(iter(kept))]
    kept[key] = value


T = TypeVar("T")

_COLUMNS_SMALL = 200
"""Columns of all the tables of a statement that is planned in one step."""

STEP_SECONDS = 0.001
"""The time by the loop's clock after which work in one step has the loop go on behind it. The first
texts of a kind are read, bound and planned in 8 ms together, which leaves no room for a scan."""


async def planned(work: Callable[[], T], *, lengthy: bool) -> T:
    """Returns the result of `work`, run in slices of the loop where it is lengthy, else in one step
    that ends with it where it took `STEP_SECONDS`."""
    if lengthy:
        return await in_slices(work)
    loop = asyncio.get_running_loop()
    began = loop.time()
    result = work()
    if loop.time() - began >= STEP_SECONDS:
        await asyncio.sleep(0)
    return result


def lengthy_relations(relations: Relations) -> bool:
    """Whether what is named makes the plan of a short text long."""
    tables = relations.values()
    if any(table.view is not None and len(table.view.text) > SMALL_LENGTH for table in tables):
        return True
    return sum(len(table.visible_columns) for table in tables) > _COLUMNS_SMALL


SHAPED_LENGTH_MAX = 1000
"""Longer texts are lists of values, hardly ever two of one length."""

_QUOTING = ("'", "$", "\\", "--", "/*")
"""Texts with these take a tokenizer to be understood, which costs a third of parsing them."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A text with zeros for the digits of its numbers; the numbers, and where they begin."""

    text: str
    numbers: tuple[int, ...]
    starts: tuple[int, ...]


_NAME_OR_WORD = re.compile(r'"[^"]*"|\w[\w.]*')


def shape_of(text: str) -> Shape | None:
    """The shape of a text, or None where it has none that is worth knowing."""
    if len(text) > SHAPED_LENGTH_MAX or any(mark in text for mark in _QUOTING):
        return None
    if text.count('"') % 2:
        return None  # a name without an end
    parts: list[str] = []
    numbers: list[int] = []
    starts: list[int] = []
    done = 0
    for found in _NAME_OR_WORD.finditer(text):
        word = found.group()
        if word.isdecimal() and word.isascii():
            number = int(word)
            if number > INT8_MAX:
                return None
            numbers.append(number)
            starts.append(found.start())
            parts += (text[done : found.start()], "0" * len(word))
            done = found.end()
        elif word[0].isdigit():
            return None  # 1.5, 1e3, 0x1F, or an error
    if not numbers:
        return None
    return Shape("".join([*parts, text[done:]]), tuple(numbers), tuple(starts))


def serves_shape(plan: Plan) -> bool:
    """Whether a plan is for every text of its shape: each number is a slot wherever it is used."""
    match plan:
        case SelectPlan(native=native, locking=None, drawn=None):
            points = native is not None and native.access.points
            return points or not plan.analytic.fixed
        case InsertPlan(query=query, conflict=conflict):
            return query is None and conflict is None
        case UpdatePlan(finder=finder) | DeletePlan(finder=finder):
            return finder.analytic is None or not finder.analytic.fixed
    return False
