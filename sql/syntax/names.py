"""Names, types, options and moments as statements write them."""

from __future__ import annotations

from dataclasses import dataclass

from ...catalog.values.column_types import ColumnType


@dataclass(frozen=True, slots=True)
class ObjectName:
    """`table`, `schema.table`, `database.table` or `database.schema.table`, case folded."""

    parts: tuple[str, ...]
    position: int

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type as written: `numeric(10, 2)` is `TypeName("numeric", (10, 2))`."""

    name: str
    arguments: tuple[int, ...]
    position: int

    def __str__(self) -> str:
        if not self.arguments:
            return self.name
        return f"{self.name}({', '.join(map(str, self.arguments))})"


@dataclass(frozen=True, slots=True)
class UserTypeName(TypeName):
    """A type that a user made, found behind its name."""

    resolved: ColumnType


@dataclass(frozen=True, slots=True)
class Option:
    """`name` or `name = value` of a WITH or SET list. The value is its text."""

    name: str
    value: str | None
    position: int


@dataclass(frozen=True, slots=True)
class AsOf:
    """The time of AS OF SYSTEM TIME: the text of a literal, the number of a parameter, or the name
    of a function."""

    literal: str | None
    parameter: int | None
    position: int
    function: str | None = None
