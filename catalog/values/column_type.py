"""The type of a column: a kind with its parameters, and what it is called elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from .enum_type import EnumType
from .errors import SQLError
from .identifiers import quote_identifier
from .type_kinds import (
    ARROW_TYPES,
    BROAD,
    DUCKDB_NAMES,
    KEYLESS,
    SQL_NAMES,
    CatalogName,
    TypeKind,
    unknown_type,
)

QUOTE = "'"
DECIMAL_PRECISION_MAX = 38
DECIMAL_DEFAULT = (38, 9)
WIDTH_MAX = 10_485_760
"""Characters, as in PostgreSQL."""


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type with its parameters.

    Precision and scale are set for DECIMAL; for a time or a timestamp `precision` is the number of
    its fractional digits, where those are fewer than a microsecond has. `width`, in characters, is
    set for CHAR, and for a VARCHAR that has one; `element` for ARRAY, `enum` for ENUM, and each
    only for it. `catalog_name` is what pg_catalog calls the type where that is another one to
    clients: no table's column has it, and expressions are computed without it.

    A DECIMAL of which nobody said the digits is `bare`: it is stored and computed as DECIMAL(38,9),
    which as a type it equals, and takes no value that has more digits (`column_types.coerce`).
    """

    kind: TypeKind
    precision: int | None = None
    scale: int | None = None
    width: int | None = None
    element: ColumnType | None = None
    enum: EnumType | None = None
    catalog_name: CatalogName | None = None
    bare: bool = field(default=False, compare=False)

    def __post_init__(self) -> None:
        assert (self.element is not None) == (self.kind is TypeKind.ARRAY), self
        assert (self.enum is not None) == (self.kind is TypeKind.ENUM), self
        self._check_width()
        if self.kind is not TypeKind.DECIMAL:
            assert self.precision is None or self.kind in _ROUNDED, self
            assert self.precision is None or 0 <= self.precision < _DIGITS_MAX, self
            assert self.scale is None, self
            return
        if self.precision is None:
            assert self.scale is None, self
            object.__setattr__(self, "precision", DECIMAL_DEFAULT[0])
            object.__setattr__(self, "scale", DECIMAL_DEFAULT[1])
            object.__setattr__(self, "bare", True)
        elif self.scale is None:
            object.__setattr__(self, "scale", 0)
        self._check_decimal()

    def __deepcopy__(self, memo: object) -> ColumnType:
        """The type itself, which never changes: trees that keep their types are copied often."""
        return self

    def _check_width(self) -> None:
        if self.kind is TypeKind.CHAR and self.width is None:
            object.__setattr__(self, "width", 1)
        if self.width is None:
            return
        assert self.kind in _SIZED, self
        if not 1 <= self.width <= WIDTH_MAX:
            raise SQLError(
                "22023",
                f"length {self.width} of type {self.kind.value} must be between 1 and {WIDTH_MAX}",
            )

    def _check_decimal(self) -> None:
        precision, scale = self.decimal
        if not 1 <= precision <= DECIMAL_PRECISION_MAX:
            raise SQLError("22023", f"DECIMAL precision {precision} must be between 1 and 38")
        if not 0 <= scale <= precision:
            raise SQLError(
                "22023", f"DECIMAL scale {scale} must be between 0 and the precision {precision}"
            )

    @property
    def decimal(self) -> tuple[int, int]:
        """Precision and scale of a DECIMAL."""
        assert self.precision is not None, self
        assert self.scale is not None, self
        return self.precision, self.scale

    @property
    def ordered(self) -> bool:
        """Whether keys may hold values of the type: their bytes sort as the values do."""
        return self.kind not in KEYLESS

    @property
    def sql_name(self) -> str:
        if self.catalog_name is not None:
            return self.catalog_name.value
        if self.element is not None:
            return f"{self.element.sql_name}[]"
        if self.enum is not None:
            return quote_identifier(self.enum.name)
        if self.kind is TypeKind.DECIMAL:
            return f"DECIMAL({self.precision},{self.scale})"
        parameter = self.width if self.precision is None else self.precision
        return str(self.kind.value) if parameter is None else f"{self.kind.value}({parameter})"

    @property
    def declared_name(self) -> str:
        """The type as CREATE TABLE says it: a bare DECIMAL has no digits there."""
        if self.element is not None:
            return f"{self.element.declared_name}[]"
        return str(self.kind.value) if self.bare else self.sql_name

    @property
    def broad(self) -> ColumnType:
        """The type that expressions with such a column are computed in."""
        if self.element is not None:
            return array_of(self.element.broad)
        if self.catalog_name is not None:
            return ColumnType(self.kind)
        if self.kind in _ROUNDED:
            return ColumnType(self.kind)
        kind = BROAD.get(self.kind)
        return self if kind is None else ColumnType(kind)

    def widens(self, other: ColumnType) -> bool:
        """Whether every text that `other` holds is one of this type as it is: it is longer."""
        if (
            self.kind not in (TypeKind.VARCHAR, TypeKind.STRING)
            or other.kind is not TypeKind.VARCHAR
        ):
            return False
        if self.width is None or other.width is None:
            return self.width is None
        return self.width >= other.width

    @property
    def in_catalog_only(self) -> bool:
        """Whether it is one of pg_catalog's, or an array of such."""
        return any(type and type.catalog_name for type in (self, self.element))

    @property
    def duckdb_name(self) -> str:
        if self.element is not None:
            return f"{self.element.duckdb_name}[]"
        if self.enum is not None:
            labels = ", ".join(f"'{label.replace(QUOTE, QUOTE * 2)}'" for label in self.enum.labels)
            return f"ENUM({labels})"
        if self.kind is TypeKind.DECIMAL:
            return self.sql_name
        return DUCKDB_NAMES[self.kind]

    @property
    def mirror_name(self) -> str:
        """DuckDB's name of the type in a mirror: labels are texts there, and may become more."""
        if self.element is not None:
            return f"{self.element.mirror_name}[]"
        return "VARCHAR" if self.enum is not None else self.duckdb_name

    @property
    def arrow_type(self) -> pa.DataType:
        if self.element is not None:
            return pa.list_(self.element.arrow_type)
        if self.kind is TypeKind.DECIMAL:
            return pa.decimal128(*self.decimal)
        return ARROW_TYPES[self.kind]

    @classmethod
    def from_sql(cls, name: str, arguments: Sequence[int] = ()) -> ColumnType:
        """The type that SQL calls `name`, in any case, with its arguments if it was given any.

        Raises SQLError: 42704 for a name that is no type, 0A000 for a type that exists elsewhere
        and not here, 22023 for arguments that it does not take.
        """
        words = " ".join(name.lower().split())
        if words.endswith("[]"):
            element = cls.from_sql(words.removesuffix("[]"), arguments)
            if element.element is not None:
                raise SQLError("0A000", "arrays of several dimensions are not supported")
            return array_of(element)
        kind = SQL_NAMES.get(words)
        if kind is None:
            raise unknown_type(name, words)
        if not arguments:
            return cls(kind)
        if kind is TypeKind.DECIMAL and len(arguments) <= 2:
            precision, *scale = arguments
            return cls(kind, precision, scale[0] if scale else None)
        if kind in _SIZED and len(arguments) == 1:
            return cls(kind, width=arguments[0])
        if kind in _ROUNDED and len(arguments) == 1:
            digits = arguments[0]
            return cls(kind, precision=digits if digits < _DIGITS_MAX else None)
        if kind is TypeKind.INTERVAL and tuple(arguments) == (_DIGITS_MAX,):
            return cls(kind)
        if words == "float" and len(arguments) == 1 and 25 <= arguments[0] <= 53:
            return cls(kind)
        shown = ", ".join(map(str, arguments))
        raise SQLError(
            "0A000",
            f"type {name.upper()}({shown}) is not supported",
            hint=f"Write {kind.value} without arguments.",
        )

    def __str__(self) -> str:
        return self.sql_name


def enum_of(enum: EnumType) -> ColumnType:
    return ColumnType(TypeKind.ENUM, enum=enum)


def array_of(element: ColumnType) -> ColumnType:
    return ColumnType(TypeKind.ARRAY, element=element)


_ROUNDED = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ, TypeKind.TIME)
_DIGITS_MAX = 6
"""Fractional digits of a microsecond: more of them are as many, as in PostgreSQL."""
_SIZED = (TypeKind.VARCHAR, TypeKind.CHAR)
