"""The bodies of requests and replies, and how requests are read.

The structs here are what the OpenAPI document describes. Replies with rows are written by
`json_replies` in slices, to the same shape.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from types import ModuleType
from typing import Annotated, Literal, TypeVar

import msgspec
from fastapi import Request
from starlette.exceptions import HTTPException

from ...catalog.values.errors import SQLError
from ...kvlayer.raw import TTL_SECONDS_MAX, IngestedEntry
from ..json_values import JsonValue
from .problems import Problem

JSON = "application/json"
MSGPACK = "application/msgpack"
JSON_LINES = "application/x-ndjson"
ARROW_STREAM = "application/vnd.apache.arrow.stream"

BODY_BYTES_MAX = 16 * 1024 * 1024
"""The size of a JSON body, which is held whole. A larger one is a load, and is sent as one."""

DRAINED_BODIES_MAX = 4
"""How much of a body is read and dropped once the request has failed, in bodies as long as the
longest that is taken. A client that is cut off while it sends may never see the answer."""

T = TypeVar("T")


class SqlRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One or more statements. `params` are the values of `$1`, `$2`, … in all of them.
    `transaction` is of POST /v1/transactions; it has a database of its own."""

    sql: str
    params: list[JsonValue] = []
    database: str = "defaultdb"
    transaction: str | None = None


class LoginRequest(msgspec.Struct, forbid_unknown_fields=True):
    """`ttl_seconds` is how long the token is to be good for."""

    user: str
    password: str
    ttl_seconds: Annotated[int, msgspec.Meta(ge=1, le=30 * 86_400)] = 86_400


class LoginReply(msgspec.Struct):
    token: str
    user: str
    expires: datetime


class TransactionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A transaction that is rolled back when nobody uses it for `idle_seconds`."""

    database: str = "defaultdb"
    isolation: Literal["serializable", "repeatable read", "read committed"] = "serializable"
    read_only: bool = False
    idle_seconds: Annotated[float, msgspec.Meta(gt=0, le=3600)] = 30.0


class TransactionReply(msgspec.Struct):
    transaction: str
    idle_seconds: float


class EndReply(msgspec.Struct, omit_defaults=True):
    """COMMIT, or ROLLBACK of what was asked to be or had failed."""

    tag: str
    commit_timestamp: str | None = None


class ListReply(msgspec.Struct):
    """Things as objects: the columns of the SHOW statement that lists them."""

    items: list[dict[str, JsonValue]]


class ItemReply(msgspec.Struct):
    item: dict[str, JsonValue]


class ChangefeedRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A changefeed of tables into a sink. An option without a value is null."""

    tables: Annotated[list[str], msgspec.Meta(min_length=1)]
    into: str
    options: dict[str, str | None] = {}
    database: str = "defaultdb"


class ChangefeedReply(msgspec.Struct):
    job_id: int


class ReplicationRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A replication of a keyspace, or of its keys from one to another, as CREATE REPLICATION takes
    them: a key is its text, or hex behind `\\x`."""

    name: str
    keyspace: str
    into: str
    from_key: str | None = None
    to_key: str | None = None
    options: dict[str, str] = {}
    database: str = "defaultdb"


class SettingRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The value as SET CLUSTER SETTING takes it."""

    value: str


class ColumnReply(msgspec.Struct):
    name: str
    type: str


class ResultReply(msgspec.Struct, omit_defaults=True):
    """One statement's outcome. `columns` and `rows` stand only where it returns rows."""

    tag: str
    row_count: int
    commit_timestamp: str | None = None
    notice: str | None = None
    warnings: list[str] | None = None
    columns: list[ColumnReply] | None = None
    rows: list[list[JsonValue]] | None = None


class SqlReply(msgspec.Struct):
    """The outcomes of a text's statements, in order. A reply that fails under way ends in
    `"error"`, a problem, instead of its last `tag` and `row_count`, and is broken off."""

    results: list[ResultReply]


class MirrorRequest(msgspec.Struct, forbid_unknown_fields=True):
    """One SELECT in DuckDB's SQL, and the mirror to read, as its changefeed names it.

    With `wait_for` it is read when its feeds have come to that timestamp, a `commit_timestamp` of
    an earlier reply, or to all that is committed when the request arrives: `now`."""

    mirror: str
    sql: str
    params: list[JsonValue] = []
    wait_for: str | None = None


class MirrorReply(msgspec.Struct):
    row_count: int
    columns: list[ColumnReply]
    rows: list[list[JsonValue]]


class LoadReply(msgspec.Struct, omit_defaults=True):
    """`commit_timestamp` is that of the last transaction; no row, no timestamp."""

    rows: int
    commit_timestamp: str | None = None


class RelaxedDomain(msgspec.Struct, kw_only=True):
    """The progress of a domain's log; ids are 16 hexadecimal digits. `last_cut` is None while no
    state is known, and `gaps` say what is missing."""

    domain: str
    last_cut: str | None
    pending: int
    gaps: list[str]


class RelaxedReply(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The outcome of lines of a relaxed log. `commit_timestamp` is the last change set's."""

    lines: int
    change_sets: int
    commit_timestamp: str | None = None
    domains: list[RelaxedDomain]


_TTL = Annotated[int, msgspec.Meta(ge=1, le=TTL_SECONDS_MAX)]


class RawPair(msgspec.Struct, forbid_unknown_fields=True):
    """A key of a raw keyspace and its value, in base64."""

    key: bytes
    value: bytes


class RawBatch(msgspec.Struct, forbid_unknown_fields=True):
    """Pairs to put, in order."""

    pairs: list[RawPair]
    ttl_seconds: _TTL | None = None


class RawSwap(msgspec.Struct, forbid_unknown_fields=True):
    """`value` is put, or the key deleted where that is null, if the key's value is `expected`; null
    is to be absent."""

    key: bytes
    expected: bytes | None
    value: bytes | None
    ttl_seconds: _TTL | None = None


class RawOpening(msgspec.Struct, forbid_unknown_fields=True):
    """The source that sends a replica's entries, by a name of its own.

    Where it sends parts of them each by itself, `task` is one of them and `whole` all of them: the
    first key, and the first behind the last, which is null behind the last of all.
    """

    source: str
    task: tuple[bytes, bytes | None] | None = None
    whole: tuple[bytes, bytes | None] | None = None


class RawLeading(msgspec.Struct, forbid_unknown_fields=True):
    """The replica is to lead the keyspace of `group` in the epoch `term`, once it has everything of
    its source up to `barrier`. `oracle` is the store that keeps the placement, and `secret` proves
    that the leader hands it over."""

    source: str
    group: str
    term: int
    barrier: int
    oracle: str
    secret: bytes


class RawIngest(msgspec.Struct, forbid_unknown_fields=True):
    """Entries of a source in its epoch. `origin` is a number of the store that wrote the entries;
    the versions of a key are in the order of their timestamps. At or below `resolved` nothing is
    still to come; `note` is kept for the source."""

    source: str
    epoch: int
    origin: int
    entries: list[IngestedEntry] = []
    resolved: int | None = None
    note: bytes | None = None


class RawReplica(msgspec.Struct):
    """The state of a replica: its source's epoch, and up to where it has everything. `taken`
    entries of an ingest were new, and `known` were there."""

    epoch: int
    resolved: int
    note: bytes
    taken: int
    known: int


class RawWritten(msgspec.Struct, omit_defaults=True):
    """A write that is durable; `timestamp` is that of the last commit."""

    timestamp: str | None = None


class RawSwapped(msgspec.Struct):
    """The outcome of a swap: the key's value before, and whether and when it was swapped."""

    swapped: bool
    previous: bytes | None
    timestamp: str | None


class RawScan(msgspec.Struct, omit_defaults=True):
    """Pairs in key order. `next` is the key with which to go on, where there may be more."""

    pairs: list[RawPair]
    next: bytes | None = None


class RawDeleted(msgspec.Struct, omit_defaults=True):
    """The number of keys that were deleted, and the timestamp of the last deletion."""

    deleted: int
    timestamp: str | None = None


class TableReply(msgspec.Struct, kw_only=True):
    """A table as of a timestamp, and its Arrow schema (an IPC message, in base64)."""

    store_id: str
    table_id: int
    as_of: int
    schema: str


class SpansReply(TableReply):
    """The same, and the table's spans."""

    spans: list[str]


class PositionRequest(msgspec.Struct, forbid_unknown_fields=True):
    """A reader begins at a timestamp, or now."""

    at: int | None = None


class PositionReply(msgspec.Struct, kw_only=True):
    """A reader's position, of which store and table it is, and where it stands."""

    id: str
    store_id: str
    table_id: int
    at: int


class NextReply(msgspec.Struct, kw_only=True):
    """Up to where a reader may read, whether there is anything in between, the Arrow schema of
    those rows, and since when it holds."""

    upto: int
    changed: bool
    schema: str
    altered_at: int


class AdvanceRequest(msgspec.Struct, forbid_unknown_fields=True):
    """The reader is done with everything at or below `upto`."""

    upto: int


class Health(msgspec.Struct, kw_only=True, omit_defaults=True):
    """`feeds` counts the changefeeds that have not ended. A joined node has no log of its own, and
    so no `durable_index`."""

    status: str
    store_id: str
    version: str
    durable_index: int | None = None
    feeds: int | None = None
    reason: str | None = None


BODIES = (
    SqlRequest,
    LoginRequest,
    LoginReply,
    TransactionRequest,
    TransactionReply,
    EndReply,
    ListReply,
    ItemReply,
    ChangefeedRequest,
    ReplicationRequest,
    ChangefeedReply,
    SettingRequest,
    SqlReply,
    MirrorRequest,
    MirrorReply,
    LoadReply,
    RelaxedReply,
    RawBatch,
    RawSwap,
    RawOpening,
    RawIngest,
    RawReplica,
    RawWritten,
    RawSwapped,
    RawScan,
    RawDeleted,
    TableReply,
    SpansReply,
    PositionRequest,
    PositionReply,
    NextReply,
    AdvanceRequest,
    Health,
    Problem,
)


def media_type(request: Request) -> str:
    """The body's type, without parameters. Raises HTTPException for a compressed body."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise HTTPException(415, "a compressed body is not supported")
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_json(request: Request, type: type[T], *, bytes_max: int | None = None) -> T:
    """The body as `type`, of `bytes_max` or what bodies may have. Raises HTTPException 415, 400 or
    422, and SQLError 54000."""
    bytes_max = bytes_max or BODY_BYTES_MAX
    if media_type(request) != JSON:
        # Also what keeps web pages of other origins out: a browser asks before it sends this type.
        await drain(request.stream(), bytes_max)
        raise HTTPException(415, f"the body must be {JSON}")
    return _decoded(await read_whole(request.stream(), bytes_max), msgspec.json, type, "JSON")


async def read_msgpack(request: Request, type: type[T]) -> T:
    """The body, which is in MessagePack, as `type`. Raises as `read_json` does."""
    body = await read_whole(request.stream(), BODY_BYTES_MAX)
    return _decoded(body, msgspec.msgpack, type, "MessagePack")


def _decoded(body: bytearray, format: ModuleType, type: type[T], name: str) -> T:
    try:
        found: T = format.decode(body, type=type)
    except msgspec.ValidationError as error:
        raise HTTPException(422, f"the body is not as it should be: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"the body is not {name}: {error}") from error
    return found


async def read_whole(chunks: AsyncIterator[bytes], bytes_max: int) -> bytearray:
    """All of a body. Raises SQLError 54000 for one of more than `bytes_max` bytes."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > bytes_max:
            await drain(chunks, bytes_max)
            raise SQLError(
                "54000",
                f"the body has more than {bytes_max} bytes",
                hint=None
                if bytes_max < BODY_BYTES_MAX
                else "Load rows through /v1/tables/{table}/rows, which takes any number of them.",
            )
    return body


async def drain(chunks: AsyncIterator[bytes], bytes_max: int | None = None) -> None:
    """Reads what is left of a body, within reason. `bytes_max` is what the body may have."""
    drained_max = DRAINED_BODIES_MAX * (bytes_max or BODY_BYTES_MAX)
    dropped = 0
    async for chunk in chunks:
        dropped += len(chunk)
        if dropped > drained_max:
            return
