"""Rows of pg_namespace, pg_database, pg_roles and their kin."""

from __future__ import annotations

from ....catalog.rights.privileges import SYSTEM, Privilege, Securable, SecurableKind
from ....catalog.rights.rights import read_rights
from ....catalog.rights.users import ADMIN, ROOT, list_users
from ....catalog.values.identifiers import RESERVED
from ...analyze.calls import oids
from .. import described
from ..rights import acl
from ..virtual_table import PG_CATALOG, IntrospectionContext, Rows, VirtualTable, virtual_tables

_VIRTUAL_SCHEMAS = {"pg_catalog": oids.PG_CATALOG, "information_schema": oids.INFORMATION_SCHEMA}
_UTF8 = 6
TABLESPACE = 1663


def virtual_relation_oid(table: VirtualTable) -> int:
    return oids.relation_oid(table.id, table.name)


def schema_oid(name: str) -> int:
    """Returns the oid of a schema whose tables are virtual."""
    return _VIRTUAL_SCHEMAS.get(name) or oids.derived("schema", name)


@PG_CATALOG.table("pg_namespace 1 oid:o nspname nspowner:o nspacl:S")
async def namespace_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_namespace: the schemas of the database, and those of the catalogs."""
    catalog, reader = context.services.catalog, context.reader
    database_id = await catalog.descriptors.lookup(reader, 0, 0, context.database)
    assert database_id is not None, context.database
    owner, rights = oids.user_oid(ROOT), await read_rights(reader)
    for name, id in await catalog.descriptors.children(reader, database_id, 0):
        schema = Securable(SecurableKind.SCHEMA, id, name, (database_id,))
        yield (id, name, oids.user_oid(rights.owner(id)), acl(rights, schema))
    virtual = {table.schema for table in virtual_tables()}
    for name in sorted(virtual):
        yield (schema_oid(name), name, owner, None)


@PG_CATALOG.table("""pg_database 8
    oid:o datname datdba:o encoding:i datlocprovider:c datistemplate:b datallowconn:b
    datconnlimit:i datfrozenxid:i datminmxid:i dattablespace:o datcollate datctype daticulocale
    datcollversion datacl:S""")
async def database_rows(context: IntrospectionContext) -> Rows:
    found = await context.services.catalog.descriptors.children(context.reader, 0, 0)
    rights = await read_rights(context.reader)
    for name, id in found:
        yield (
            id, name, oids.user_oid(rights.owner(id)), _UTF8, "c", False, True, -1, 0, 0,
            TABLESPACE, "C", "C.UTF-8", None, None,
            acl(rights, Securable(SecurableKind.DATABASE, id, name)),
        )  # fmt: skip


@PG_CATALOG.table("""pg_roles 9
    rolname rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b
    rolconnlimit:i rolpassword rolvaliduntil rolbypassrls:b rolconfig:S oid:o""")
async def role_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_roles: users and roles, without passwords."""
    rights = await read_rights(context.reader)
    for user in await list_users(context.reader):
        admin, held = rights.admin(user.name), rights.held(user.name, SYSTEM)
        creates_roles, creates_databases = Privilege.CREATEROLE, Privilege.CREATEDB
        yield (
            user.name, admin, True, bool(held & creates_roles), bool(held & creates_databases),
            user.login, False, -1, "********", None, admin, None, oids.user_oid(user.name),
        )  # fmt: skip


@PG_CATALOG.table("""pg_user 11
    usename usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd valuntil
    useconfig:S""")
async def user_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_user: the roles that log in, which drizzle-kit joins with the schemas they own."""
    async for row in role_rows(context):
        name, superuser, _, _, creates, login, replicates, _, password, until, *_, oid = row
        if login:
            yield (name, oid, creates, superuser, replicates, superuser, password, until, None)


@PG_CATALOG.table("pg_auth_members 12 roleid:o member:o grantor:o admin_option:b")
async def member_rows(context: IntrospectionContext) -> Rows:
    rights = await read_rights(context.reader)
    for role, member in rights.memberships():
        yield (oids.user_oid(role), oids.user_oid(member), oids.user_oid(ROOT), role == ADMIN)


@PG_CATALOG.table("pg_tablespace 32 oid:o spcname spcowner:o spcacl:S spcoptions:S")
async def tablespace_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_tablespace: the store's folder alone, under the name of PostgreSQL's default."""
    yield (TABLESPACE, "pg_default", oids.user_oid(ROOT), None, None)


@PG_CATALOG.table("""pg_tables 19
    schemaname tablename tableowner tablespace hasindexes:b hasrules:b hastriggers:b
    rowsecurity:b""")
async def table_rows(context: IntrospectionContext) -> Rows:
    rights = await read_rights(context.reader)
    for found in await described.tables(context):
        yield (
            found.schema, found.table.name, rights.owner(found.table.id), None, True, False,
            bool(found.table.foreign_keys or found.table.referenced_by), False,
        )  # fmt: skip


@PG_CATALOG.table("pg_statio_all_tables 603 relid:o schemaname relname")
async def statio_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_statio_all_tables: tables by their names, by which Sequelize finds comments."""
    for found in await described.tables(context):
        yield (found.table.id, found.schema, found.table.name)


@PG_CATALOG.table("pg_indexes 20 schemaname tablename indexname tablespace indexdef")
async def indexes_rows(context: IntrospectionContext) -> Rows:
    for found in await described.tables(context):
        for index in found.indexes:
            yield (found.schema, found.table.name, index.name, None, found.index_definition(index))


@PG_CATALOG.table("pg_am 17 oid:o amname amhandler amtype:c")
async def _methods(context: IntrospectionContext) -> Rows:
    yield (oids.HEAP, "heap", "heap_tableam_handler", "t")
    yield (oids.BTREE, "btree", "bthandler", "i")


@PG_CATALOG.table("""pg_collation 18
    oid:o collname collnamespace:o collowner:o collprovider:c collisdeterministic:b
    collencoding:i collcollate collctype colliculocale collversion""")
async def _collations(context: IntrospectionContext) -> Rows:
    owner = oids.user_oid("root")
    yield (100, "default", oids.PG_CATALOG, owner, "d", True, -1, None, None, None, None)
    yield (950, "C", oids.PG_CATALOG, owner, "c", True, -1, "C", "C", None, None)


@PG_CATALOG.table("pg_get_keywords 43 word catcode:c barelabel:b catdesc baredesc")
async def _keywords(context: IntrospectionContext) -> Rows:
    """Rows of `pg_get_keywords()`: the words that are names only in quotes."""
    for word in sorted(RESERVED):
        yield (word, "R", False, "reserved", "requires AS")
