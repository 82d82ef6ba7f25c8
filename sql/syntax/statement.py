"""What a statement is: a frozen value of named fields, and so is each part of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import dataclass_transform

from .names import ObjectName


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Syntax:
    """A part of a statement: each class is a frozen dataclass, whose fields are given by name."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True, kw_only=True)(cls)


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
