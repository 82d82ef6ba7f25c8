"""The grammar of rights.

GRANT privilege, … ON [TABLE] name, … TO role, … [WITH GRANT OPTION]
GRANT privilege, … ON { DATABASE | SCHEMA | SEQUENCE | TYPE } name, … TO role, …
GRANT privilege, … ON ALL { TABLES | SEQUENCES | TYPES } IN SCHEMA name, … TO role, …
GRANT SYSTEM privilege, … TO role, …
GRANT role, … TO role, … [WITH ADMIN OPTION]
REVOKE [{ GRANT | ADMIN } OPTION FOR] … FROM role, …
ALTER { TABLE | SEQUENCE | TYPE | SCHEMA | DATABASE } name OWNER TO role
REASSIGN OWNED BY role, … TO role;  DROP OWNED BY role, …
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ...syntax.names import ObjectName
from ...syntax.rights_statements import (
    GrantPrivileges,
    GrantRoles,
    GrantTarget,
    PrivilegeName,
    ReassignOwned,
    SetOwner,
    TargetKind,
)
from ...syntax.statements import Statement
from ..cursor import Cursor, LexemeKind

Grammar = Callable[[Cursor], Statement]

_KINDS: dict[tuple[str, ...], TargetKind] = {
    ("database",): TargetKind.DATABASE,
    ("schema",): TargetKind.SCHEMA,
    ("all", "tables", "in", "schema"): TargetKind.TABLES_IN_SCHEMA,
    ("all", "sequences", "in", "schema"): TargetKind.SEQUENCES_IN_SCHEMA,
    ("all", "types", "in", "schema"): TargetKind.TYPES_IN_SCHEMA,
    ("sequence",): TargetKind.SEQUENCE,
    ("type",): TargetKind.TYPE,
    ("table",): TargetKind.TABLE,
}
_NAMED = {
    TargetKind.DATABASE: "a database's name",
    TargetKind.SEQUENCE: "a sequence's name",
    TargetKind.TYPE: "a type's name",
}


def grant(cursor: Cursor, *, revoke: bool) -> GrantPrivileges | GrantRoles:
    grant_option = revoke and cursor.accept_words("grant", "option", "for")
    admin_option = revoke and not grant_option and cursor.accept_words("admin", "option", "for")
    system = cursor.accept_words("system")
    names = cursor.listed(lambda: _privilege(cursor))
    if not system and not cursor.at_words("on"):
        members, option = _grantees(cursor, revoke, "admin")
        return GrantRoles(
            roles=tuple(privilege.name for privilege in _as_roles(cursor, names)),
            members=members,
            option=admin_option or option,
            revoke=revoke,
        )
    target = GrantTarget(kind=TargetKind.SYSTEM) if system else _target(cursor)
    grantees, option = _grantees(cursor, revoke, "grant")
    return GrantPrivileges(
        privileges=_in_capitals(names),
        target=target,
        grantees=grantees,
        option=grant_option or option,
        revoke=revoke,
    )


def _privilege(cursor: Cursor) -> PrivilegeName:
    """A privilege or a role: which of them is seen only behind the list."""
    position, lexeme = cursor.position, cursor.current
    if lexeme.kind not in (LexemeKind.WORD, LexemeKind.QUOTED):
        cursor.fail(expected="a privilege or a role")
    cursor.advance()
    if lexeme.text == "all":
        cursor.accept_words("privileges")
    return PrivilegeName(lexeme.text, position)


def _in_capitals(names: tuple[PrivilegeName, ...]) -> tuple[PrivilegeName, ...]:
    return tuple(PrivilegeName(given.name.upper(), given.position) for given in names)


_NO_ROLES = frozenset({"select", "create", "all"})


def _as_roles(cursor: Cursor, names: tuple[PrivilegeName, ...]) -> tuple[PrivilegeName, ...]:
    """The names of a membership. `GRANT SELECT TO ada` has left out what it is on."""
    if any(given.name in _NO_ROLES for given in names):
        cursor.fail(expected="ON")
    return names


def _target(cursor: Cursor) -> GrantTarget:
    cursor.expect_words("on")
    return _named_target(cursor)


def _accepted(cursor: Cursor, kinds: Mapping[tuple[str, ...], TargetKind]) -> TargetKind | None:
    return next((kind for words, kind in kinds.items() if cursor.accept_words(*words)), None)


def _named_target(cursor: Cursor) -> GrantTarget:
    kind = _accepted(cursor, _KINDS) or TargetKind.TABLE
    if kind is TargetKind.TABLE:
        return GrantTarget(kind=kind, names=cursor.listed(lambda: _table_pattern(cursor)))
    what = _NAMED.get(kind, "a schema's name")
    return GrantTarget(kind=kind, names=cursor.names(what))


def _table_pattern(cursor: Cursor) -> ObjectName:
    """A table's name, whose last part may be a star."""
    position, parts = cursor.position, []
    while not cursor.accept_symbol("*"):
        parts.append(cursor.identifier("a table's name"))
        if not cursor.accept_symbol("."):
            return ObjectName(tuple(parts), position)
    return ObjectName((*parts, "*"), position)


def _grantees(cursor: Cursor, revoke: bool, option: str) -> tuple[tuple[str, ...], bool]:
    """Roles, and whether the option was written behind them."""
    cursor.expect_words("from" if revoke else "to")
    found = cursor.listed(lambda: role_name(cursor))
    if revoke:
        if not cursor.accept_words("restrict"):
            cursor.accept_words("cascade")
        return found, False
    given = cursor.accept_words("with", option, "option")
    return found, given


def role_name(cursor: Cursor) -> str:
    cursor.accept_words("role")
    return cursor.identifier("a role's name")


# Owners.


def owner_or(kind: TargetKind, otherwise: Callable[[Cursor], Statement]) -> Grammar:
    """OWNER TO, or anything else that alters such a thing."""

    def grammar(cursor: Cursor) -> Statement:
        before = cursor.mark()
        if_exists = cursor.accept_words("if", "exists")
        cursor.accept_words("only")
        name = cursor.object_name(f"a {kind.value}'s name")
        if cursor.accept_words("owner", "to"):
            return _owner(cursor, kind, name, if_exists=if_exists)
        cursor.rewind(before)
        return otherwise(cursor)

    return grammar


def owner_alone(kind: TargetKind) -> Grammar:
    """OWNER TO, and nothing else."""

    def grammar(cursor: Cursor) -> Statement:
        name = cursor.object_name(f"a {kind.value}'s name")
        cursor.expect_words("owner", "to")
        return _owner(cursor, kind, name, if_exists=False)

    return grammar


def _owner(cursor: Cursor, kind: TargetKind, name: ObjectName, *, if_exists: bool) -> SetOwner:
    target = GrantTarget(kind=kind, names=(name,))
    return SetOwner(target=target, owner=role_name(cursor), if_exists=if_exists)


def reassign_owned(cursor: Cursor) -> ReassignOwned:
    """`role, … TO role`"""
    roles = cursor.listed(lambda: role_name(cursor))
    cursor.expect_words("to")
    to = role_name(cursor)
    return ReassignOwned(roles=roles, to=to)


def drop_owned(cursor: Cursor) -> ReassignOwned:
    """`role, … [CASCADE | RESTRICT]`"""
    roles = cursor.listed(lambda: role_name(cursor))
    if not cursor.accept_words("restrict"):
        cursor.accept_words("cascade")
    return ReassignOwned(roles=roles, to=None)
