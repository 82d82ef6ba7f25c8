"""Defaults that are drawn anew for each row: gen_random_uuid(), unique_rowid(), now() and so on."""

from __future__ import annotations

from uuid import UUID

from sqlglot import exp

from ..catalog.column_types import ColumnType
from ..catalog.descriptor import Column
from ..catalog.errors import SQLError
from ..catalog.type_kinds import TypeKind
from ..kvlayer.access import StoreAccess
from .parser import parse_expression, position_of, text_of
from .scalars import Bindings, Evaluator, NotNative, Scalar, Values, compile_scalar
from .sequence_calls import SequenceNeeded, draws

_ROWID_BITS = (1 << 15) - 1

_UUID = ColumnType(TypeKind.UUID)
_INT8 = ColumnType(TypeKind.INT8)


class StoreGenerators:
    """Values from the store's own random numbers and clock."""

    def __init__(self, store: StoreAccess) -> None:
        self._store = store
        self._rowid = 0

    def uuid(self) -> UUID:
        return UUID(int=self._store.random.getrandbits(128), version=4)

    def nextval(self, name: str) -> int:
        raise SequenceNeeded(name, draws=True)

    def currval(self, name: str) -> int:
        raise SequenceNeeded(name)

    def setval(self, name: str, value: int, called: bool) -> int:
        raise SequenceNeeded(name, set_to=(value, called))

    def lastval(self) -> int:
        raise SequenceNeeded("")

    def rowid(self) -> int:
        """The time in units of eight microseconds or so, and bits that tell nodes apart."""
        drawn = (self._store.clock.last & ~_ROWID_BITS) | self._store.random.getrandbits(15)
        self._rowid = max(self._rowid + 1, int(drawn))
        return self._rowid


def compile_default(tree: exp.Expr) -> Scalar:
    """The scalar of a DEFAULT clause. Raises SQLError 0A000 where it depends on a row, or is more
    than Python evaluates."""
    generator = _generator(tree)
    if generator is not None:
        return generator
    try:
        scalar = compile_scalar(tree, {})
    except NotNative:
        scalar = None
    if scalar is None or not scalar.constant or tree.find(exp.Parameter) is not None:
        raise SQLError(
            "0A000",
            f"a default cannot be {text_of(tree)}",
            position=position_of(tree),
            hint="It may be a constant, arithmetic on constants, now(), current_date, "
            "gen_random_uuid(), unique_rowid() or nextval('sequence').",
        )
    return scalar


def volatile(tree: exp.Expr) -> bool:
    """Whether the default is another one for each row, or each statement."""
    found = tree.find(exp.CurrentTimestamp, exp.CurrentDate)
    return found is not None or draws(tree) or _generator(tree) is not None


def default_of(column: Column) -> Scalar:
    """What an INSERT that leaves the column out writes."""
    if column.default_expression is not None:
        return compile_default(parse_expression(column.default_expression))
    datum = column.default
    return Scalar(None, lambda values, bindings: datum, True)


def _generator(tree: exp.Expr) -> Scalar | None:
    match tree:
        case exp.Uuid():
            return Scalar(_UUID, _draw_uuid, False)
        case exp.Anonymous() if not tree.expressions:
            generators: dict[str, tuple[ColumnType, Evaluator]] = {
                "gen_random_uuid": (_UUID, _draw_uuid),
                "unique_rowid": (_INT8, _draw_rowid),
            }
            found = generators.get(tree.name.lower())
            return None if found is None else Scalar(*found, False)
    return None


def _draw_uuid(_: Values, bindings: Bindings) -> UUID:
    assert bindings.generators is not None, "a row is written without generators"
    return bindings.generators.uuid()


def _draw_rowid(_: Values, bindings: Bindings) -> int:
    assert bindings.generators is not None, "a row is written without generators"
    return bindings.generators.rowid()


def computed_given(name: str) -> SQLError:
    """What is told of a value for a computed column."""
    return SQLError(
        "428C9",
        f'cannot write directly to computed column "{name}"',
        hint="Leave the column out, or write DEFAULT.",
    )
