"""The tables of pg_catalog: PostgreSQL 15's columns, and where rows come from."""

from __future__ import annotations

from collections.abc import Sequence

from ....catalog.values.identifiers import RESERVED
from ...analyze.calls.oids import BTREE, HEAP, user_oid
from ...analyze.calls.oids import PG_CATALOG as NAMESPACE
from ...results.results import Row
from ...runtime.introspection_context import IntrospectionContext
from ..sequences import sequence_rows, sequence_state_rows
from ..virtual_table import RowSource, virtual_tables
from .activity import activity_rows
from .columns import EMPTY_TABLES, TABLES
from .functions import cast_rows, function_rows, operator_rows
from .namespaces import (
    database_rows,
    default_acl_rows,
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
from .session_tables import (
    cursor_rows,
    lock_rows,
    prepared_rows,
    setting_rows,
)
from .types import enum_rows, type_rows
from .views import dependency_rows, extension_rows, rule_rows, view_rows


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


_ROWS: dict[str, RowSource] = {
    "pg_namespace": namespace_rows,
    "pg_class": class_rows,
    "pg_attribute": attribute_rows,
    "pg_attrdef": default_rows,
    "pg_type": type_rows,
    "pg_index": index_rows,
    "pg_constraint": constraint_rows,
    "pg_database": database_rows,
    "pg_roles": role_rows,
    "pg_authid": role_rows,
    "pg_user": user_rows,
    "pg_auth_members": member_rows,
    "pg_proc": function_rows,
    "pg_operator": operator_rows,
    "pg_cast": cast_rows,
    "pg_description": description_rows,
    "pg_settings": setting_rows,
    "pg_am": _methods,
    "pg_collation": _collations,
    "pg_tables": table_rows,
    "pg_indexes": indexes_rows,
    "pg_views": view_rows,
    "pg_enum": enum_rows,
    "pg_tablespace": tablespace_rows,
    "pg_sequence": sequence_rows,
    "pg_rewrite": rule_rows,
    "pg_depend": dependency_rows,
    "pg_stat_activity": activity_rows,
    "pg_sequences": sequence_state_rows,
    "pg_extension": extension_rows,
    "pg_locks": lock_rows,
    "pg_prepared_statements": prepared_rows,
    "pg_cursors": cursor_rows,
    "pg_default_acl": default_acl_rows,
    "pg_get_keywords": _keywords,
}
"""The source of the rows of each table that has any."""

PG_CATALOG = virtual_tables("pg_catalog", -200, TABLES + EMPTY_TABLES, _ROWS)
