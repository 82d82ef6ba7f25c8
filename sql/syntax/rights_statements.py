"""Statements about users and rights, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .statement import CatalogStatement, ObjectName, Statement, Syntax


class TargetKind(Enum):
    """Kinds of objects that privileges are granted on."""

    TABLE = "table"
    SEQUENCE = "sequence"
    TYPE = "type"
    SCHEMA = "schema"
    DATABASE = "database"
    TABLES_IN_SCHEMA = "all tables in schema"  # those that are there now
    SEQUENCES_IN_SCHEMA = "all sequences in schema"
    SYSTEM = "system"

    @property
    def operand(self) -> str:
        """The kind of operand that names such objects, or what they are in."""
        word = self.value.rpartition(" ")[2]
        return f"{word}_name" if word in ("schema", "database") else word


class GrantTarget(Syntax):
    """`names` is empty for the system."""

    grammar = (
        *(
            (f"{kind.value.upper()} names:{kind.operand},…", {"kind": kind})
            for kind in TargetKind
            if kind not in (TargetKind.TABLE, TargetKind.SYSTEM)
        ),
        ("[TABLE] names:table,…", {"kind": TargetKind.TABLE}),
    )
    kind: TargetKind
    names: tuple[ObjectName, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivilegeName:
    """A privilege as written, in capitals."""

    name: str
    position: int


_TO = "TO grantees:role,… [_:grant_option]"
_FROM = "FROM grantees:role,… [CASCADE/RESTRICT]"
_SYSTEM: dict[str, object] = {"target": GrantTarget(kind=TargetKind.SYSTEM)}


class RightsChange(CatalogStatement):
    """A change of users and rights."""


class GrantPrivileges(RightsChange):
    grammar = (
        (f"GRANT SYSTEM privileges:privilege,… {_TO}", _SYSTEM),
        f"GRANT privileges:privilege,… ON target:grant_target {_TO}",
        (f"revoke:REVOKE SYSTEM privileges:privilege,… {_FROM}", _SYSTEM),
        f"revoke:REVOKE privileges:privilege,… ON target:grant_target {_FROM}",
    )
    privileges: tuple[PrivilegeName, ...]
    target: GrantTarget
    grantees: tuple[str, ...]
    revoke: bool = False


class GrantRoles(RightsChange):
    """Of membership."""

    grammar = (
        "GRANT roles:role,… TO members:role,… [_:grant_option]",
        "revoke:REVOKE roles:role,… FROM members:role,… [CASCADE/RESTRICT]",
    )
    roles: tuple[str, ...]
    members: tuple[str, ...]
    revoke: bool = False


class SetOwner(RightsChange):
    grammar = tuple(
        (f"ALTER {kind.name} name:{kind.operand} OWNER TO owner:role", {"kind": kind})
        for kind in TargetKind
        if kind is not TargetKind.SYSTEM and " " not in kind.value
    )
    kind: TargetKind
    name: ObjectName
    owner: str


class ActAs(Statement):
    """SET ROLE. `name` is None for NONE and DEFAULT, and for RESET."""

    grammar = (
        "SET [local:LOCAL | SESSION] ROLE [TO/=] ^ ( DEFAULT | NONE | name:role_text )",
        "reset:RESET ^ ROLE",
    )
    name: str | None = None
    local: bool = False
    reset: bool = False
    position: int


class RoleOptions(Syntax):
    """The options behind a role's name; None for one that is not given. `password_given` tells
    PASSWORD NULL from no PASSWORD. `granted` and `revoked` name system privileges, in capitals."""

    password: str | None = None
    password_given: bool = False
    login: bool | None = None
    granted: tuple[str, ...] = ()
    revoked: tuple[str, ...] = ()


class CreateUser(RightsChange):
    """A role may not log in unless it says so."""

    grammar = tuple(
        f"CREATE {what} if_not_exists:[IF NOT EXISTS] name:user [WITH] options:role_options"
        for what in ("login:USER", "ROLE")
    )
    name: str
    options: RoleOptions
    if_not_exists: bool
    login: bool = False


class AlterUser(RightsChange):
    grammar = "ALTER USER/ROLE name:user [WITH] options:role_options"
    name: str
    options: RoleOptions


class DropUser(RightsChange):
    grammar = "DROP USER/ROLE if_exists:[IF EXISTS] names:user,…"
    names: tuple[str, ...]
    if_exists: bool
