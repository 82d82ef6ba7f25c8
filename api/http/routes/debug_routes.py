"""`GET /v1/debug/...`: what the served store holds and does, a JSON object a line."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import closing
from itertools import islice

import msgspec
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from ....catalog.store.key_names import KeyNames
from ....kvlayer.clock import Timestamp, parse_timestamp
from ....kvlayer.errors import KVError
from ....kvlayer.process.fibre import in_slices
from ....kvlayer.span import Span
from ....kvlayer.store import Store
from ...debug import FeedLines, Line, Target, TargetError, key_lines, log_lines, range_lines
from ...node import Node
from ..bodies import JSON_LINES
from ..ending import mark_endless

LINES_PER_STEP = 20
"""Lines that are made before others have their turn: about a millisecond's work."""

LINES_MAX = 100_000
LINES_DEFAULT = 1_000
"""Lines of one reply, where nothing else bounds it: a store may hold a billion keys."""

_encode = msgspec.json.Encoder().encode


def debug_routes(node: Node) -> APIRouter:
    router = APIRouter(prefix="/v1/debug", tags=["debug"])
    limit = Query(default=LINES_DEFAULT, ge=1, le=LINES_MAX, description="Lines at most.")

    @router.get("/rangefeed", response_class=StreamingResponse)
    async def rangefeed(
        request: Request,
        target: str = Query(description="A table, a key prefix 0x..., or a span 0x...-0x..."),
        start: str | None = Query(default=None, alias="from", description="Exclusive; now if none"),
        previous: bool = Query(default=False, description="With the values that were replaced."),
    ) -> Response:
        """The events of a range feed as they come, until the client goes. Follows splits."""
        store = _served(node)
        names = await _names(store)
        span = _span(target, names)
        at = store.clock.now() if start is None else _timestamp(start)
        # Made here, so that a start that is too old is refused and not streamed.
        feed = store.span_feed([span], at, with_previous=previous)

        async def stream() -> AsyncIterator[bytes]:
            lines = FeedLines(names)
            try:
                async for events in feed:
                    async for piece in _sliced(lines.lines(events)):
                        yield piece
            except KVError as error:
                # The head of the reply is sent already, so the reason is a line.
                yield _joined(iter([{"event": "end", "reason": str(error)}]))
            finally:
                feed.close()

        mark_endless(request)
        return StreamingResponse(stream(), media_type=JSON_LINES)

    @router.get("/keys", response_class=StreamingResponse)
    async def keys(target: str | None = None, limit: int = limit) -> Response:
        """Intents, range tombstones and versions of keys, as the engine holds them."""
        store = _served(node)
        names = await _names(store)
        span = _span(target, names)
        snapshot = store.engine.snapshot()
        lines = islice(key_lines(snapshot, names, span), limit)
        return StreamingResponse(_sliced(lines, snapshot.close), media_type=JSON_LINES)

    @router.get("/log", response_class=StreamingResponse)
    async def log(
        start: int | None = Query(default=None, alias="from", ge=1), limit: int = limit
    ) -> Response:
        """The operations of the log's durable entries, from the oldest that is kept."""
        store = _served(node)
        names = await _names(store)
        oldest = store.log.first_retained_index
        entries = store.log.read(max(start or oldest, oldest), store.log.durable_index)
        lines = islice(log_lines(entries, names), limit)
        return StreamingResponse(_sliced(lines), media_type=JSON_LINES)

    @router.get("/ranges", response_class=StreamingResponse)
    async def ranges() -> Response:
        """Every range, with its span."""
        store = _served(node)
        names = await _names(store)
        with closing(store.engine.snapshot()) as snapshot:
            lines = await in_slices(lambda: list(range_lines(snapshot, names)))
        return StreamingResponse(_sliced(iter(lines)), media_type=JSON_LINES)

    return router


def _served(node: Node) -> Store:
    if node.served is None:
        raise HTTPException(409, "this node has joined another's store: ask the one that serves it")
    return node.served


async def _names(store: Store) -> KeyNames:
    """Returns the names of all keys; read in slices, for a store may have thousands of tables."""
    with closing(store.engine.snapshot()) as snapshot:
        return await in_slices(lambda: KeyNames.load(snapshot))


def _span(target: str | None, names: KeyNames) -> Span:
    try:
        return Target.parse(target, names)
    except TargetError as error:
        raise HTTPException(400, str(error)) from error


def _timestamp(text: str) -> Timestamp:
    try:
        return parse_timestamp(text)
    except ValueError as error:
        raise HTTPException(400, str(error)) from error


async def _sliced(
    lines: Iterator[Line], close: Callable[[], None] = lambda: None
) -> AsyncIterator[bytes]:
    try:
        while batch := list(islice(lines, LINES_PER_STEP)):
            yield _joined(iter(batch))
            await asyncio.sleep(0)
    finally:
        close()


def _joined(lines: Iterator[Line]) -> bytes:
    return b"".join(_encode(line) + b"\n" for line in lines)
