"""Statements about users, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleOptions:
    """The options behind a role's name; None for one that is not given. `password_given` tells
    PASSWORD NULL from no PASSWORD. `granted` and `revoked` name system privileges, in capitals."""

    password: str | None = None
    password_given: bool = False
    login: bool | None = None
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    in_roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateUser:
    """CREATE USER, and CREATE ROLE, which may not log in unless it says so."""

    name: str
    options: RoleOptions
    if_not_exists: bool
    login: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterUser:
    name: str
    options: RoleOptions
    if_exists: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DropUser:
    names: tuple[str, ...]
    if_exists: bool


@dataclass(frozen=True, slots=True)
class ShowUsers:
    pass


UserStatement = CreateUser | AlterUser | DropUser | ShowUsers
