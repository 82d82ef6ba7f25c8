"""Users, roles and rights.

An option of a user is `[NO]LOGIN`, `PASSWORD 'secret'`, `PASSWORD NULL`, `IN ROLE name, …`, or a
system privilege with or without NO before it, such as `CREATEDB`. ROLE may stand for USER; a role
may not log in unless it says so.
"""

from __future__ import annotations

from collections.abc import Callable

from ....catalog.rights.privileges import ALL_OF, SecurableKind
from ...syntax import rights_statements as s
from ...syntax.names import ObjectName
from ...syntax.user_statements import AlterUser, CreateUser, DropUser, RoleOptions
from ..cursor import Cursor, LexemeKind
from ..kinds import define, define_rules, gathered, identifier, refuses
from ..rules import Row, Rules

# Users.

_PRIVILEGES = [str(one.name) for one in ALL_OF[SecurableKind.SYSTEM]]
refuses("superuser", "SUPERUSER", hint="GRANT admin TO the role: its members may do everything.")
_OPTIONS = "PASSWORD, LOGIN or a system privilege"
_role_options = gathered(
    Rules(
        ("LOGIN", dict, {"login": True}),
        ("NOLOGIN", dict, {"login": False}),
        ("INHERIT", dict),  # there is no other way
        ("IN ROLE in_roles:user,…", dict),
        ("_:superuser", dict),
        ("ENCRYPTED PASSWORD password:password", dict, {"password_given": True}),
        ("PASSWORD ( NULL | password:password )", dict, {"password_given": True}),
        *((name, dict, {"granted": (name,)}) for name in _PRIVILEGES),
        *((f"NO{name}", dict, {"revoked": (name,)}) for name in _PRIVILEGES),
        expected=_OPTIONS,
    )
)


def _options(cursor: Cursor) -> RoleOptions:
    return RoleOptions(**_role_options(cursor))  # type: ignore[arg-type]


def _some_options(cursor: Cursor) -> RoleOptions:
    options = _options(cursor)
    if options == RoleOptions():
        cursor.fail(_OPTIONS)
    return options


define("role_options", _options)
define("some_role_options", _some_options)

USERS: tuple[Row, ...] = (
    *(
        (
            f"CREATE {what} if_not_exists:[IF NOT EXISTS] name:user [WITH] options:role_options",
            CreateUser,
            {"login": login},
        )
        for what, login in (("USER", True), ("ROLE", False))
    ),
    ("ALTER USER/ROLE if_exists:[IF EXISTS] name:user [WITH] options:some_role_options", AlterUser),
    ("DROP USER/ROLE if_exists:[IF EXISTS] names:user,…", DropUser),
)


# Rights.


def _privilege(cursor: Cursor) -> s.PrivilegeName:
    position, lexeme = cursor.position, cursor.current
    if lexeme.kind not in (LexemeKind.WORD, LexemeKind.QUOTED):
        cursor.fail("a privilege or a role")
    cursor.advance()
    if lexeme.text == "all":
        cursor.accept("privileges")
    return s.PrivilegeName(lexeme.text.upper(), position)


def _table_pattern(cursor: Cursor) -> ObjectName:
    """A table's name, whose last part may be a star."""
    position, parts = cursor.position, []
    while not cursor.accept("*"):
        parts.append(identifier(cursor, "a table's name"))
        if not cursor.accept("."):
            return ObjectName(tuple(parts), position)
    return ObjectName((*parts, "*"), position)


def _operand(kind: s.TargetKind) -> str:
    """Returns the kind of operand that names such objects, or what they are in."""
    word = kind.value.rpartition(" ")[2]
    return f"{word}_name" if word in ("schema", "database") else word


define("privilege", _privilege)
define("table_pattern", _table_pattern)
define_rules(
    "grant_target",
    Rules(
        *(
            (f"{kind.value.upper()} names:{_operand(kind)},…", s.GrantTarget, {"kind": kind})
            for kind in s.TargetKind
            if kind not in (s.TargetKind.TABLE, s.TargetKind.SYSTEM)
        ),
        ("[TABLE] names:table_pattern,…", s.GrantTarget, {"kind": s.TargetKind.TABLE}),
    ),
)


def _owner(kind: s.TargetKind) -> Callable[..., s.SetOwner]:
    def make(name: ObjectName, owner: str, if_exists: bool = False) -> s.SetOwner:
        target = s.GrantTarget(kind=kind, names=(name,))
        return s.SetOwner(target=target, owner=owner, if_exists=if_exists)

    return make


_GRANT, _REVOKE = {"revoke": False}, {"revoke": True}
_SYSTEM = s.GrantTarget(kind=s.TargetKind.SYSTEM)
_TO = "TO grantees:role,… option:[WITH GRANT OPTION]"
_FROM = "FROM grantees:role,… [CASCADE/RESTRICT]"

RIGHTS: tuple[Row, ...] = (
    (
        f"GRANT SYSTEM privileges:privilege,… {_TO}",
        s.GrantPrivileges,
        {**_GRANT, "target": _SYSTEM},
    ),
    (f"GRANT privileges:privilege,… ON target:grant_target {_TO}", s.GrantPrivileges, _GRANT),
    ("GRANT roles:role,… TO members:role,… option:[WITH ADMIN OPTION]", s.GrantRoles, _GRANT),
    (
        f"REVOKE option:[GRANT OPTION FOR] SYSTEM privileges:privilege,… {_FROM}",
        s.GrantPrivileges,
        {**_REVOKE, "target": _SYSTEM},
    ),
    (
        f"REVOKE option:[GRANT OPTION FOR] privileges:privilege,… ON target:grant_target {_FROM}",
        s.GrantPrivileges,
        _REVOKE,
    ),
    (
        "REVOKE option:[ADMIN OPTION FOR] roles:role,… FROM members:role,… [CASCADE/RESTRICT]",
        s.GrantRoles,
        _REVOKE,
    ),
    *(
        (
            f"ALTER {kind.name} if_exists:[IF EXISTS] [ONLY] name:{kind.value} OWNER TO owner:role",
            _owner(kind),
        )
        for kind in (s.TargetKind.TABLE, s.TargetKind.SEQUENCE, s.TargetKind.TYPE)
    ),
    ("ALTER SCHEMA name:schema_name OWNER TO owner:role", _owner(s.TargetKind.SCHEMA)),
    ("ALTER DATABASE name:database_name OWNER TO owner:role", _owner(s.TargetKind.DATABASE)),
    ("REASSIGN OWNED BY roles:role,… TO to:role", s.ReassignOwned),
    ("DROP OWNED BY roles:role,… [CASCADE/RESTRICT]", s.ReassignOwned, {"to": None}),
)
