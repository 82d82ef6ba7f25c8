"""Statements and their parts: frozen values of named fields, with the grammar they are read by."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, dataclass_transform

from .names import ObjectName

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


def rows_of(family: type[Syntax]) -> Iterator[tuple[str, type[Syntax], Mapping[str, object]]]:
    """The lines of grammar of a class and of those below it, in the order of their declaration."""
    for kind in _DECLARED:
        if issubclass(kind, family) and "grammar" in kind.__dict__:
            for line in (kind.grammar,) if isinstance(kind.grammar, str) else kind.grammar:
                text, given = (line, {}) if isinstance(line, str) else line
                yield text, kind, given


class Statement(Syntax):
    """A statement."""


class NamedStatement(Statement):
    """A statement about what has a name, and where the name stands."""

    name: str
    position: int


class DropObjects(Statement):
    """DROP of tables, views, sequences or types."""

    names: tuple[ObjectName, ...]
    if_exists: bool
    cascade: bool = False
