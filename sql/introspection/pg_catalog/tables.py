"""The tables of pg_catalog: PostgreSQL 15's columns, and where rows come from."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.column_types import ColumnType, array_of
from ....catalog.type_kinds import TypeKind
from ...client_variables import SERVER_VERSION
from ...results import BOOL, INT8, STRING, Row
from ...variables import REGISTRY
from ..context import IntrospectionContext
from ..oids import BTREE, HEAP, user_oid
from ..oids import PG_CATALOG as NAMESPACE
from ..sequences import sequence_rows
from ..virtual_table import RowSource, VirtualTable
from .namespaces import (
    database_rows,
    indexes_rows,
    member_rows,
    namespace_rows,
    role_rows,
    table_rows,
    user_rows,
)
from .relations import (
    attribute_rows,
    class_rows,
    constraint_rows,
    default_rows,
    description_rows,
    index_rows,
)
from .types import enum_rows, type_rows

FLOAT8 = ColumnType(TypeKind.FLOAT8)
NUMBERS = array_of(INT8)
TEXTS = array_of(STRING)

_LETTERS = {"b": BOOL, "i": INT8, "s": STRING, "f": FLOAT8, "I": NUMBERS, "S": TEXTS}


async def _nothing(context: IntrospectionContext) -> Sequence[Row]:
    return ()


def _table(number: int, name: str, columns: str, rows: RowSource = _nothing) -> VirtualTable:
    """`columns` are names, each with the letter of its type: `oid:i relname:s`."""
    named = {}
    for column in columns.split():
        column_name, _, letter = column.partition(":")
        named[column_name] = _LETTERS[letter]
    return VirtualTable(id=-200 - number, schema="pg_catalog", name=name, columns=named, rows=rows)


async def _methods(context: IntrospectionContext) -> Sequence[Row]:
    return [(HEAP, "heap", "heap_tableam_handler", "t"), (BTREE, "btree", "bthandler", "i")]


async def _collations(context: IntrospectionContext) -> Sequence[Row]:
    owner = user_oid("root")
    return [
        (100, "default", NAMESPACE, owner, "d", True, -1, None, None, None, None),
        (950, "C", NAMESPACE, owner, "c", True, -1, "C", "C", None, None),
    ]


async def _settings(context: IntrospectionContext) -> Sequence[Row]:
    """Defaults: what a session has set is what SHOW tells."""
    rows: list[Row] = [
        (variable.name, variable.show(variable.default), variable.description, "user", "string")
        for variable in REGISTRY.values()
    ]
    known = {row[0] for row in rows}
    extra = {"default_table_access_method": "heap", "server_version": SERVER_VERSION}
    rows += [
        (n, v, "as in PostgreSQL", "internal", "string") for n, v in extra.items() if n not in known
    ]
    return rows


PG_CATALOG = (
    _table(1, "pg_namespace", "oid:i nspname:s nspowner:i nspacl:S", namespace_rows),
    _table(
        2,
        "pg_class",
        "oid:i relname:s relnamespace:i reltype:i reloftype:i relowner:i relam:i relfilenode:i "
        "reltablespace:i relpages:i reltuples:f relallvisible:i reltoastrelid:i relhasindex:b "
        "relisshared:b relpersistence:s relkind:s relnatts:i relchecks:i relhasrules:b "
        "relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b "
        "relispopulated:b relreplident:s relispartition:b relacl:S reloptions:S relpartbound:s",
        class_rows,
    ),
    _table(
        3,
        "pg_attribute",
        "attrelid:i attname:s atttypid:i attstattarget:i attlen:i attnum:i attndims:i "
        "attcacheoff:i atttypmod:i attbyval:b attstorage:s attalign:s attcompression:s "
        "attnotnull:b atthasdef:b atthasmissing:b attidentity:s attgenerated:s attisdropped:b "
        "attislocal:b attinhcount:i attcollation:i attacl:S attoptions:S",
        attribute_rows,
    ),
    _table(4, "pg_attrdef", "oid:i adrelid:i adnum:i adbin:s", default_rows),
    _table(
        5,
        "pg_type",
        "oid:i typname:s typnamespace:i typowner:i typlen:i typbyval:b typtype:s typcategory:s "
        "typispreferred:b typisdefined:b typdelim:s typrelid:i typsubscript:s typelem:i "
        "typarray:i typinput:s typoutput:s typalign:s typstorage:s typnotnull:b typbasetype:i "
        "typtypmod:i typndims:i typcollation:i typdefaultbin:s typdefault:s typacl:S",
        type_rows,
    ),
    _table(
        6,
        "pg_index",
        "indexrelid:i indrelid:i indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b "
        "indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b "
        "indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:I indcollation:I "
        "indclass:I indoption:s indexprs:s indpred:s",
        index_rows,
    ),
    _table(
        7,
        "pg_constraint",
        "oid:i conname:s connamespace:i contype:s condeferrable:b condeferred:b convalidated:b "
        "conrelid:i contypid:i conindid:i conparentid:i confrelid:i confupdtype:s confdeltype:s "
        "confmatchtype:s conislocal:b coninhcount:i connoinherit:b conkey:I confkey:I "
        "conpfeqop:I conppeqop:I conffeqop:I confdelsetcols:I conexclop:I conbin:s",
        constraint_rows,
    ),
    _table(
        8,
        "pg_database",
        "oid:i datname:s datdba:i encoding:i datlocprovider:s datistemplate:b datallowconn:b "
        "datconnlimit:i datfrozenxid:i datminmxid:i dattablespace:i datcollate:s datctype:s "
        "daticulocale:s datcollversion:s datacl:S",
        database_rows,
    ),
    _table(
        9,
        "pg_roles",
        "rolname:s rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit:i rolpassword:s rolvaliduntil:s rolbypassrls:b "
        "rolconfig:S oid:i",
        role_rows,
    ),
    _table(
        10,
        "pg_authid",
        "rolname:s rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit:i rolpassword:s rolvaliduntil:s rolbypassrls:b "
        "rolconfig:S oid:i",
        role_rows,
    ),
    _table(
        11,
        "pg_user",
        "usename:s usesysid:i usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:s "
        "valuntil:s useconfig:S",
        user_rows,
    ),
    _table(12, "pg_auth_members", "roleid:i member:i grantor:i admin_option:b", member_rows),
    _table(
        13,
        "pg_proc",
        "oid:i proname:s pronamespace:i proowner:i prolang:i prokind:s proisstrict:b "
        "proretset:b provolatile:s pronargs:i prorettype:i proargtypes:I proargnames:S prosrc:s",
    ),
    _table(14, "pg_description", "objoid:i classoid:i objsubid:i description:s", description_rows),
    _table(15, "pg_shdescription", "objoid:i classoid:i description:s"),
    _table(16, "pg_settings", "name:s setting:s short_desc:s context:s vartype:s", _settings),
    _table(17, "pg_am", "oid:i amname:s amhandler:s amtype:s", _methods),
    _table(
        18,
        "pg_collation",
        "oid:i collname:s collnamespace:i collowner:i collprovider:s collisdeterministic:b "
        "collencoding:i collcollate:s collctype:s colliculocale:s collversion:s",
        _collations,
    ),
    _table(
        19,
        "pg_tables",
        "schemaname:s tablename:s tableowner:s tablespace:s hasindexes:b hasrules:b "
        "hastriggers:b rowsecurity:b",
        table_rows,
    ),
    _table(
        20,
        "pg_indexes",
        "schemaname:s tablename:s indexname:s tablespace:s indexdef:s",
        indexes_rows,
    ),
    _table(21, "pg_views", "schemaname:s viewname:s viewowner:s definition:s"),
    _table(
        22,
        "pg_range",
        "rngtypid:i rngsubtype:i rngmultitypid:i rngcollation:i rngsubopc:i rngcanonical:s "
        "rngsubdiff:s",
    ),
    _table(23, "pg_enum", "oid:i enumtypid:i enumsortorder:f enumlabel:s", enum_rows),
    _table(24, "pg_inherits", "inhrelid:i inhparent:i inhseqno:i inhdetachpending:b"),
    _table(
        25,
        "pg_policy",
        "oid:i polname:s polrelid:i polcmd:s polpermissive:b polroles:I polqual:s polwithcheck:s",
    ),
    _table(
        26,
        "pg_statistic_ext",
        "oid:i stxrelid:i stxname:s stxnamespace:i stxowner:i stxstattarget:i stxkeys:I "
        "stxkind:S stxexprs:s",
    ),
    _table(
        27,
        "pg_publication",
        "oid:i pubname:s pubowner:i puballtables:b pubinsert:b pubupdate:b pubdelete:b "
        "pubtruncate:b pubviaroot:b",
    ),
    _table(28, "pg_publication_rel", "oid:i prpubid:i prrelid:i prqual:s prattrs:I"),
    _table(29, "pg_publication_namespace", "oid:i pnpubid:i pnnspid:i"),
    _table(
        30,
        "pg_trigger",
        "oid:i tgrelid:i tgparentid:i tgname:s tgfoid:i tgtype:i tgenabled:s tgisinternal:b "
        "tgconstrrelid:i tgconstrindid:i tgconstraint:i tgdeferrable:b tginitdeferred:b "
        "tgnargs:i",
    ),
    _table(31, "pg_opclass", "oid:i opcname:s opcmethod:i opcnamespace:i opcdefault:b"),
    _table(32, "pg_tablespace", "oid:i spcname:s spcowner:i spcacl:S spcoptions:S"),
    _table(
        33,
        "pg_sequence",
        "seqrelid:i seqtypid:i seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b",
        sequence_rows,
    ),
    _table(34, "pg_extension", "oid:i extname:s extowner:i extnamespace:i extversion:s"),
    _table(35, "pg_language", "oid:i lanname:s lanowner:i lanispl:b lanpltrusted:b"),
    _table(36, "pg_rewrite", "oid:i rulename:s ev_class:i ev_type:s ev_enabled:s is_instead:b"),
    _table(
        37,
        "pg_depend",
        "classid:i objid:i objsubid:i refclassid:i refobjid:i refobjsubid:i deptype:s",
    ),
    _table(38, "pg_matviews", "schemaname:s matviewname:s matviewowner:s definition:s"),
    _table(39, "pg_partitioned_table", "partrelid:i partstrat:s partnatts:i"),
    _table(40, "pg_foreign_table", "ftrelid:i ftserver:i ftoptions:S"),
)
