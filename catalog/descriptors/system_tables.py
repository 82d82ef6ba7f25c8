"""The system's own tables: fixed ids, fixed columns, and the rows that a new store begins with.

    descriptor         id -> descriptor                                every version of each
    namespace          (parent_id, parent_schema_id, name) -> id       0 where there is no parent
    lease              (descriptor_id, version, node_id, session_id) -> expiration
    sqlliveness        session_id -> expiration, node_id, epoch        which sessions live
    jobs               id -> kind, description, state, payload, claim, error    not those that ended
    job_progress       id -> progress, epoch                           written often, so apart
    finished_jobs      (finished, id) -> the same as jobs              in order of their ends
    job_ends           id -> finished                                  where to find one of those
    settings           name -> value                                   what SET changed
    id_sequence        name -> next                                    ids are never used again
    users              name -> verifier, login                         roles, and who may log in
    privileges         (object_id, grantee) -> privileges, ...         see `rights`
    role_members       (role, member) -> admin
    web_sessions       token_hash -> user, created, expires            who is logged in over HTTP
    view_dependency    (table_id, view_id)                            see `view_dependencies`
    secrets            (name) -> value                                see `secrets`
    sink_places        (node_id, path) -> owner                       see `targets.places` of feeds
    feed_waits         (job_id, ticket) -> wanted                      see `jobs.waits` of feeds
    external_connections  name -> owner, uri, sealed      see `connections` of feeds
    subscriptions      name -> owner, definition, acknowledged, error  see `subscriptions` of feeds

They live in the same key space as all tables, under ids below `FIRST_USER_ID`, are read and written
by the same codec, and can be queried. Timestamps in them are the store's 64-bit ones. Their
descriptors never change within a format version of the data folder, so they are read from here.
"""

from __future__ import annotations

from ..values.column_types import ColumnType
from ..values.type_kinds import TypeKind
from .descriptor import (
    Column,
    DatabaseDescriptor,
    Descriptor,
    SchemaDescriptor,
    TableDescriptor,
)

FIRST_USER_ID = 100

SYSTEM_DATABASE_ID = 1
SYSTEM_PUBLIC_ID = 2
DEFAULT_DATABASE_ID = 50
DEFAULT_PUBLIC_ID = 51

PUBLIC_SCHEMA = "public"
SYSTEM_DATABASE = "system"
DEFAULT_DATABASE = "defaultdb"

DESCRIPTOR_ID_SEQUENCE = "descriptor_id"

_BOOL = ColumnType(TypeKind.BOOL)
_INT8 = ColumnType(TypeKind.INT8)
_STRING = ColumnType(TypeKind.STRING)
_BYTES = ColumnType(TypeKind.BYTES)
_TIMESTAMPTZ = ColumnType(TypeKind.TIMESTAMPTZ)
_FLOAT8 = ColumnType(TypeKind.FLOAT8)


def _table(
    id: int,
    name: str,
    key: dict[str, ColumnType],
    values: dict[str, ColumnType],
    nullable: str = "",
) -> TableDescriptor:
    names = {**key, **values}
    columns = tuple(
        Column(id=place, name=name, type=type, nullable=name in nullable.split())
        for place, (name, type) in enumerate(names.items(), start=1)
    )
    return TableDescriptor(
        id=id,
        name=name,
        database_id=SYSTEM_DATABASE_ID,
        schema_id=SYSTEM_PUBLIC_ID,
        columns=columns,
        primary_key=tuple(range(1, len(key) + 1)),
        next_column_id=len(columns) + 1,
    )


DESCRIPTOR = _table(3, "descriptor", {"id": _INT8}, {"descriptor": _BYTES})
NAMESPACE = _table(
    4,
    "namespace",
    {"parent_id": _INT8, "parent_schema_id": _INT8, "name": _STRING},
    {"id": _INT8},
)
LEASE = _table(
    5,
    "lease",
    {"descriptor_id": _INT8, "version": _INT8, "node_id": _INT8, "session_id": _STRING},
    {"expiration": _INT8},
)
SQLLIVENESS = _table(
    6,
    "sqlliveness",
    {"session_id": _STRING},
    {"expiration": _INT8, "node_id": _INT8, "epoch": _INT8},
)
_JOB_COLUMNS = {
    "kind": _STRING,
    "description": _STRING,
    "state": _STRING,
    "payload": _BYTES,
    "created": _TIMESTAMPTZ,
    "finished": _TIMESTAMPTZ,
    "claim_session_id": _STRING,
    "claim_node_id": _INT8,
    "epoch": _INT8,
    "error": _STRING,
    "started": _TIMESTAMPTZ,
    "owner": _STRING,
}
_JOB_NULLABLE = "finished claim_session_id claim_node_id error started owner"
JOBS = _table(7, "jobs", {"id": _INT8}, _JOB_COLUMNS, nullable=_JOB_NULLABLE)
SETTINGS = _table(8, "settings", {"name": _STRING}, {"value": _STRING})
ID_SEQUENCE = _table(9, "id_sequence", {"name": _STRING}, {"next": _INT8})
JOB_PROGRESS = _table(10, "job_progress", {"id": _INT8}, {"progress": _BYTES, "epoch": _INT8})
USERS = _table(
    11, "users", {"name": _STRING}, {"verifier": _STRING, "login": _BOOL}, nullable="verifier login"
)
PRIVILEGES = _table(
    12,
    "privileges",
    {"object_id": _INT8, "grantee": _STRING},
    {"privileges": _INT8, "grantable": _INT8, "owner": _BOOL},
)
ROLE_MEMBERS = _table(13, "role_members", {"role": _STRING, "member": _STRING}, {"admin": _BOOL})
WEB_SESSIONS = _table(
    15,
    "web_sessions",
    {"token_hash": _BYTES},
    {"user": _STRING, "created": _TIMESTAMPTZ, "expires": _TIMESTAMPTZ},
)

VIEW_DEPENDENCY = _table(16, "view_dependency", {"table_id": _INT8, "view_id": _INT8}, {})
SECRETS = _table(20, "secrets", {"name": _STRING}, {"value": _BYTES})

FINISHED_JOBS = _table(
    17,
    "finished_jobs",
    {"finished": _TIMESTAMPTZ, "id": _INT8},
    {name: type for name, type in _JOB_COLUMNS.items() if name != "finished"},
    nullable=_JOB_NULLABLE.replace("finished ", ""),
)
JOB_ENDS = _table(18, "job_ends", {"id": _INT8}, {"finished": _TIMESTAMPTZ})

SINK_PLACES = _table(21, "sink_places", {"node_id": _INT8, "path": _STRING}, {"owner": _STRING})

FEED_WAITS = _table(40, "feed_waits", {"job_id": _INT8, "ticket": _INT8}, {"wanted": _INT8})
SUBSCRIPTIONS = _table(
    41,
    "subscriptions",
    {"name": _STRING},
    {"owner": _STRING, "definition": _BYTES, "acknowledged": _INT8, "error": _STRING},
    nullable="acknowledged error",
)

EXTERNAL_CONNECTIONS = _table(
    42,
    "external_connections",
    {"name": _STRING},
    {"owner": _STRING, "uri": _STRING, "sealed": _BYTES},
    nullable="sealed",
)

FEED_BREACHES = _table(
    43,
    "feed_breaches",
    {"job_id": _INT8, "at": _TIMESTAMPTZ},
    {"p99_ms": _FLOAT8, "slo_ms": _FLOAT8, "stage": _STRING, "commits": _INT8},
)

DEAD_LETTERS = _table(
    44,
    "dead_letters",
    {"job_id": _INT8, "table_id": _INT8, "row_key": _BYTES, "mvcc_timestamp": _INT8},
    {
        "table_name": _STRING,
        "key": _STRING,
        "deleted": _BOOL,
        "message": _STRING,
        "message_bytes": _INT8,
        "error": _STRING,
        "refused": _TIMESTAMPTZ,
    },
    nullable="message",
)

SYSTEM_TABLES = (
    DESCRIPTOR,
    NAMESPACE,
    LEASE,
    SQLLIVENESS,
    JOBS,
    SETTINGS,
    ID_SEQUENCE,
    JOB_PROGRESS,
    USERS,
    PRIVILEGES,
    ROLE_MEMBERS,
    WEB_SESSIONS,
    VIEW_DEPENDENCY,
    FINISHED_JOBS,
    JOB_ENDS,
    SECRETS,
    SINK_PLACES,
    FEED_WAITS,
    SUBSCRIPTIONS,
    EXTERNAL_CONNECTIONS,
    FEED_BREACHES,
    DEAD_LETTERS,
)

INITIAL_DESCRIPTORS: tuple[Descriptor, ...] = (
    DatabaseDescriptor(id=SYSTEM_DATABASE_ID, name=SYSTEM_DATABASE),
    SchemaDescriptor(id=SYSTEM_PUBLIC_ID, name=PUBLIC_SCHEMA, database_id=SYSTEM_DATABASE_ID),
    *SYSTEM_TABLES,
    DatabaseDescriptor(id=DEFAULT_DATABASE_ID, name=DEFAULT_DATABASE),
    SchemaDescriptor(id=DEFAULT_PUBLIC_ID, name=PUBLIC_SCHEMA, database_id=DEFAULT_DATABASE_ID),
)
"""What `bootstrap` publishes as version 1."""
