"""`/v1/tables/{table}/positions` and `/v1/positions/{id}`: readers that come back.

A position keeps what its reader has not read yet, for a day after it was last heard of.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Query, Request, Response
from starlette.exceptions import HTTPException

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.descriptors.system_tables import DEFAULT_DATABASE
from ....catalog.rows.row_codec import codec_for
from ....changefeed.export import PositionUnknown
from ....kvlayer.clock import MAX_TIMESTAMP, Timestamp
from ...node import Node
from ..access import worker_of
from ..bodies import JSON, AdvanceRequest, NextReply, PositionReply, PositionRequest, read_json
from ..openapi import described
from ..problems import Problem
from ..table_lookup import check_readable, find_readable, moment
from .export_routes import schema_text

PositionId = Annotated[str, Path(description="as its creation returned it")]


def position_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["export"])

    @router.post(
        "/v1/tables/{table}/positions", **described(request=PositionRequest, reply=PositionReply)
    )
    async def create(
        request: Request, table: str, database: Annotated[str, Query()] = DEFAULT_DATABASE
    ) -> Response:
        """A reader's position: what is above it stays readable until it is advanced."""
        asked = await read_json(request, PositionRequest)
        at = await moment(node, asked.at)
        descriptor = await find_readable(node, table, database, at, request)
        made = await node.positions.create(descriptor, at)
        return _reply(
            PositionReply(id=made.hex(), store_id=node.store.id, table_id=descriptor.id, at=at)
        )

    @router.get("/v1/positions/{position}", **described(reply=PositionReply))
    async def find(request: Request, position: PositionId) -> Response:
        """Where the position stands. 404 for one of another store, or one that was given up."""
        table_id, at = await _seen(node, request, position)
        return _reply(PositionReply(id=position, store_id=node.store.id, table_id=table_id, at=at))

    @router.get("/v1/positions/{position}/next", **described(reply=NextReply))
    async def next_batch(
        request: Request,
        position: PositionId,
        after: Annotated[int, Query(gt=0, le=MAX_TIMESTAMP, description="where the reader is")],
    ) -> Response:
        """Up to where it may read next: a resolved timestamp, with one schema from here to there.

        Waits a few seconds for one above `after`; then answers with `after` itself.
        """
        table_id, _ = await _seen(node, request, position)
        found = await node.positions.next(table_id, Timestamp(after))
        schema = codec_for(found.descriptor).arrow_schema
        reply = NextReply(
            upto=found.upto,
            changed=found.changed,
            schema=schema_text(schema),
            altered_at=found.descriptor.modification_time,
        )
        return _reply(reply)

    @router.post(
        "/v1/positions/{position}/advance", **described(request=AdvanceRequest, reply=PositionReply)
    )
    async def advance(request: Request, position: PositionId) -> Response:
        """The reader is done with everything at or below a timestamp."""
        asked = await read_json(request, AdvanceRequest)
        await _seen(node, request, position)
        await node.positions.advance(_id(position), Timestamp(asked.upto))
        return await find(request, position)

    @router.delete("/v1/positions/{position}", status_code=204)
    async def release(request: Request, position: PositionId) -> Response:
        """The reader will not come back. Releasing twice is once."""
        try:
            await _seen(node, request, position)
        except PositionUnknown:
            return Response(status_code=204)
        await node.positions.release(_id(position))
        return Response(status_code=204)

    return router


async def _seen(node: Node, request: Request, position: str) -> tuple[int, Timestamp]:
    """A position's table and time, where the user may read the table. Raises SQLError 42501."""
    table_id, at = await node.positions.find(_id(position))
    worker = worker_of(request)
    if worker is not None and worker.table_id != table_id:
        raise PositionUnknown(_id(position))
    table = await node.services.catalog.descriptors.read_at(table_id, await node.store.now())
    if isinstance(table, TableDescriptor):
        await check_readable(node, table, request)
    return table_id, at


def _id(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise HTTPException(404, f"no position {text!r}") from None


async def answer_unknown_position(_request: Request, error: Exception) -> Response:
    assert isinstance(error, PositionUnknown)
    return Problem(title=str(error), status=404).response()


def _reply(body: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(body), media_type=JSON)
