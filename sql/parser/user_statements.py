"""Statements about users, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    """`password` is None for none."""

    name: str
    password: str | None
    if_not_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUser:
    """Sets the password, or takes it away where it is None."""

    name: str
    password: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUser:
    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ShowUsers:
    pass


UserStatement = CreateUser | AlterUser | DropUser | ShowUsers
