"""Statements and their parts: frozen values of named fields, with the grammar they are read by, and
the names, types, options and moments in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError

Line = str | tuple[str, Mapping[str, object]]
"""A line of grammar in the notation of `sql.parse.rules`, alone or with the fields that what it
reads does not give."""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Syntax:
    """A part of a statement: each class is a frozen dataclass, whose fields are given by name.

    `grammar` is what is read as one, a line or several, where nothing is computed of what is read.
    """

    grammar: ClassVar[str | tuple[Line, ...]] = ()

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)
        _DECLARED.append(cls)


_DECLARED: list[type[Syntax]] = []


def kinds_of(family: type[Syntax]) -> Iterator[type[Syntax]]:
    """A class and those below it, in the order of their declaration."""
    return (kind for kind in _DECLARED if issubclass(kind, family))


def rows_of(family: type[Syntax]) -> Iterator[tuple[str, type[Syntax], Mapping[str, object]]]:
    """The lines of grammar of a class and of those below it."""
    for kind in kinds_of(family):
        if "grammar" in kind.__dict__:
            for line in (kind.grammar,) if isinstance(kind.grammar, str) else kind.grammar:
                text, given = (line, {}) if isinstance(line, str) else line
                yield text, kind, given


class Statement(Syntax):
    """A statement."""


class NamedStatement(Statement):
    """A statement about what has a name, and where the name stands."""

    name: str
    position: int


class CatalogStatement(Statement):
    """A statement that writes to the catalog, feeds, users and rights among it."""


class DDL(CatalogStatement):
    """A statement about what there is: databases, schemas, keyspaces, and what is in them."""


class DropObjects(DDL):
    """DROP of tables, views, sequences or types."""

    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool = False


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
    """The time of AS OF SYSTEM TIME: the text of a literal, or the number of a parameter."""

    literal: str | None
    parameter: int | None
    position: int


@contextmanager
def at(position: int | None) -> Iterator[None]:
    """Gives the position to an error of its block that has none."""
    try:
        yield
    except SQLError as error:
        error.position = error.position or position
        raise


def refuse_twice(options: Iterable[Option], what: str = "option") -> None:
    """Raises SQLError 42601 where an option is given twice."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            message = f'{what} "{option.name}" specified more than once'
            raise SQLError("42601", message, position=option.position)
        seen.add(option.name)
