"""`/v1/relaxed/{log}`: lines of a relaxed log, in Arrow or as JSON lines, and how far they are.

    {"kind": "event", "domain": 7, "id": 5, "ordinal": 0, "table": "crashes", "row": "MQ==",
     "column": "signal", "old": null, "new": "Ng=="}
    {"kind": "record", "domain": 7, "begin": 0, "id": 6, "count": 1, "complete": true}

Rows and values are bytes: in JSON, their base64. A line that was sent before is taken for the same,
so whoever was cut off sends all of it again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import msgspec
import pyarrow as pa
from fastapi import APIRouter, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ....catalog.values.errors import SQLError
from ....kvlayer.clock import format_timestamp
from ....kvlayer.relaxed.events import LINES
from ....kvlayer.relaxed.reader import DomainState
from ...node import Node
from ..access import user_of
from ..arrow_stream import arrow_batches
from ..bodies import (
    ARROW_STREAM,
    JSON,
    JSON_LINES,
    RelaxedDomain,
    RelaxedReply,
    drain,
    media_type,
)
from ..json_lines import lines_of
from ..openapi import described, described_load

LINES_PER_BATCH = 1000


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line, its fields those of `LINES`."""

    kind: str
    domain: int
    id: int
    begin: int | None = None
    ordinal: int | None = None
    count: int | None = None
    complete: bool | None = None
    table: str | None = None
    row: bytes | None = None
    column: str | None = None
    old: bytes | None = None
    new: bytes | None = None


_decode = msgspec.json.Decoder(_Line).decode


def relaxed_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["relaxed"])

    @router.post("/v1/relaxed/{log}", **described_load(reply=RelaxedReply))
    async def load_lines(request: Request, log: str) -> Response:
        """Takes lines of a relaxed log. What is answered for is durable, and every change set that
        they make is committed."""
        chunks = request.stream()
        try:
            await node.relaxed.permit(log, user_of(request))
            batches = _batches(media_type(request), chunks)
            async with aclosing(batches):
                report = await node.relaxed.load(log, batches, user=user_of(request))
        except ClientDisconnect:
            raise
        except Exception:  # whatever it is, the client hears of it when it has sent all
            await drain(chunks)
            raise
        reply = RelaxedReply(
            lines=report.lines,
            change_sets=report.change_sets,
            domains=_domains(report.domains),
        )
        if report.change_sets:
            reply.commit_timestamp = format_timestamp(report.commit_timestamp)
        return Response(msgspec.json.encode(reply), media_type=JSON)

    @router.get("/v1/relaxed/{log}", **described(reply=RelaxedReply))
    async def show_log(request: Request, log: str) -> Response:
        """The progress of each domain's log."""
        states = await node.relaxed.states(log, user=user_of(request))
        reply = RelaxedReply(lines=0, change_sets=0, domains=_domains(states))
        return Response(msgspec.json.encode(reply), media_type=JSON)

    return router


def _domains(states: Sequence[DomainState]) -> list[RelaxedDomain]:
    return [
        RelaxedDomain(
            domain=f"{state.domain:016x}",
            last_cut=None if state.position is None else f"{state.position:016x}",
            pending=state.pending,
            gaps=[str(gap) for gap in state.gaps],
        )
        for state in states
    ]


def _batches(kind: str, chunks: AsyncIterator[bytes]) -> AsyncGenerator[pa.RecordBatch, None]:
    match kind:
        case bodies if bodies == ARROW_STREAM:
            return arrow_batches(chunks)
        case bodies if bodies == JSON_LINES:
            return _json_batches(chunks)
    raise HTTPException(415, f"the body must be {ARROW_STREAM} or {JSON_LINES}")


async def _json_batches(chunks: AsyncIterator[bytes]) -> AsyncGenerator[pa.RecordBatch, None]:
    lines: list[tuple[object, ...]] = []
    async for number, text in lines_of(chunks):
        if text.strip():
            lines.append(_read(number, text))
        if len(lines) == LINES_PER_BATCH:
            yield _batch(lines)
            lines = []
    if lines:
        yield _batch(lines)


def _read(number: int, text: bytes) -> tuple[object, ...]:
    try:
        return msgspec.structs.astuple(_decode(text))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise SQLError(
            "22P02", f"not a line of a relaxed log: {error}", detail=f"Line {number}."
        ) from None


def _batch(lines: list[tuple[object, ...]]) -> pa.RecordBatch:
    columns = zip(*lines, strict=True)
    try:
        arrays = [
            pa.array(values, field.type) for values, field in zip(columns, LINES, strict=True)
        ]
    except (pa.ArrowException, OverflowError) as error:
        raise SQLError("22003", f"a line of a relaxed log: {error}") from None
    return pa.RecordBatch.from_arrays(arrays, schema=LINES)
