"""Statements about rights, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from .names import ObjectName
from .statement import Statement, Syntax


class TargetKind(Enum):
    """Kinds of objects that privileges are granted on."""

    TABLE = "table"
    SEQUENCE = "sequence"
    TYPE = "type"
    SCHEMA = "schema"
    DATABASE = "database"
    TABLES_IN_SCHEMA = "all tables in schema"  # those that are there now
    SEQUENCES_IN_SCHEMA = "all sequences in schema"
    TYPES_IN_SCHEMA = "all types in schema"
    SYSTEM = "system"


class GrantTarget(Syntax):
    """`names` is empty for the system. A table's last part may be `*`."""

    kind: TargetKind
    names: tuple[ObjectName, ...] = ()


@dataclass(frozen=True, slots=True)
class PrivilegeName:
    """A privilege as written, in capitals."""

    name: str
    position: int


class GrantPrivileges(Statement):
    """GRANT and REVOKE of privileges. `option` is WITH GRANT OPTION, or GRANT OPTION FOR."""

    privileges: tuple[PrivilegeName, ...]
    target: GrantTarget
    grantees: tuple[str, ...]
    option: bool
    revoke: bool


class GrantRoles(Statement):
    """GRANT and REVOKE of membership. `option` is WITH ADMIN OPTION, or ADMIN OPTION FOR."""

    roles: tuple[str, ...]
    members: tuple[str, ...]
    option: bool
    revoke: bool


class SetOwner(Statement):
    """ALTER TABLE, SCHEMA or DATABASE … OWNER TO."""

    target: GrantTarget
    owner: str
    if_exists: bool


class ReassignOwned(Statement):
    """REASSIGN OWNED BY … TO; `to` is None for DROP OWNED BY, which takes grants away too."""

    roles: tuple[str, ...]
    to: str | None


class ActAs(Statement):
    """SET [LOCAL] ROLE, or SET [LOCAL] SESSION AUTHORIZATION where `session`. `name` is None for
    NONE and DEFAULT, and for RESET of either."""

    name: str | None = None
    session: bool = False
    local: bool = False
    reset: bool = False
    position: int


RightsChange = GrantPrivileges | GrantRoles | SetOwner | ReassignOwned
RightsStatement = RightsChange | ActAs
