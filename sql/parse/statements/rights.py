"""Users, roles and rights.

An option of a user is `[NO]LOGIN`, `PASSWORD 'secret'`, `PASSWORD NULL`, or a system privilege
with or without NO before it, such as `CREATEDB`. ROLE may stand for USER.
"""

from __future__ import annotations

from ....catalog.rights.privileges import ALL_OF, SecurableKind
from ...syntax.rights_statements import GrantTarget, PrivilegeName, RoleOptions
from ...syntax.statement import rows_of
from ..cursor import Cursor, LexemeKind
from ..kinds import define_rules, gathered, kind, refuses
from ..rules import Rules

# Users.

_PRIVILEGES = [str(one.name) for one in ALL_OF[SecurableKind.SYSTEM]]
refuses("superuser", "SUPERUSER", hint="GRANT admin TO the role: its members may do everything.")
_role_options = gathered(
    Rules(
        ("LOGIN", dict, {"login": True}),
        ("NOLOGIN", dict, {"login": False}),
        ("INHERIT", dict),  # there is no other way
        ("_:superuser", dict),
        ("ENCRYPTED PASSWORD password:password", dict, {"password_given": True}),
        ("PASSWORD ( NULL | password:password )", dict, {"password_given": True}),
        *((name, dict, {"granted": (name,)}) for name in _PRIVILEGES),
        *((f"NO{name}", dict, {"revoked": (name,)}) for name in _PRIVILEGES),
    )
)


@kind("role_options")
def _options(cursor: Cursor) -> RoleOptions:
    return RoleOptions(**_role_options(cursor))  # type: ignore[arg-type]


# Rights.


@kind("privilege")
def _privilege(cursor: Cursor) -> PrivilegeName:
    position, lexeme = cursor.position, cursor.current
    if lexeme.kind not in (LexemeKind.WORD, LexemeKind.QUOTED):
        cursor.fail("a privilege or a role")
    cursor.advance()
    if lexeme.text == "all":
        cursor.accept("privileges")
    return PrivilegeName(lexeme.text.upper(), position)


define_rules("grant_target", Rules(*rows_of(GrantTarget)))
refuses(
    "grant_option",
    "WITH",
    "the option to pass a right on",
    "Owners grant rights on what they own, CREATEROLE makes members of roles.",
)
