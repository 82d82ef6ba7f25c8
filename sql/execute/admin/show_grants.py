"""SHOW GRANTS and its kin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ....catalog.descriptors.descriptor import DatabaseDescriptor, Descriptor, SchemaDescriptor
from ....catalog.rights.default_privileges import ANY_SCHEMA, list_defaults
from ....catalog.rights.privileges import (
    SYSTEM,
    WITHIN_SCHEMAS,
    Privilege,
    Securable,
    SecurableKind,
    privilege_names,
    securable,
)
from ....catalog.rights.rights import Grant, Rights, read_rights
from ....catalog.rights.users import ADMIN, ROOT
from ...results.results import Result, Row, listing, typed_columns
from ...runtime.authorization import Actor
from ...syntax.names import ObjectName
from ...syntax.rights_statements import (
    RightsListing,
    ShowDefaultPrivileges,
    ShowGrants,
    ShowRoleGrants,
)
from .grant_targets import find_targets, sequences_in, types_in


async def show_rights(actor: Actor, statement: RightsListing) -> Result:
    """Lists grants, roles' members or default privileges, by the SHOW statement."""
    rights = await read_rights(actor.reader)
    match statement:
        case ShowGrants():
            return await _grants(actor, rights, statement)
        case ShowRoleGrants(roles=roles, members=members):
            rows: list[Row] = [
                (role, member, admin)
                for role, member, admin in rights.memberships()
                if (not roles or role in roles) and (not members or member in members)
            ]
            columns = typed_columns("role_name member is_admin:b")
            return listing("SHOW GRANTS", columns, rows)
        case ShowDefaultPrivileges():
            return await _defaults(actor)


async def _grants(actor: Actor, rights: Rights, statement: ShowGrants) -> Result:
    if statement.target is None:
        things = await _everything_in(actor)
    else:
        things = await find_targets(actor, statement.target)
    if things == [SYSTEM]:
        return _system_grants(rights, statement.grantees)
    names = await _full_names(actor, things)
    rows: list[Row] = []
    for thing, (database, schema, name) in zip(things, names, strict=True):
        kind = "table" if thing.kind is SecurableKind.TABLE else thing.kind.value
        for grantee, privilege, grantable in granted(rights, thing):
            if not statement.grantees or grantee in statement.grantees:
                rows.append((database, schema, name, kind, grantee, privilege, grantable))
    columns = typed_columns(
        "database_name schema_name object_name object_type grantee privilege_type is_grantable:b"
    )
    return listing("SHOW GRANTS", columns, rows)


def granted(rights: Rights, thing: Securable) -> Iterator[tuple[str, str, bool]]:
    """Yields roles and their privileges on an object: admins, its owner, and the grantees."""
    all_of = {ADMIN, ROOT, rights.owner(thing.id)}
    for grantee in sorted(all_of):
        yield grantee, "ALL", True
    for grantee, grant in rights.grants_on(thing.id):
        if grantee not in all_of:
            yield from _spelled(grantee, grant, thing.kind)


def _spelled(grantee: str, grant: Grant, kind: SecurableKind) -> Iterator[tuple[str, str, bool]]:
    """One row a privilege; ALL in one word where that says the same."""
    names = privilege_names(grant.privileges, kind)
    passed_on = set(privilege_names(grant.grantable, kind))
    if "ALL" in names and passed_on and "ALL" not in passed_on:
        names = sorted(str(one.name) for one in Privilege if one & grant.privileges)
    for name in names:
        yield grantee, name, name in passed_on or "ALL" in passed_on


def _system_grants(rights: Rights, grantees: Sequence[str]) -> Result:
    rows: list[Row] = [(ADMIN, "ALL", True), (ROOT, "ALL", True)]
    for grantee, grant in rights.grants_on(SYSTEM.id):
        rows += _spelled(grantee, grant, SecurableKind.SYSTEM)
    kept = [row for row in rows if not grantees or row[0] in grantees]
    columns = typed_columns("grantee privilege_type is_grantable:b")
    return listing("SHOW SYSTEM GRANTS", columns, kept)


async def _everything_in(actor: Actor) -> list[Securable]:
    """The current database, its schemas and what is in them."""
    catalog = actor.services.catalog
    found: list[Securable] = []
    database_id = await catalog.descriptors.lookup(actor.reader, 0, 0, actor.database)
    assert database_id is not None, actor.database
    found.append(Securable(SecurableKind.DATABASE, database_id, actor.database))
    for schema in await catalog.list_schemas(actor.reader, actor.database):
        _, schema_id = await catalog.descriptors.resolve_schema(
            actor.reader, actor.database, schema
        )
        found.append(Securable(SecurableKind.SCHEMA, schema_id, schema, (database_id,)))
        tables = await catalog.list_tables(
            actor.reader, actor.database, schema, views=True, keyspaces=True
        )
        found += map(securable, tables)
        place = ObjectName((actor.database, schema), 1)
        found += [*await sequences_in(actor, place), *await types_in(actor, place)]
    return found


async def _full_names(
    actor: Actor, things: Sequence[Securable]
) -> list[tuple[str | None, str | None, str | None]]:
    """Database, schema and name of each."""
    known: dict[int, str] = {}

    async def name(descriptor_id: int) -> str:
        if descriptor_id not in known:
            found = await actor.services.catalog.descriptors.read(actor.reader, descriptor_id)
            assert found is not None, descriptor_id
            known[descriptor_id] = found.name
        return known[descriptor_id]

    names: list[tuple[str | None, str | None, str | None]] = []
    for thing in things:
        match thing.kind:
            case _ if thing.kind in WITHIN_SCHEMAS:
                schema, database = thing.parents
                names.append((await name(database), await name(schema), thing.name))
            case SecurableKind.SCHEMA:
                names.append((await name(thing.parents[0]), thing.name, None))
            case _:
                names.append((thing.name, None, None))
    return names


async def _defaults(actor: Actor) -> Result:
    rows: list[Row] = []
    for default in await list_defaults(actor.reader):
        read = actor.services.catalog.descriptors.read
        database: Descriptor | None = await read(actor.reader, default.database_id)
        if not isinstance(database, DatabaseDescriptor) or database.dropped:
            continue
        schema = None
        if default.schema_id != ANY_SCHEMA:
            found = await read(actor.reader, default.schema_id)
            assert isinstance(found, SchemaDescriptor), default
            schema = found.name
        kind = "tables" if default.kind is SecurableKind.TABLE else f"{default.kind.value}s"
        for grantee, privilege, grantable in _spelled(default.grantee, default.grant, default.kind):
            rows.append(
                (default.role or None, database.name, schema, kind, grantee, privilege, grantable)
            )
    columns = typed_columns(
        "role database_name schema_name object_type grantee privilege_type is_grantable:b"
    )
    return listing("SHOW DEFAULT PRIVILEGES", columns, rows)
