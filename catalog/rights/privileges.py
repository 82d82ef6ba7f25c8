"""Privileges: what may be granted, and on what.

    GRANT SELECT, INSERT ON TABLE orders TO ada        a privilege on a table
    GRANT SELECT ON DATABASE shop TO ada               on every table of it, later ones too
    GRANT USAGE ON SEQUENCE numbers TO ada             to draw from it
    GRANT SYSTEM CONTROLJOB TO ada                     on the store as a whole

Names and meanings are CockroachDB's. `ALL` stands for everything that a thing itself has to grant:
`ALL ON DATABASE` gives CONNECT, CREATE and DROP, and nothing in its tables. Sets of privileges are
plain integers where they are stored or compared, because statements compare them.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag

from ..descriptors.descriptor import (
    DatabaseDescriptor,
    Descriptor,
    SchemaDescriptor,
    TableDescriptor,
)
from ..descriptors.named_objects import SequenceDescriptor, TypeDescriptor


class Privilege(IntFlag):
    """Each privilege's bit, as stored: never change one."""

    SELECT = 1 << 0
    INSERT = 1 << 1
    UPDATE = 1 << 2
    DELETE = 1 << 3
    CREATE = 1 << 4  # in a database or a schema: to make things; on a table: to alter it
    DROP = 1 << 5  # and TRUNCATE
    CHANGEFEED = 1 << 6
    USAGE = 1 << 7  # of a schema: to find what is in it; of a sequence: to draw; of a type: columns
    CONNECT = 1 << 8
    # Of the system.
    CONTROLJOB = 1 << 16
    VIEWJOB = 1 << 17
    CREATEDB = 1 << 18
    CREATEROLE = 1 << 19
    MODIFYCLUSTERSETTING = 1 << 20
    VIEWCLUSTERSETTING = 1 << 21
    VIEWACTIVITY = 1 << 22  # the sessions and statements of others
    CANCELQUERY = 1 << 23  # and to end them
    EXTERNALCONNECTION = 1 << 24  # to make external connections


class SecurableKind(Enum):
    """The kinds of objects with privileges. The value is the word of messages."""

    SYSTEM = "system"
    DATABASE = "database"
    SCHEMA = "schema"
    TABLE = "relation"
    SEQUENCE = "sequence"
    TYPE = "type"


ROW_PRIVILEGES = (
    Privilege.SELECT | Privilege.INSERT | Privilege.UPDATE | Privilege.DELETE | Privilege.CHANGEFEED
)
"""On a database or a schema they hold for every table in it."""

ALL_OF: dict[SecurableKind, Privilege] = {
    SecurableKind.SYSTEM: Privilege.CONTROLJOB
    | Privilege.VIEWJOB
    | Privilege.CREATEDB
    | Privilege.CREATEROLE
    | Privilege.MODIFYCLUSTERSETTING
    | Privilege.VIEWCLUSTERSETTING
    | Privilege.VIEWACTIVITY
    | Privilege.CANCELQUERY
    | Privilege.EXTERNALCONNECTION,
    SecurableKind.DATABASE: Privilege.CONNECT | Privilege.CREATE | Privilege.DROP,
    SecurableKind.SCHEMA: Privilege.CREATE | Privilege.USAGE,
    SecurableKind.TABLE: ROW_PRIVILEGES | Privilege.CREATE | Privilege.DROP,
    SecurableKind.SEQUENCE: Privilege.USAGE
    | Privilege.SELECT
    | Privilege.UPDATE
    | Privilege.CREATE
    | Privilege.DROP,
    SecurableKind.TYPE: Privilege.USAGE | Privilege.CREATE | Privilege.DROP,
}
"""The privileges that ALL stands for."""

GRANTABLE_ON: dict[SecurableKind, Privilege] = {
    SecurableKind.SYSTEM: ALL_OF[SecurableKind.SYSTEM],
    SecurableKind.DATABASE: ALL_OF[SecurableKind.DATABASE] | ROW_PRIVILEGES,
    SecurableKind.SCHEMA: ALL_OF[SecurableKind.SCHEMA] | ROW_PRIVILEGES,
    SecurableKind.TABLE: ALL_OF[SecurableKind.TABLE],
    SecurableKind.SEQUENCE: ALL_OF[SecurableKind.SEQUENCE],
    SecurableKind.TYPE: ALL_OF[SecurableKind.TYPE],
}

EVERYTHING = sum(int(privilege) for privilege in Privilege)
"""The rights of an admin."""

_LETTERS = {
    Privilege.INSERT: "a",
    Privilege.SELECT: "r",
    Privilege.UPDATE: "w",
    Privilege.DELETE: "d",
    Privilege.DROP: "D",  # PostgreSQL's letter for TRUNCATE, which is what it allows too
    Privilege.USAGE: "U",
    Privilege.CREATE: "C",
    Privilege.CONNECT: "c",
    Privilege.CHANGEFEED: "F",  # ours: PostgreSQL has no such letter
}


@dataclass(frozen=True, slots=True)
class Securable:
    """A thing with privileges. `parents` are the ids of what it is in, a schema before a database;
    the system itself has the id 0."""

    kind: SecurableKind
    id: int
    name: str
    parents: tuple[int, ...] = ()


SYSTEM = Securable(SecurableKind.SYSTEM, 0, "system")


_KINDS = {
    TableDescriptor: SecurableKind.TABLE,
    SequenceDescriptor: SecurableKind.SEQUENCE,
    TypeDescriptor: SecurableKind.TYPE,
}


def securable(descriptor: Descriptor) -> Securable:
    match descriptor:
        case TableDescriptor() | TypeDescriptor() | SequenceDescriptor():
            parents = (descriptor.schema_id, descriptor.database_id)
            kind = _KINDS[type(descriptor)]
            return Securable(kind, descriptor.id, descriptor.name, parents)
        case SchemaDescriptor(id=id, name=name, database_id=database_id):
            return Securable(SecurableKind.SCHEMA, id, name, (database_id,))
        case DatabaseDescriptor(id=id, name=name):
            return Securable(SecurableKind.DATABASE, id, name)


def privilege_names(privileges: int, kind: SecurableKind) -> list[str]:
    """The names of a set, in alphabetical order; ALL where it holds all that the kind has."""
    whole = ALL_OF[kind]
    if privileges and privileges & whole == whole:
        beyond = privileges & ~whole
        return ["ALL", *privilege_names(beyond, kind)] if beyond else ["ALL"]
    return sorted(str(one.name) for one in Privilege if one & privileges)


def acl_text(grantee: str, privileges: int, grantor: str) -> str:
    """An item of an access list as PostgreSQL's catalogs have it: `ada=arw/root`."""
    letters = "".join(letter for privilege, letter in _LETTERS.items() if privileges & privilege)
    return f"{'' if grantee == 'public' else grantee}={letters}/{grantor}"
