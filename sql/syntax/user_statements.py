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
    """A role may not log in unless it says so."""

    grammar = tuple(
        (
            f"CREATE {what} if_not_exists:[IF NOT EXISTS] name:user [WITH] options:role_options",
            {"login": what == "USER"},
        )
        for what in ("USER", "ROLE")
    )
    name: str
    options: RoleOptions
    if_not_exists: bool
    login: bool


class AlterUser(Statement):
    grammar = "ALTER USER/ROLE if_exists:[IF EXISTS] name:user [WITH] options:some_role_options"
    name: str
    options: RoleOptions
    if_exists: bool


class DropUser(Statement):
    grammar = "DROP USER/ROLE if_exists:[IF EXISTS] names:user,…"
    names: tuple[str, ...]
    if_exists: bool


class ShowUsers(Statement):
    grammar = "SHOW USERS/ROLES"


UserStatement = CreateUser | AlterUser | DropUser | ShowUsers
