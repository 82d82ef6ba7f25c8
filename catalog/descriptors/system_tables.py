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

from ..values.column_types import BOOL, BYTES, FLOAT8, INT8, STRING, TIMESTAMPTZ, ColumnType
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


DESCRIPTOR = _table(3, "descriptor", {"id": INT8}, {"descriptor": BYTES})
NAMESPACE = _table(
    4,
    "namespace",
    {"parent_id": INT8, "parent_schema_id": INT8, "name": STRING},
    {"id": INT8},
)
LEASE = _table(
    5,
    "lease",
    {"descriptor_id": INT8, "version": INT8, "node_id": INT8, "session_id": STRING},
    {"expiration": INT8},
)
SQLLIVENESS = _table(
    6,
    "sqlliveness",
    {"session_id": STRING},
    {"expiration": INT8, "node_id": INT8, "epoch": INT8},
)
_JOB_COLUMNS = {
    "kind": STRING,
    "description": STRING,
    "state": STRING,
    "payload": BYTES,
    "created": TIMESTAMPTZ,
    "finished": TIMESTAMPTZ,
    "claim_session_id": STRING,
    "claim_node_id": INT8,
    "epoch": INT8,
    "error": STRING,
    "started": TIMESTAMPTZ,
    "owner": STRING,
}
_JOB_NULLABLE = "finished claim_session_id claim_node_id error started owner"
JOBS = _table(7, "jobs", {"id": INT8}, _JOB_COLUMNS, nullable=_JOB_NULLABLE)
SETTINGS = _table(8, "settings", {"name": STRING}, {"value": STRING})
ID_SEQUENCE = _table(9, "id_sequence", {"name": STRING}, {"next": INT8})
JOB_PROGRESS = _table(10, "job_progress", {"id": INT8}, {"progress": BYTES, "epoch": INT8})
USERS = _table(
    11, "users", {"name": STRING}, {"verifier": STRING, "login": BOOL}, nullable="verifier login"
)
PRIVILEGES = _table(
    12,
    "privileges",
    {"object_id": INT8, "grantee": STRING},
    {"privileges": INT8, "grantable": INT8, "owner": BOOL},  # `grantable` is not read: 0
)
ROLE_MEMBERS = _table(13, "role_members", {"role": STRING, "member": STRING}, {"admin": BOOL})
"""`admin` is not read, and false."""
WEB_SESSIONS = _table(
    15,
    "web_sessions",
    {"token_hash": BYTES},
    {"user": STRING, "created": TIMESTAMPTZ, "expires": TIMESTAMPTZ},
)

VIEW_DEPENDENCY = _table(16, "view_dependency", {"table_id": INT8, "view_id": INT8}, {})
SECRETS = _table(20, "secrets", {"name": STRING}, {"value": BYTES})

FINISHED_JOBS = _table(
    17,
    "finished_jobs",
    {"finished": TIMESTAMPTZ, "id": INT8},
    {name: type for name, type in _JOB_COLUMNS.items() if name != "finished"},
    nullable=_JOB_NULLABLE.replace("finished ", ""),
)
JOB_ENDS = _table(18, "job_ends", {"id": INT8}, {"finished": TIMESTAMPTZ})

SINK_PLACES = _table(21, "sink_places", {"node_id": INT8, "path": STRING}, {"owner": STRING})

FEED_WAITS = _table(40, "feed_waits", {"job_id": INT8, "ticket": INT8}, {"wanted": INT8})
SUBSCRIPTIONS = _table(
    41,
    "subscriptions",
    {"name": STRING},
    {"owner": STRING, "definition": BYTES, "acknowledged": INT8, "error": STRING},
    nullable="acknowledged error",
)

EXTERNAL_CONNECTIONS = _table(
    42,
    "external_connections",
    {"name": STRING},
    {"owner": STRING, "uri": STRING, "sealed": BYTES},
    nullable="sealed",
)

FEED_BREACHES = _table(
    43,
    "feed_breaches",
    {"job_id": INT8, "at": TIMESTAMPTZ},
    {"p99_ms": FLOAT8, "slo_ms": FLOAT8, "stage": STRING, "commits": INT8},
)

DEAD_LETTERS = _table(
    44,
    "dead_letters",
    {"job_id": INT8, "table_id": INT8, "row_key": BYTES, "mvcc_timestamp": INT8},
    {
        "table_name": STRING,
        "key": STRING,
        "deleted": BOOL,
        "message": STRING,
        "message_bytes": INT8,
        "error": STRING,
        "refused": TIMESTAMPTZ,
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
"""The descriptors that `bootstrap` publishes as version 1."""
