"""Object ids: what clients call things by.

A table's is its descriptor's id, as are those of databases and schemas. What has no id of its own
(an index, a constraint, a user) has one that is computed from what it is, so that it is the same on
every node and after every restart. Those of types are `results.client_types`'.
"""

from __future__ import annotations

from zlib import crc32

PG_CATALOG = 11
INFORMATION_SCHEMA = 13_000
BTREE = 403
HEAP = 2
PG_CLASS = 1259
PG_CONSTRAINT = 2606
PG_TYPE = 1247
PG_NAMESPACE = 2615
PG_REWRITE = 2618
PG_EXTENSION = 3079
PG_ATTRDEF = 2604

_DERIVED = 1 << 31
"""Derived ids lie above it: descriptors would have to number two billion to meet them."""


def derived(*words: object) -> int:
    return _DERIVED | crc32("/".join(map(str, words)).encode())


def index_oid(table_id: int, index_id: int) -> int:
    return derived("index", table_id, index_id)


def constraint_oid(table_id: int, name: str) -> int:
    return derived("constraint", table_id, name)


def user_oid(name: str) -> int:
    return 10 if name == "root" else derived("user", name)


_WELL_KNOWN = {
    "pg_class": PG_CLASS,
    "pg_constraint": PG_CONSTRAINT,
    "pg_type": PG_TYPE,
    "pg_namespace": PG_NAMESPACE,
    "pg_rewrite": PG_REWRITE,
    "pg_extension": PG_EXTENSION,
    "pg_attrdef": PG_ATTRDEF,
}
"""Tables of pg_catalog whose ids PostgreSQL's clients know by heart."""


def relation_oid(id: int, name: str) -> int:
    """Returns the oid of a table or view by its descriptor's id and name. Ids of virtual tables are
    negative."""
    if id > 0:
        return id
    return _WELL_KNOWN.get(name) or derived("virtual", id)
