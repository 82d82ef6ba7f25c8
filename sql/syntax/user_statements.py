"""Statements about users, as the parser hands them on."""

from __future__ import annotations

from .statement import Statement, Syntax


class RoleOptions(Syntax):
    """The options behind a role's name; None for one that is not given. `password_given` tells
    PASSWORD NULL from no PASSWORD. `granted` and `revoked` name system privileges, in capitals."""

    password: str | None = None
    password_given: bool = False
    login: bool | None = None
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()
    in_roles: tuple[str, ...] = ()


class CreateUser(Statement):
    """CREATE USER, and CREATE ROLE, which may not log in unless it says so."""

    name: str
    options: RoleOptions
    if_not_exists: bool
    login: bool


class AlterUser(Statement):
    name: str
    options: RoleOptions
    if_exists: bool


class DropUser(Statement):
    names: tuple[str, ...]
    if_exists: bool


class ShowUsers(Statement):
    pass


UserStatement = CreateUser | AlterUser | DropUser | ShowUsers
