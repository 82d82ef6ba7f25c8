"""Defaults: constants, and expressions that are drawn anew for each row.

5, 'x', 2 * 30                          a constant, which the descriptor holds
now(), gen_random_uuid(), nextval('s')  by Python, row by row
lower('X') || 'y', md5(random()::TEXT)  by DuckDB, for as many rows as a statement needs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from uuid import UUID

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column
from ...catalog.descriptors.enum_columns import enum_in
from ...catalog.values.column_types import FLOAT8, INT8, ColumnType, Datum, coerce
from ...catalog.values.errors import SQLError
from ...catalog.values.session_zone import zone_name
from ...catalog.values.type_kinds import TypeKind
from ...kvlayer.access import StoreAccess
from ..parse import parse_expression, text_of
from ..syntax.statement import at
from ..syntax.trees import position_of, walk
from .binder import refuse_sets
from .calls.client_functions import client_fact
from .calls.row_calls import COMPUTED, Generators, Request, ValueNeeded, draws
from .scalars import EPOCH, Bindings, NotNative, Scalar, Values, compile_scalar, evaluates

_ROWID_BITS = (1 << 15) - 1


class StoreGenerators:
    """Values from the store's own random numbers and clock."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._rowid = 0

    def uuid(self) -> UUID:
        return UUID(int=self._store.random.getrandbits(128), version=4)

    def random(self) -> float:
        return self._store.random.random()

    def ask(self, request: Request) -> object:
        raise ValueNeeded(request)

    def rowid(self) -> int:
        """The time in units of eight microseconds or so, and bits that tell nodes apart."""
        drawn = (self._store.clock.last & ~_ROWID_BITS) | self._store.random.getrandbits(15)
        self._rowid = max(self._rowid + 1, int(drawn))
        return self._rowid


def compile_default(tree: exp.Expr) -> Scalar:
    """The scalar of a DEFAULT clause. Raises SQLError for an expression that no default may be."""
    refuse_sets(tree, "DEFAULT expressions")
    for kind, sqlstate, message in _REFUSED:
        found = tree.find(kind)
        if found is not None:
            raise SQLError(sqlstate, message, position=position_of(found))
    generator = generator_of(tree)
    if generator is not None:
        return generator
    try:
        return compile_scalar(tree, {})
    except NotNative:
        request = COMPUTED, text_of(tree), None
        return Scalar(None, partial(_drawn, lambda g: g.ask(request)), False)


def computed(tree: exp.Expr) -> bool:
    """Whether it takes DuckDB to evaluate the default."""
    return generator_of(tree) is None and not evaluates(tree)


def volatile(tree: exp.Expr) -> bool:
    """Whether a default is stored as an expression: its value differs by row, statement or
    session, or only DuckDB computes it."""
    if tree.find(exp.CurrentTimestamp, exp.CurrentDate) is not None or draws(tree):
        return True
    if any(client_fact(node) for node in walk(tree)):
        return True
    return not evaluates(tree)


def with_default(column: Column, tree: exp.Expr) -> Column:
    """The column with a constant default, or one that is drawn for each row."""
    tree = _without_own_cast(tree, column.type)
    scalar = compile_default(tree)
    if volatile(tree):
        return replace(column, default_expression=text_of(tree))
    with at(position_of(tree)):
        datum = coerce(column.type, scalar.value(EPOCH), column=column.name)
    return replace(column, has_default=True, default=datum)


def _without_own_cast(tree: exp.Expr, type: ColumnType) -> exp.Expr:
    """A default less a cast of a text to the column's own enumeration, as pg_dump writes one."""
    enum = enum_in(type)
    if enum is None or not isinstance(tree, exp.Cast) or not isinstance(tree.this, exp.Literal):
        return tree
    name = tree.to.sql("postgres").replace('"', "").removesuffix("[]").rpartition(".")[2]
    return tree.this if name == enum.name else tree


def repeats(tree: exp.Expr) -> bool:
    """Whether an expression tells no time and draws nothing, so that its value stays the same."""
    if tree.find(exp.CurrentTimestamp, exp.CurrentDate) or any(map(generator_of, tree.walk())):
        return False
    return _CLOCKS.isdisjoint(call.name.lower() for call in tree.find_all(exp.Anonymous))


_CLOCKS = frozenset({"clock_timestamp", "statement_timestamp", "transaction_timestamp"})


def default_of(column: Column) -> Scalar:
    """Returns the value that an INSERT writes where it leaves the column out."""
    if column.default_expression is not None:
        return _compiled(column.default_expression, zone_name())
    datum = column.default
    return Scalar(None, lambda values, bindings: datum, True)


@lru_cache(1024)
def _compiled(expression: str, zone: str) -> Scalar:
    """Returns the scalar of a stored default, its constants read in the session's time `zone`."""
    return compile_default(parse_expression(expression))


def draw_defaults(columns: Sequence[Column], count: int, bindings: Bindings) -> list[list[Datum]]:
    """The values of so many rows by column. Each row draws its own, column by column, so that a
    default of currval() sees what the row's nextval() has drawn."""
    scalars = [default_of(column) for column in columns]
    values: list[list[Datum]] = [[] for _ in columns]
    try:
        for _ in range(count):
            for column, scalar, drawn in zip(columns, scalars, values, strict=True):
                drawn.append(coerce(column.type, scalar.evaluate((), bindings), column=column.name))
    except ValueNeeded as needed:
        needed.wanted = count - len(values[-1])
        raise
    return values


def generator_of(tree: exp.Expr) -> Scalar | None:
    """The scalar of a call that draws, of no sequence; None for any other expression."""
    name = ""
    if isinstance(tree, exp.Uuid):
        name = "gen_random_uuid"
    elif isinstance(tree, exp.Rand) and tree.this is None:
        name = "random"
    elif isinstance(tree, exp.Anonymous) and not tree.expressions:
        name = tree.name.lower()
    found = _GENERATORS.get(name)
    return None if found is None else Scalar(found[0], partial(_drawn, found[1]), False)


_GENERATORS: dict[str, tuple[ColumnType, Callable[[Generators], object]]] = {
    "gen_random_uuid": (ColumnType(TypeKind.UUID), lambda generators: generators.uuid()),
    "unique_rowid": (INT8, lambda generators: generators.rowid()),
    "random": (FLOAT8, lambda generators: generators.random()),
}


def _drawn(draw: Callable[[Generators], object], _: Values, bindings: Bindings) -> object:
    assert bindings.generators is not None, "a row is written without generators"
    return draw(bindings.generators)


_REFUSED: tuple[tuple[type[exp.Expr], str, str], ...] = (
    (exp.Query, "0A000", "cannot use subquery in DEFAULT expression"),
    (exp.Column, "0A000", "cannot use column reference in DEFAULT expression"),
    (exp.Parameter, "42P02", "a DEFAULT expression takes no parameters"),
)


def computed_given(name: str) -> SQLError:
    """Returns the error for a value that a statement gives to a computed column."""
    return SQLError(
        "428C9",
        f'cannot write directly to computed column "{name}"',
        hint="Leave the column out, or write DEFAULT.",
    )
