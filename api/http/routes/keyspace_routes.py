"""`/v1/keyspaces/{keyspace}/…`: the keys of a raw keyspace.

    PUT    …/keys/ada?ttl=1h      the value is the body, as it is
    GET    …/keys/ada             and so is the answer
    DELETE …/keys/ada
    GET    …/keys?from=a&to=b     {"pairs": [{"key": "YWRh", "value": "MQ=="}]}
    DELETE …/keys?from=a&to=b
    POST   …/batch                {"pairs": [{"key": "YWRh", "value": "MQ=="}], "ttl_seconds": 60}
    POST   …/ingest/open          {"source": "…", "task": ["YQ==", "bQ=="], "whole": ["", null]}
    POST   …/ingest/lead          {"source": "…", "group": "…", "term": 2, "barrier": 1, …}
    GET    …/ingest               where a replica stands
    POST   …/ingest               {"source": "…", "epoch": 3, "origin": 7, "entries": […]}
    POST   …/cas                  {"key": "YWRh", "expected": "MQ==", "value": "Mg=="}

Keys are bytes: in a URL percent-encoded, in JSON their base64, as values are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec
from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException

from ....catalog.descriptors.keyspace import whole_seconds
from ....catalog.rights.privileges import Privilege
from ....kvlayer.clock import MAX_TIMESTAMP, Timestamp, format_timestamp, parse_timestamp
from ....kvlayer.raw import RawKeyspace, ReplicaKeyspace
from ....kvlayer.replication.replica import Ingest, Look, ReplicaState, TakeOver
from ...node import Node
from ..access import user_of
from ..bodies import (
    BODY_BYTES_MAX,
    JSON,
    MSGPACK,
    RawBatch,
    RawDeleted,
    RawIngest,
    RawLeading,
    RawOpening,
    RawPair,
    RawReplica,
    RawScan,
    RawSwap,
    RawSwapped,
    RawWritten,
    media_type,
    read_json,
    read_msgpack,
    read_whole,
)
from ..openapi import described

OCTETS = "application/octet-stream"

JSON_BYTES_MAX = 4 * 1024 * 1024
"""The size of a batch in JSON, which is decoded in one step of the loop."""

SCAN_PAIRS_MAX = 1_000
SCAN_BYTES_MAX = 1024 * 1024
"""The size of one page, which is encoded in one step. `next` says where the next page begins."""

_INGEST = Privilege.INSERT | Privilege.DELETE
"""What a source sends are values and deletions."""

_OCTETS: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}


def keyspace_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["keyspaces"])
    _key_routes(router, node)
    _range_routes(router, node)
    _replica_routes(router, node)
    _ingest_routes(router, node)
    return router


def _opened(
    node: Node, request: Request, keyspace: str, needs: Privilege
) -> AbstractAsyncContextManager[RawKeyspace]:
    return node.keyspaces.opened(keyspace, needs=needs, user=user_of(request))


def _key_routes(router: APIRouter, node: Node) -> None:
    place = "/v1/keyspaces/{keyspace}/keys/{key:path}"

    @router.get(place, response_model=None, responses={200: {"content": {OCTETS: _OCTETS}}})
    async def get_key(request: Request, keyspace: str, key: str) -> Response:
        """The value, as of `at` or of now. 404 where there is none."""
        given = _given(request, "at")
        async with _opened(node, request, keyspace, Privilege.SELECT) as raw:
            value = await raw.get(_key_of(request), at=await _moment(node, given.get("at")))
        if value is None:
            raise HTTPException(404, "the key has no value")
        return Response(value, media_type=OCTETS)

    @router.put(
        place,
        **described(reply=RawWritten)
        | {"openapi_extra": {"requestBody": {"required": True, "content": {OCTETS: _OCTETS}}}},
    )
    async def put_key(request: Request, keyspace: str, key: str) -> Response:
        """Puts the body as the value. `ttl` is an interval, as `1h`."""
        given = _given(request, "ttl")
        ttl = whole_seconds(given["ttl"].decode()) if "ttl" in given else None
        value = bytes(await read_whole(request.stream(), BODY_BYTES_MAX))
        async with _opened(node, request, keyspace, Privilege.INSERT) as raw:
            at = await raw.put(_key_of(request), value, ttl_seconds=ttl)
        return _json(RawWritten(timestamp=format_timestamp(at)))

    @router.delete(place, **described(reply=RawWritten))
    async def delete_key(request: Request, keyspace: str, key: str) -> Response:
        """Deletes the key, whether it is there or not."""
        async with _opened(node, request, keyspace, Privilege.DELETE) as raw:
            at = await raw.delete(_key_of(request))
        return _json(RawWritten(timestamp=format_timestamp(at)))

    @router.post("/v1/keyspaces/{keyspace}/cas", **described(reply=RawSwapped, request=RawSwap))
    async def compare_and_swap(request: Request, keyspace: str) -> Response:
        """Puts the value if the key has the one that is expected; null is to be absent."""
        swap = await read_json(request, RawSwap, bytes_max=JSON_BYTES_MAX)
        needs = Privilege.SELECT | (Privilege.DELETE if swap.value is None else Privilege.INSERT)
        async with _opened(node, request, keyspace, needs) as raw:
            found = await raw.compare_and_swap(
                swap.key,
                expected=swap.expected,
                value=swap.value,
                ttl_seconds=swap.ttl_seconds,
            )
        at = None if found.timestamp is None else format_timestamp(found.timestamp)
        return _json(RawSwapped(swapped=found.swapped, previous=found.previous, timestamp=at))


def _range_routes(router: APIRouter, node: Node) -> None:
    place = "/v1/keyspaces/{keyspace}/keys"

    @router.get(place, **described(reply=RawScan))
    async def scan_keys(request: Request, keyspace: str) -> Response:
        """Keys and values in `[from, to)` as of `at` or of now, in key order; `next` is the key
        with which to go on, where there may be more."""
        given = _given(request, "from", "to", "limit", "at")
        limit = min(_whole(given.get("limit"), SCAN_PAIRS_MAX), SCAN_PAIRS_MAX)
        reply = RawScan(pairs=[])
        size = 0
        async with _opened(node, request, keyspace, Privilege.SELECT) as raw:
            at = await _moment(node, given.get("at"))
            slices = raw.scan(given.get("from", b""), given.get("to"), limit=limit, at=at)
            async for pairs in slices:
                for key, value in pairs:
                    if size >= SCAN_BYTES_MAX:
                        break
                    size += len(key) + len(value)
                    reply.pairs.append(RawPair(key, value))
                if size >= SCAN_BYTES_MAX:
                    await slices.aclose()
                    break
        if limit and (len(reply.pairs) == limit or size >= SCAN_BYTES_MAX):
            reply.next = reply.pairs[-1].key + b"\x00"
        return _json(reply)

    @router.delete(place, **described(reply=RawDeleted))
    async def delete_keys(request: Request, keyspace: str) -> Response:
        """Deletes each key in `[from, to)`, by commits of some hundred keys."""
        given = _given(request, "from", "to")
        async with _opened(node, request, keyspace, Privilege.SELECT | Privilege.DELETE) as raw:
            deleted = await raw.delete_range(given.get("from", b""), given.get("to"))
        at = None if deleted.timestamp is None else format_timestamp(deleted.timestamp)
        return _json(RawDeleted(deleted=deleted.count, timestamp=at))

    @router.post("/v1/keyspaces/{keyspace}/batch", **described(reply=RawWritten, request=RawBatch))
    async def put_batch(request: Request, keyspace: str) -> Response:
        """Puts pairs, by commits of some hundred; the timestamp is that of the last."""
        batch = await read_json(request, RawBatch, bytes_max=JSON_BYTES_MAX)
        pairs = [(pair.key, pair.value) for pair in batch.pairs]
        async with _opened(node, request, keyspace, Privilege.INSERT) as raw:
            at = await raw.put_many(pairs, ttl_seconds=batch.ttl_seconds)
        return _json(RawWritten(timestamp=format_timestamp(at) if pairs else None))


def _replica_routes(router: APIRouter, node: Node) -> None:
    @router.post(
        "/v1/keyspaces/{keyspace}/ingest/open", **described(reply=RawReplica, request=RawOpening)
    )
    async def open_replica(request: Request, keyspace: str) -> Response:
        """Begins the next epoch of a replica's source: earlier ones send in vain from here on."""
        opening = await read_json(request, RawOpening, bytes_max=JSON_BYTES_MAX)
        async with _opened(node, request, keyspace, _INGEST) as raw:
            try:
                state = await ReplicaKeyspace(node.store, raw.id).open(
                    opening.source, opening.task, opening.whole
                )
            except ValueError as error:
                raise HTTPException(422, f"task: {error}") from error
        return _json(_replica(state))

    @router.post(
        "/v1/keyspaces/{keyspace}/ingest/lead", **described(reply=RawReplica, request=RawLeading)
    )
    async def lead_keyspace(request: Request, keyspace: str) -> Response:
        """Makes a replica the leader of its keyspace, which its leader hands over: ALTER KEYSPACE …
        TRANSFER there asks it."""
        asked = await read_json(request, RawLeading, bytes_max=JSON_BYTES_MAX)
        async with _opened(node, request, keyspace, _INGEST) as raw:
            leadership = node.services.leadership
            if leadership is None:
                raise HTTPException(
                    409, "the node has joined its store: ask the one that serves it"
                )
            order = TakeOver(
                source=asked.source,
                group=asked.group,
                term=asked.term,
                barrier=_timestamp(asked.barrier),
            )
            state = await leadership.take_over(raw.id, order, asked.oracle, asked.secret)
        return _json(_replica(state))

    @router.get("/v1/keyspaces/{keyspace}/ingest", **described(reply=RawReplica))
    async def look_at_replica(request: Request, keyspace: str) -> Response:
        """The state of a replica. Nothing begins."""
        async with _opened(node, request, keyspace, _INGEST) as raw:
            state = await node.store.replica(raw.span, Look())
        if state is None:
            raise HTTPException(404, f"keyspace {keyspace} is no replica")
        return _json(_replica(state))


def _ingest_routes(router: APIRouter, node: Node) -> None:
    @router.post(
        "/v1/keyspaces/{keyspace}/ingest", **described(reply=RawReplica, request=RawIngest)
    )
    async def ingest(request: Request, keyspace: str) -> Response:
        """Takes entries at the timestamps that they were given elsewhere; those that are there
        already are dropped. What is answered is durable. Stores send them in MessagePack, as they
        are stored."""
        if media_type(request) == MSGPACK:
            return await _taken(node, request, keyspace)
        sent = await read_json(request, RawIngest, bytes_max=JSON_BYTES_MAX)
        stamps: list[int] = [entry.timestamp for entry in sent.entries]
        stamps += [each.expires_at for each in sent.entries if each.expires_at is not None]
        _check_numbers(stamps, sent.origin)
        async with _opened(node, request, keyspace, _INGEST) as raw:
            try:
                state = await ReplicaKeyspace(node.store, raw.id).ingest(
                    sent.entries,
                    source=sent.source,
                    epoch=sent.epoch,
                    origin=sent.origin,
                    resolved=None if sent.resolved is None else _timestamp(sent.resolved),
                    note=sent.note,
                )
            except ValueError as error:
                raise HTTPException(422, str(error)) from error
        return _json(_replica(state))


async def _taken(node: Node, request: Request, keyspace: str) -> Response:
    """Takes an `Ingest`."""
    order = await read_msgpack(request, Ingest)
    _check_numbers(order.timestamps, order.origin)
    if order.resolved is not None:
        _timestamp(order.resolved)
    async with _opened(node, request, keyspace, _INGEST) as raw:
        try:
            state = await ReplicaKeyspace(node.store, raw.id).take(order)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
    return _json(_replica(state))


def _replica(state: ReplicaState) -> RawReplica:
    return RawReplica(
        epoch=state.epoch,
        resolved=state.resolved,
        note=state.note,
        taken=state.taken,
        known=state.known,
    )


def _timestamp(given: int) -> Timestamp:
    """Raises HTTPException 422 for a number that is no timestamp."""
    if not 0 < given <= MAX_TIMESTAMP:
        raise HTTPException(422, f"{given} is no timestamp of a store")
    return Timestamp(given)


def _check_numbers(stamps: Sequence[int], origin: int) -> None:
    """Raises HTTPException 422 for a number that is no timestamp, or no store's."""
    if not 0 <= origin < 1 << 32:
        raise HTTPException(422, "origin is a number of 32 bits")
    if stamps:
        _timestamp(min(stamps))
        _timestamp(max(stamps))


def _json(reply: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(reply), media_type=JSON)


def _key_of(request: Request) -> bytes:
    """The bytes of the key in the path, which need be no text."""
    raw_path: bytes = request.scope["raw_path"]
    return unquote_to_bytes(raw_path.partition(b"?")[0].partition(b"/keys/")[2])


def _given(request: Request, *known: str) -> dict[str, bytes]:
    """The parameters of the query as bytes. Raises HTTPException 422 for any other."""
    query: bytes = request.scope["query_string"]
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, encoding="latin-1")
    for name, _ in pairs:
        if name not in known:
            raise HTTPException(422, f"unknown parameter {name!r}: there are {', '.join(known)}")
    return {name: value.encode("latin-1") for name, value in pairs}


def _whole(text: bytes | None, default: int) -> int:
    if text is None:
        return default
    if not text.isdigit():
        raise HTTPException(422, "limit is no whole number")
    return int(text)


async def _moment(node: Node, text: bytes | None) -> Timestamp | None:
    if text is None:
        return None
    try:
        at = parse_timestamp(text.decode())
    except ValueError as error:
        raise HTTPException(422, f"at: {error}") from error
    if at > await node.store.now():
        raise HTTPException(422, "at lies in the future")
    return at
