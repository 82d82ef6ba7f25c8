"""The tables of pg_catalog: PostgreSQL 15's columns, and where rows come from."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.values.column_types import ColumnType, array_of
from ....catalog.values.identifiers import RESERVED
from ....catalog.values.type_kinds import CatalogName, TypeKind
from ...analyze.calls.oids import BTREE, HEAP, user_oid
from ...analyze.calls.oids import PG_CATALOG as NAMESPACE
from ...results.results import BOOL, INT8, STRING, TIMESTAMPTZ, Row
from ...runtime.introspection_context import IntrospectionContext
from ..sequences import sequence_rows, sequence_state_rows
from ..virtual_table import RowSource, VirtualTable
from .activity import activity_rows
from .empty_tables import EMPTY_TABLES
from .functions import cast_rows, function_rows, operator_rows
from .namespaces import (
    database_rows,
    default_acl_rows,
    group_rows,
    indexes_rows,
    member_rows,
    namespace_rows,
    role_rows,
    table_rows,
    tablespace_rows,
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
from .session_tables import cursor_rows, lock_rows, prepared_rows
from .settings import setting_rows
from .statistics import STATISTICS
from .time_zones import abbreviation_rows, zone_rows
from .types import enum_rows, type_rows
from .views import dependency_rows, extension_rows, rule_rows, view_rows

FLOAT8 = ColumnType(TypeKind.FLOAT8)
NUMBERS = array_of(INT8)
TEXTS = array_of(STRING)
BYTES = ColumnType(TypeKind.BYTES)
INTERVAL = ColumnType(TypeKind.INTERVAL)

OID = ColumnType(TypeKind.INT8, catalog_name=CatalogName.OID)
CHAR = ColumnType(TypeKind.STRING, catalog_name=CatalogName.CHAR)

VECTOR = ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.INT2VECTOR)
OIDS = ColumnType(TypeKind.ARRAY, element=INT8, catalog_name=CatalogName.OIDVECTOR)

_LETTERS = {
    "b": BOOL, "y": BYTES, "i": INT8, "o": OID, "s": STRING, "c": CHAR, "f": FLOAT8, "I": NUMBERS,
    "O": array_of(OID), "S": TEXTS, "v": VECTOR, "V": OIDS, "t": TIMESTAMPTZ, "n": INTERVAL,
}  # fmt: skip


async def _nothing(context: IntrospectionContext) -> Sequence[Row]:
    return ()


def _table(number: int, name: str, columns: str, rows: RowSource = _nothing) -> VirtualTable:
    """`columns` are names, each with the letter of its type: `oid:o relname:s`."""
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


async def _keywords(context: IntrospectionContext) -> Sequence[Row]:
    """Rows of `pg_get_keywords()`: the words that are names only in quotes."""
    return [(word, "R", False, "reserved", "requires AS") for word in sorted(RESERVED)]


PG_CATALOG = (
    _table(1, "pg_namespace", "oid:o nspname:s nspowner:o nspacl:S", namespace_rows),
    _table(
        2,
        "pg_class",
        "oid:o relname:s relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o "
        "reltablespace:o relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b "
        "relisshared:b relpersistence:c relkind:c relnatts:i relchecks:i relhasrules:b "
        "relhastriggers:b relhassubclass:b relrowsecurity:b relforcerowsecurity:b "
        "relispopulated:b relreplident:c relispartition:b relacl:S reloptions:S relpartbound:s "
        "relfrozenxid:i relminmxid:i",
        class_rows,
    ),
    _table(
        3,
        "pg_attribute",
        "attrelid:o attname:s atttypid:o attstattarget:i attlen:i attnum:i attndims:i "
        "attcacheoff:i atttypmod:i attbyval:b attstorage:c attalign:c attcompression:c "
        "attnotnull:b atthasdef:b atthasmissing:b attidentity:c attgenerated:c attisdropped:b "
        "attislocal:b attinhcount:i attcollation:o attacl:S attoptions:S "
        "attmissingval:s attfdwoptions:S",
        attribute_rows,
    ),
    _table(4, "pg_attrdef", "oid:o adrelid:o adnum:i adbin:s", default_rows),
    _table(
        5,
        "pg_type",
        "oid:o typname:s typnamespace:o typowner:o typlen:i typbyval:b typtype:c typcategory:c "
        "typispreferred:b typisdefined:b typdelim:c typrelid:o typsubscript:s typelem:o "
        "typarray:o typinput:s typoutput:s typreceive:s typsend:s "
        "typmodin:s typmodout:s typanalyze:s typalign:c typstorage:c typnotnull:b typbasetype:o "
        "typtypmod:i typndims:i typcollation:o typdefaultbin:s typdefault:s typacl:S",
        type_rows,
    ),
    _table(
        6,
        "pg_index",
        "indexrelid:o indrelid:o indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b "
        "indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b "
        "indcheckxmin:b indisready:b indislive:b indisreplident:b indkey:v indcollation:V "
        "indclass:V indoption:v indexprs:s indpred:s",
        index_rows,
    ),
    _table(
        7,
        "pg_constraint",
        "oid:o conname:s connamespace:o contype:c condeferrable:b condeferred:b convalidated:b "
        "conrelid:o contypid:o conindid:o conparentid:o confrelid:o confupdtype:c confdeltype:c "
        "confmatchtype:c conislocal:b coninhcount:i connoinherit:b conkey:I confkey:I "
        "conpfeqop:O conppeqop:O conffeqop:O confdelsetcols:I conexclop:O conbin:s",
        constraint_rows,
    ),
    _table(
        8,
        "pg_database",
        "oid:o datname:s datdba:o encoding:i datlocprovider:c datistemplate:b datallowconn:b "
        "datconnlimit:i datfrozenxid:i datminmxid:i dattablespace:o datcollate:s datctype:s "
        "daticulocale:s datcollversion:s datacl:S",
        database_rows,
    ),
    _table(
        9,
        "pg_roles",
        "rolname:s rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit:i rolpassword:s rolvaliduntil:s rolbypassrls:b "
        "rolconfig:S oid:o",
        role_rows,
    ),
    _table(
        10,
        "pg_authid",
        "rolname:s rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b "
        "rolreplication:b rolconnlimit:i rolpassword:s rolvaliduntil:s rolbypassrls:b "
        "rolconfig:S oid:o",
        role_rows,
    ),
    _table(
        11,
        "pg_user",
        "usename:s usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:s "
        "valuntil:s useconfig:S",
        user_rows,
    ),
    _table(12, "pg_auth_members", "roleid:o member:o grantor:o admin_option:b", member_rows),
    _table(
        13,
        "pg_proc",
        "oid:o proname:s pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o "
        "prosupport:s prokind:c prosecdef:b proleakproof:b proisstrict:b proretset:b "
        "provolatile:c proparallel:c pronargs:i pronargdefaults:i prorettype:o proargtypes:V "
        "proallargtypes:O proargmodes:S proargnames:S proargdefaults:s protrftypes:O prosrc:s "
        "probin:s prosqlbody:s proconfig:S proacl:S",
        function_rows,
    ),
    _table(
        64,
        "pg_operator",
        "oid:o oprname:s oprnamespace:o oprowner:o oprkind:c oprcanmerge:b oprcanhash:b oprleft:o "
        "oprright:o oprresult:o oprcom:o oprnegate:o oprcode:s oprrest:s oprjoin:s",
        operator_rows,
    ),
    _table(
        55,
        "pg_cast",
        "oid:o castsource:o casttarget:o castfunc:o castcontext:c castmethod:c",
        cast_rows,
    ),
    _table(14, "pg_description", "objoid:o classoid:o objsubid:i description:s", description_rows),
    _table(15, "pg_shdescription", "objoid:o classoid:o description:s"),
    _table(
        16,
        "pg_settings",
        "name:s setting:s unit:s category:s short_desc:s extra_desc:s context:s vartype:s "
        "source:s min_val:s max_val:s enumvals:S boot_val:s reset_val:s sourcefile:s sourceline:i "
        "pending_restart:b",
        setting_rows,
    ),
    _table(17, "pg_am", "oid:o amname:s amhandler:s amtype:c", _methods),
    _table(
        18,
        "pg_collation",
        "oid:o collname:s collnamespace:o collowner:o collprovider:c collisdeterministic:b "
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
    _table(21, "pg_views", "schemaname:s viewname:s viewowner:s definition:s", view_rows),
    _table(23, "pg_enum", "oid:o enumtypid:o enumsortorder:f enumlabel:s", enum_rows),
    _table(
        32, "pg_tablespace", "oid:o spcname:s spcowner:o spcacl:S spcoptions:S", tablespace_rows
    ),
    _table(
        33,
        "pg_sequence",
        "seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b",
        sequence_rows,
    ),
    _table(
        36,
        "pg_rewrite",
        "oid:o rulename:s ev_class:o ev_type:c ev_enabled:c is_instead:b ev_qual:s ev_action:s",
        rule_rows,
    ),
    _table(
        37,
        "pg_depend",
        "classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:c",
        dependency_rows,
    ),
    _table(
        41,
        "pg_stat_activity",
        "datid:o datname:s pid:i leader_pid:i usesysid:o usename:s application_name:s "
        "client_addr:s client_hostname:s client_port:i backend_start:t xact_start:t query_start:t "
        "state_change:t wait_event_type:s wait_event:s state:s backend_xid:i backend_xmin:i "
        "query_id:i query:s backend_type:s",
        activity_rows,
    ),
    _table(
        42,
        "pg_sequences",
        "schemaname:s sequencename:s sequenceowner:s data_type:s start_value:i min_value:i "
        "max_value:i increment_by:i cycle:b cache_size:i last_value:i",
        sequence_state_rows,
    ),
    _table(
        34,
        "pg_extension",
        "oid:o extname:s extowner:o extnamespace:o extrelocatable:b extversion:s extconfig:O "
        "extcondition:S",
        extension_rows,
    ),
    *(_table(*empty) for empty in EMPTY_TABLES),
    *(_table(*counted) for counted in STATISTICS),
    _table(
        90,
        "pg_locks",
        "locktype:s database:o relation:o page:i tuple:i virtualxid:s transactionid:s classid:o "
        "objid:o objsubid:i virtualtransaction:s pid:i mode:s granted:b fastpath:b waitstart:t",
        lock_rows,
    ),
    _table(
        91,
        "pg_prepared_statements",
        "name:s statement:s prepare_time:t parameter_types:S from_sql:b generic_plans:i "
        "custom_plans:i",
        prepared_rows,
    ),
    _table(
        92,
        "pg_cursors",
        "name:s statement:s is_holdable:b is_binary:b is_scrollable:b creation_time:t",
        cursor_rows,
    ),
    _table(93, "pg_timezone_names", "name:s abbrev:s utc_offset:n is_dst:b", zone_rows),
    _table(94, "pg_timezone_abbrevs", "abbrev:s utc_offset:n is_dst:b", abbreviation_rows),
    _table(
        44,
        "pg_default_acl",
        "oid:o defaclrole:o defaclnamespace:o defaclobjtype:c defaclacl:S",
        default_acl_rows,
    ),
    _table(45, "pg_group", "groname:s grosysid:o grolist:O", group_rows),
    _table(43, "pg_get_keywords", "word:s catcode:c barelabel:b catdesc:s baredesc:s", _keywords),
)
