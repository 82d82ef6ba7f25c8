"""Rights as tables: who is a member of what, and what was granted, the unsaid included.

`tailrace_internal.grants` has a row for each privilege of each grantee on each thing of the
database, with `ALL` and ownership spelled out; `has_table_privilege` and its kin are queries on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...catalog.descriptors.named_objects import SequenceDescriptor, TypeDescriptor
from ...catalog.rights.privileges import (
    ALL_OF,
    GRANTABLE_ON,
    ROW_PRIVILEGES,
    SYSTEM,
    Privilege,
    Securable,
    SecurableKind,
    acl_text,
    securable,
)
from ...catalog.rights.rights import Rights, initial_grants, read_rights
from ...catalog.rights.users import ADMIN, PUBLIC, list_users
from ..analyze.calls.oids import user_oid
from . import described
from .virtual_table import TAILRACE_INTERNAL, IntrospectionContext, Rows, virtual_tables

_ALSO = {Privilege.DROP: "TRUNCATE"}
"""PostgreSQL's privileges that another privilege allows here."""


async def things(context: IntrospectionContext) -> list[tuple[str, Securable]]:
    """The current database, its schemas, and what is in them, each with its qualified name."""
    descriptors, reader = context.services.catalog.descriptors, context.reader
    database_id = await descriptors.lookup(reader, 0, 0, context.database)
    assert database_id is not None, context.database
    found = [
        (name, Securable(SecurableKind.DATABASE, id, name))
        for name, id in await descriptors.children(reader, 0, 0)
    ]
    for name, id in await descriptors.children(reader, database_id, 0):
        found.append((name, Securable(SecurableKind.SCHEMA, id, name, (database_id,))))
    for table in await described.relations(context):
        found.append((f"{table.schema}.{table.table.name}", securable(table.table)))
    catalog = context.services.catalog
    others: list[tuple[str, SequenceDescriptor | TypeDescriptor]] = [
        *await catalog.list_objects(reader, context.database, SequenceDescriptor),
        *await catalog.list_objects(reader, context.database, TypeDescriptor),
    ]
    for schema, thing in others:
        found.append((f"{schema}.{thing.name}", securable(thing)))
    return found


def privileges_on(rights: Rights, thing: Securable) -> Iterator[tuple[str, Privilege, bool]]:
    """Grantee, privilege, and whether it may be passed on. Admins and owners have all."""
    everything = {ADMIN, rights.owner(thing.id)}
    for grantee in sorted(everything):
        for privilege in Privilege:
            if privilege & ALL_OF[thing.kind]:
                yield grantee, privilege, True
    for object_id in (thing.id, *thing.parents):
        allowed = GRANTABLE_ON[thing.kind]
        if object_id != thing.id:
            allowed &= ROW_PRIVILEGES if thing.kind is SecurableKind.TABLE else Privilege(0)
        for grantee, grant in rights.grants_on(object_id):
            for privilege in Privilege:
                if grant.privileges & privilege & allowed and grantee not in everything:
                    yield grantee, privilege, False


@TAILRACE_INTERNAL.table("grants 30 object_id:i kind name full_name grantee privilege grantable:b")
async def grant_rows(context: IntrospectionContext) -> Rows:
    rights = await read_rights(context.reader)
    for full_name, thing in [("system", SYSTEM), *await things(context)]:
        kind = "table" if thing.kind is SecurableKind.TABLE else thing.kind.value
        for grantee, privilege, grantable in privileges_on(rights, thing):
            for name in (privilege.name, _ALSO.get(privilege)):
                if name is not None:
                    yield (thing.id, kind, thing.name, full_name, grantee, name, grantable)
    for table in virtual_tables():
        full_name = f"{table.schema}.{table.name}"
        yield (table.id, "table", table.name, full_name, PUBLIC, "SELECT", False)


@TAILRACE_INTERNAL.table("role_closure 31 member member_oid:i role")
async def role_closure_rows(context: IntrospectionContext) -> Rows:
    rights = await read_rights(context.reader)
    for user in await list_users(context.reader):
        for role in sorted(rights.roles_of(user.name)):
            yield (user.name, user_oid(user.name), role)


_OWNERS = {
    SecurableKind.SCHEMA: Privilege.USAGE | Privilege.CREATE,
    SecurableKind.DATABASE: Privilege.CREATE | Privilege.CONNECT,
    SecurableKind.TYPE: Privilege.USAGE,
}
"""Privileges of owners that PostgreSQL lists; it has no letters for the others."""


def acl(rights: Rights, thing: Securable) -> list[str] | None:
    """An access list of pg_catalog; None where it is as it was made: nothing was granted, and what
    all have of such a thing was not taken back. That of `public` is always told: PostgreSQL makes
    it with another."""
    owner = rights.owner(thing.id)
    grants = list(rights.grants_on(thing.id))
    given = {grantee: grant.privileges for grantee, grant in grants if grantee != owner}
    initial = initial_grants(thing.kind, thing.name)
    told = thing.kind is SecurableKind.SCHEMA and thing.name == PUBLIC
    if not told and given == ({PUBLIC: initial} if initial else {}):
        return None
    shown = int(ALL_OF[thing.kind])
    if thing.kind in (SecurableKind.SEQUENCE, SecurableKind.TYPE):
        shown &= ~int(Privilege.CREATE | Privilege.DROP)  # which PostgreSQL has no letters for
    texts = [acl_text(owner, shown & int(_OWNERS.get(thing.kind, shown)), owner)]
    for grantee, grant in grants:
        if grantee != owner and grant.privileges:
            texts.append(acl_text(grantee, grant.privileges & shown, owner))
    return texts
