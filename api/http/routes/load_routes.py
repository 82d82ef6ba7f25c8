"""`POST /v1/tables/{table}/rows`: bulk load, of Arrow or of JSON lines."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated

import msgspec
import pyarrow as pa
from fastapi import APIRouter, Query, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from ....catalog.descriptors.system_tables import DEFAULT_DATABASE
from ....catalog.rights.privileges import Privilege
from ....catalog.rights.users import ROOT
from ....kvlayer.clock import format_timestamp
from ....sql import LoadMode
from ...node import Node
from .. import bodies
from ..access import user_of
from ..arrow_stream import arrow_batches
from ..bodies import ARROW_STREAM, JSON, JSON_LINES, LoadReply, drain, media_type
from ..json_lines import json_line_batches
from ..openapi import described_load
from ..table_lookup import find_table


def load_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["load"])

    @router.post("/v1/tables/{table}/rows", **described_load(reply=LoadReply))
    async def load_rows(
        request: Request,
        table: str,
        on_conflict: Annotated[LoadMode, Query()] = LoadMode.ERROR,
        database: Annotated[str, Query()] = DEFAULT_DATABASE,
    ) -> Response:
        """Loads rows in transactions of 1,000, as they arrive.

        A transaction that fails ends the load, and leaves those before it committed: the error's
        detail says how many rows they are.
        """
        chunks = request.stream()
        try:
            await _check_rights(node, user_of(request), table, database, on_conflict)
            batches = await _batches(node, media_type(request), chunks, table, database)
            async with aclosing(batches):
                report = await node.load(
                    table, batches, mode=on_conflict, database=database, user=user_of(request)
                )
        except ClientDisconnect:
            raise
        except Exception:  # whatever it is, the client hears of it when it has sent all
            await drain(chunks)
            raise
        loaded = LoadReply(rows=report.row_count)
        if report.row_count:
            loaded.commit_timestamp = format_timestamp(report.commit_timestamp)
        return Response(msgspec.json.encode(loaded), media_type=JSON)

    return router


async def _check_rights(node: Node, user: str, table: str, database: str, mode: LoadMode) -> None:
    needed = Privilege.INSERT
    if mode is not LoadMode.ERROR:
        needed |= Privilege.SELECT | Privilege.UPDATE
    await find_table(node, table, database, user=user, privileges=needed)


async def _batches(
    node: Node, kind: str, chunks: AsyncIterator[bytes], table: str, database: str
) -> AsyncGenerator[pa.RecordBatch, None]:
    match kind:
        case bodies.ARROW_STREAM:
            return arrow_batches(chunks)
        case bodies.JSON_LINES:
            descriptor = await find_table(node, table, database, user=ROOT)
            return json_line_batches(chunks, descriptor)
    raise HTTPException(415, f"the body must be {ARROW_STREAM} or {JSON_LINES}")
