"""Which keys of a table a WHERE clause allows.

Equalities and IN lists on the first columns of the primary key, then at most one range on the next:

    PRIMARY KEY (a, b, c)
    a = 1 AND b IN (2, 3) AND c = 4      two keys
    a = 1 AND b > 2                      one span: the prefix (1), after the last key of b = 2
    b = 2                                nothing: the key does not begin with it

The predicates themselves are still tested on every row that is found, so an access may be wider
than its clause; it is never narrower. A range on a FLOAT8 column is not used, because NaN sorts
below all floats in keys and above all of them in comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from itertools import product

from ..catalog.column_types import ColumnType, Datum, round_decimal
from ..catalog.descriptor import TableDescriptor
from ..catalog.errors import SQLError
from ..catalog.key_encoding import KeyEncoding
from ..catalog.physical import physical_of
from ..catalog.type_kinds import FLOATS, TypeKind
from ..kvlayer.keys import index_prefix
from ..kvlayer.span import Span, prefix_end
from .predicates import Comparator, Comparison, Membership, Predicate
from .scalars import Bindings, Scalar

PREFIXES_MAX = 1000
"""A product of IN lists beyond this is read as one span and filtered."""


@dataclass(frozen=True, slots=True)
class Bound:
    constant: Scalar
    inclusive: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAccess:
    """`alternatives[i]` are the constants allowed for the i-th column of the key.

    `encoding` is that of the key's columns which have alternatives.
    """

    descriptor: TableDescriptor
    encoding: KeyEncoding
    alternatives: tuple[tuple[Scalar, ...], ...]
    lower: Bound | None
    upper: Bound | None

    @property
    def points(self) -> bool:
        """Whether the whole key is fixed."""
        return len(self.alternatives) == len(self.descriptor.primary_key)

    @property
    def restricts(self) -> bool:
        return bool(self.alternatives) or self.lower is not None or self.upper is not None

    @property
    def fixed_columns(self) -> int:
        """How many columns of the key have one value only."""
        count = 0
        for constants in self.alternatives:
            if len(constants) != 1:
                break
            count += 1
        return count

    def keys(self, bindings: Bindings) -> list[bytes]:
        """The keys, ascending, each once. Only where the whole key is fixed."""
        assert self.points, self
        return sorted(set(self._prefixes(bindings)))

    def spans(self, bindings: Bindings) -> list[Span]:
        """The spans, ascending and disjoint; none where no key can match."""
        spans = []
        for prefix in sorted(set(self._prefixes(bindings))):
            span = self._span(prefix, bindings)
            if span is not None:
                spans.append(span)
        return spans

    def _prefixes(self, bindings: Bindings) -> list[bytes]:
        encoding = self.encoding
        columns = [
            [
                value
                for constant in constants
                if (value := _exact(column.type, constant.value(bindings))) is not None
            ]
            for column, constants in zip(
                self.descriptor.key_columns, self.alternatives, strict=False
            )
        ]
        return [
            encoding.encode([physical_of(value) for value in values])
            for values in product(*columns)
        ]

    def _span(self, prefix: bytes, bindings: Bindings) -> Span | None:
        start, end = prefix, prefix_end(prefix)
        column = len(self.alternatives)
        if self.lower is not None:
            value = self.lower.constant.value(bindings)
            if value is None:
                return None
            part, exact = _part(self.descriptor, column, value, ROUND_FLOOR)
            inclusive = self.lower.inclusive or not exact
            start = prefix + part if inclusive else prefix_end(prefix + part)
        if self.upper is not None:
            value = self.upper.constant.value(bindings)
            if value is None:
                return None
            part, exact = _part(self.descriptor, column, value, ROUND_CEILING)
            inclusive = self.upper.inclusive or not exact
            end = prefix_end(prefix + part) if inclusive else prefix + part
        return Span(start, end) if start < end else None


def key_access(descriptor: TableDescriptor, predicates: Sequence[Predicate]) -> KeyAccess:
    """The narrowest access that the predicates allow."""
    places = {column.id: place for place, column in enumerate(descriptor.visible_columns)}
    alternatives: list[tuple[Scalar, ...]] = []
    lower = upper = None
    count = 1
    for column in descriptor.key_columns:
        place = places[column.id]
        constants = _constants(place, predicates)
        if constants is not None and count * len(constants) <= PREFIXES_MAX:
            alternatives.append(constants)
            count *= len(constants)
            continue
        if column.type.kind not in FLOATS:
            lower, upper = _bounds(place, predicates)
        break
    return KeyAccess(
        descriptor=descriptor,
        encoding=_encoding(descriptor, len(alternatives)),
        alternatives=tuple(alternatives),
        lower=lower,
        upper=upper,
    )


def _constants(place: int, predicates: Sequence[Predicate]) -> tuple[Scalar, ...] | None:
    """The least list of constants that the column must be one of."""
    found: tuple[Scalar, ...] | None = None
    for predicate in predicates:
        match predicate:
            case Comparison(column=column, comparator=Comparator.EQUAL) if column == place:
                return (predicate.constant,)
            case Membership(column=column, constants=constants) if column == place:
                if found is None or len(constants) < len(found):
                    found = constants
    return found


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


def _encoding(descriptor: TableDescriptor, columns: int) -> KeyEncoding:
    prefix = index_prefix(descriptor.id, descriptor.primary_index_id)
    return KeyEncoding(prefix, [column.type for column in descriptor.key_columns[:columns]])


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


def _part(
    descriptor: TableDescriptor, column: int, value: object, rounding: str
) -> tuple[bytes, bool]:
    """The encoding of one key column's value alone, and whether it is that value.

    A decimal that the column cannot hold is rounded, as far as its precision reaches: the span is
    wider then, never narrower.
    """
    type = descriptor.key_columns[column].type
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
    return KeyEncoding(b"", [type]).encode([physical_of(datum)]), exact
