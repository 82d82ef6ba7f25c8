"""The keys of an index that a WHERE clause allows, and the choice of the index.

Equalities and IN lists on the first columns of the key, then at most one range on the next:

    PRIMARY KEY (a, b, c)
    a = 1 AND b IN (2, 3) AND c = 4      two keys
    a = 1 AND b = ANY ($1) AND c = 4     a key for each element
    a = 1 AND b > 2                      one span: the prefix (1), after the last key of b = 2
    b = 2                                nothing: the key does not begin with it

A secondary index has a marker before each value, and NULLs before all values; its key goes on with
the primary key, unless it is unique:

    INDEX (b), the same primary key
    b = 2                                one span: the prefix (01 2)
    b = 2 AND a > 1                      one span of it
    b < 2                                one span, behind the NULLs
    b IS NULL                            one span: the prefix (00)

The predicates themselves are still tested on every row that is found, so an access may be wider
than its clause; it is never narrower. A range on a FLOAT8 column is not used, because NaN sorts
below all floats in keys and above all of them in comparisons.

There are no statistics, so what counts of several indexes is what a WHERE clause fixes, in this
order:

    one row a prefix        the whole primary key, or all columns of a unique index
    columns fixed           from the left, by equality, IN or IS NULL
    ends of a range         on the column behind those
    entries that suffice    an index that holds every column that is asked for
    the primary index       it takes no second read

An index is read only when it is public, in the version under which the statement runs: one that is
being built may lack rows, one that is going may soon. And only if its entries say the primary key,
which while that is being changed they may not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import product, takewhile
from math import prod

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.descriptors.elements import ElementState, Index, IndexKind
from ...catalog.rows.key_encoding import PartWriter, part_writer, parts_writer
from ...catalog.values.column_types import ColumnType, Datum, round_decimal
from ...catalog.values.errors import SQLError
from ...catalog.values.physical import physical_of
from ...catalog.values.type_kinds import FLOATS, TypeKind
from ...kvlayer.keys import index_prefix
from ...kvlayer.span import Span, prefix_end
from ..analyze.predicates import (
    LISTED,
    Comparator,
    Comparison,
    ElementOf,
    NullTest,
    Predicate,
    elements_of,
)
from ..analyze.scalars import Bindings, Scalar
from ..results.table_reads import Source

PREFIXES_MAX = 1000
"""A product of IN lists beyond this is read as one span and filtered."""

_NULL = b"\x00"
_VALUE = b"\x01"

Alternatives = tuple[Scalar | None] | Scalar
"""Values that a column of a key is compared with: one, which is None for IS NULL; or, not in a
tuple, an array whose elements are compared."""


class TooManyRows(Exception):
    """The rows are more than are worth being read one by one."""


@dataclass(frozen=True, slots=True)
class Bound:
    constant: Scalar
    inclusive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """`alternatives[i]` are the constants allowed for the i-th of the key's `columns`.

    `prefix` is how all keys of the index begin, and `writers` write the columns' parts.
    """

    descriptor: TableDescriptor
    index: Index
    columns: tuple[Column, ...]
    prefix: bytes
    writers: tuple[PartWriter, ...]
    alternatives: tuple[Alternatives, ...]
    lower: Bound | None
    upper: Bound | None

    secondary: bool = field(init=False)
    """Whether entries of an index are read, and not rows."""
    points: bool = field(init=False)
    """Whether the whole primary key is fixed."""
    lone: tuple[Scalar, ...] = field(init=False)
    """The values of the one key that is allowed; empty where there may be several."""

    def __post_init__(self) -> None:
        secondary = self.index.kind is IndexKind.SECONDARY
        points = not secondary and len(self.alternatives) == len(self.columns)
        object.__setattr__(self, "secondary", secondary)
        object.__setattr__(self, "points", points)
        lone: list[Scalar] = []
        for allowed in self.alternatives:
            match allowed:
                case (Scalar() as only,):
                    lone.append(only)
        whole = points and len(lone) == len(self.columns)
        object.__setattr__(self, "lone", tuple(lone) if whole else ())

    @property
    def unique(self) -> bool:
        """Whether each prefix that is allowed is of one row at most."""
        count = len(self.index.columns)
        fixed = self.alternatives[:count]
        return self.index.unique and len(fixed) == count and (None,) not in fixed

    def source(self, *, covered: bool) -> Source:
        """Returns the kind of read: of an index with its rows, where they are not `covered`."""
        if not self.secondary:
            return Source.SPANS
        return Source.INDEX if covered else Source.INDEX_JOIN

    @property
    def restricts(self) -> bool:
        return bool(self.alternatives) or self.bounds > 0

    @property
    def bounds(self) -> int:
        """The number of ends of the range."""
        return (self.lower is not None) + (self.upper is not None)

    @property
    def fixed_columns(self) -> int:
        """The number of the key's columns that have one value only."""
        return len(list(takewhile(lambda part: isinstance(part, tuple), self.alternatives)))

    def holds(self, column_ids: Collection[int]) -> bool:
        """Whether the entries say these columns' values, so that no row need be read."""
        return not self.secondary or held_columns(self.descriptor, self.index) >= set(column_ids)

    def answers(self, predicates: Sequence[Predicate]) -> bool:
        """Whether a row passes the predicates because its key is one of `keys`."""
        match predicates:
            case (ElementOf(column=place, type=type),) if type.kind in LISTED:
                pass
            case (Comparison(column=place, comparator=Comparator.EQUAL),):
                if self.descriptor.visible_columns[place].type.kind is not TypeKind.INT8:
                    return False  # equal keys are not equal values of every type
            case _:
                return False
        return self.points and self.columns == (self.descriptor.visible_columns[place],)

    def keys(self, bindings: Bindings) -> list[bytes]:
        """The keys, ascending, each once. Only where the whole primary key is fixed. Raises
        TooManyRows for arrays of more than PREFIXES_MAX elements."""
        assert self.points, self
        if self.lone:
            key = self._lone_key(bindings)
            return [] if key is None else [key]
        found = self._prefixes(bindings)
        return found if len(found) == 1 else sorted(set(found))

    def _lone_key(self, bindings: Bindings) -> bytes | None:
        """Returns the one key that is allowed; None where a row cannot have it."""
        key = self.prefix
        for column, write, constant in zip(self.columns, self.writers, self.lone, strict=True):
            part = self._part_of(column.type, write, constant.evaluate((), bindings))
            if part is None:
                return None
            key += part
        return key

    def spans(self, bindings: Bindings) -> list[Span]:
        """The spans, ascending and disjoint; none where no key can match. Raises TooManyRows for
        arrays of more than PREFIXES_MAX elements."""
        spans = []
        for prefix in sorted(set(self._prefixes(bindings))):
            span = self._span(prefix, bindings)
            if span is not None:
                spans.append(span)
        return spans

    def _prefixes(self, bindings: Bindings) -> list[bytes]:
        values = [_values(constants, bindings) for constants in self.alternatives]
        if prod(map(len, values)) > PREFIXES_MAX:
            raise TooManyRows
        parts = [
            self._parts_of(column.type, write, several)
            for column, write, several in zip(self.columns, self.writers, values, strict=False)
        ]
        prefix = self.prefix
        if len(parts) == 1:
            return [prefix + part for part in parts[0]]
        return [prefix + b"".join(chosen) for chosen in product(*parts)]

    def _parts_of(
        self, type: ColumnType, write: PartWriter, several: Sequence[object]
    ) -> Sequence[bytes]:
        if type.kind is TypeKind.INT8 and not self.secondary:  # stored as they are, none is NULL
            stored = [value for value in several if value is not None]
            if len(stored) == 1:
                return (write(stored[0]),)
            return parts_writer(type)(stored)
        parts = [self._part_of(type, write, value) for value in several]
        return [part for part in parts if part is not None]

    def _part_of(self, type: ColumnType, write: PartWriter, value: object) -> bytes | None:
        """Returns the key's encoding of a value; None where no value of the column equals it."""
        if value is _IS_NULL:
            return _NULL
        if type.kind is TypeKind.INT8 and value is not None:
            part = write(value)  # stored as it is
        elif (exact := _exact(type, value)) is not None:
            part = write(physical_of(type, exact))
        else:
            return None
        return _VALUE + part if self.secondary else part

    def _span(self, prefix: bytes, bindings: Bindings) -> Span | None:
        if not self.bounds:
            return Span(prefix, prefix_end(prefix))
        if self.secondary:
            prefix += _VALUE
        start, end = prefix, prefix_end(prefix)
        place = len(self.alternatives)
        type, write = self.columns[place].type, self.writers[place]
        for bound, rounding in ((self.lower, ROUND_FLOOR), (self.upper, ROUND_CEILING)):
            if bound is None:
                continue
            value = bound.constant.value(bindings)
            if value is None:
                return None
            part, exact = _part(type, write, value, rounding)
            inclusive, lower = bound.inclusive or not exact, bound is self.lower
            edge = prefix + part if inclusive is lower else prefix_end(prefix + part)
            start, end = (edge, end) if lower else (start, edge)
        return Span(start, end) if start < end else None


_IS_NULL = object()


def _values(constants: Alternatives, bindings: Bindings) -> Sequence[object]:
    if isinstance(constants, Scalar):
        return elements_of(constants, bindings)
    return [_IS_NULL if one is None else one.value(bindings) for one in constants]


def held_columns(descriptor: TableDescriptor, index: Index) -> frozenset[int]:
    """The columns whose values the entries of a secondary index hold."""
    row_key = descriptor.primary_key if index.suffix is None else index.suffix
    return frozenset((*index.columns, *index.storing, *row_key))


def key_access(
    descriptor: TableDescriptor, index: Index, predicates: Sequence[Predicate]
) -> KeyAccess:
    """The narrowest access by an index that the predicates allow."""
    columns = _key_columns(descriptor, index)
    places = {column.id: place for place, column in enumerate(descriptor.visible_columns)}
    secondary = index.kind is IndexKind.SECONDARY
    alternatives: list[Alternatives] = []
    lower = upper = None
    count = 1
    for column in columns:
        place = places[column.id]
        constants, length = _constants(place, predicates)
        if constants is None and secondary and NullTest(column=place, null=True) in predicates:
            constants = (None,)
        if constants is not None and count * length <= PREFIXES_MAX:
            alternatives.append(constants)
            count *= length
            continue
        if column.type.kind not in FLOATS:
            lower, upper = _bounds(place, predicates)
        break
    return KeyAccess(
        descriptor=descriptor,
        index=index,
        columns=columns,
        prefix=index_prefix(descriptor.id, index.id),
        writers=tuple(part_writer(column.type) for column in columns),
        alternatives=tuple(alternatives),
        lower=lower,
        upper=upper,
    )


def _key_columns(descriptor: TableDescriptor, index: Index) -> tuple[Column, ...]:
    """The columns of the keys of an index, in their order.

    Of a unique index that is its own alone: the primary key is only behind those with a NULL.
    """
    suffix: tuple[int, ...] = ()
    if not index.unique:
        suffix = descriptor.primary_key if index.suffix is None else index.suffix
    ids = (*index.columns, *(id for id in suffix if id not in index.columns))
    return tuple(descriptor.column_by_id(id) for id in ids)


def _constants(place: int, predicates: Sequence[Predicate]) -> tuple[Alternatives | None, int]:
    """The least list of constants that the column must be one of, or else an array; and how many
    they are, an array of unknown length being one."""
    found: tuple[Alternatives, int] | None = None
    array: Scalar | None = None
    for predicate in predicates:
        if predicate.column != place:
            continue
        match predicate:
            case Comparison(comparator=Comparator.EQUAL):
                return (predicate.constant,), 1
            case ElementOf(count=None):
                array = predicate.array
            case ElementOf(count=int() as count):
                if found is None or count < found[1]:
                    found = predicate.array, count
    return (array, 1) if found is None else found


_LOWER = {Comparator.GREATER: False, Comparator.GREATER_OR_EQUAL: True}
_UPPER = {Comparator.LESS: False, Comparator.LESS_OR_EQUAL: True}


def _bounds(place: int, predicates: Sequence[Predicate]) -> tuple[Bound | None, Bound | None]:
    """The first lower and the first upper bound of the column."""
    lower = upper = None
    for predicate in predicates:
        if not isinstance(predicate, Comparison) or predicate.column != place:
            continue
        if predicate.comparator in _LOWER and lower is None:
            lower = Bound(predicate.constant, _LOWER[predicate.comparator])
        if predicate.comparator in _UPPER and upper is None:
            upper = Bound(predicate.constant, _UPPER[predicate.comparator])
    return lower, upper


def _exact(type: ColumnType, value: object) -> Datum:
    """A constant as a key column can hold it; None where no value of the column equals it."""
    if type.kind is not TypeKind.DECIMAL or value is None:
        return value  # type: ignore[return-value]
    assert isinstance(value, Decimal), value
    try:
        rounded = round_decimal(type, value)
    except SQLError:
        return None
    return rounded if rounded == value else None


def _part(type: ColumnType, write: PartWriter, value: object, rounding: str) -> tuple[bytes, bool]:
    """The encoding of one key column's value alone, and whether it is that value.

    A decimal that the column cannot hold is rounded, as far as its precision reaches: the span is
    wider then, never narrower.
    """
    datum: Datum = value  # type: ignore[assignment]
    exact = True
    if isinstance(datum, Decimal):
        precision, scale = type.decimal
        greatest = Decimal((0, (9,) * precision, -scale))
        bounded = min(max(datum, -greatest), greatest)
        quantum = Decimal((0, (1,), -scale))
        rounded = bounded.quantize(quantum, context=Context(prec=precision + 1, rounding=rounding))
        rounded = min(max(rounded, -greatest), greatest)
        exact = rounded == datum
        datum = rounded
    return write(physical_of(type, datum)), exact


def best_access(
    descriptor: TableDescriptor, predicates: Sequence[Predicate], needed: Collection[int]
) -> KeyAccess:
    """The access that narrows most. `needed` are the ids of the columns that are asked for."""
    return ranked_accesses(descriptor, predicates, needed)[0]


def ranked_accesses(
    descriptor: TableDescriptor, predicates: Sequence[Predicate], needed: Collection[int]
) -> list[KeyAccess]:
    """An access by each index that may be read, the narrowest first."""
    indexes = [descriptor.primary_index, *readable_indexes(descriptor)]
    accesses = [key_access(descriptor, index, predicates) for index in indexes]
    return sorted(accesses, key=lambda access: _rank(access, needed), reverse=True)


def readable_indexes(descriptor: TableDescriptor) -> Iterator[Index]:
    """The secondary indexes in which every row is found, with its key."""
    key = set(descriptor.primary_key)
    visible = {column.id for column in descriptor.visible_columns}
    for index in descriptor.indexes:
        if (
            index.kind is IndexKind.SECONDARY
            and index.state is ElementState.PUBLIC
            and held_columns(descriptor, index) >= key
            and visible.issuperset(index.columns)
        ):
            yield index


def _rank(access: KeyAccess, needed: Collection[int]) -> tuple[object, ...]:
    return (
        access.unique,
        len(access.alternatives),
        access.bounds,
        access.holds(needed),
        not access.secondary,
    )
