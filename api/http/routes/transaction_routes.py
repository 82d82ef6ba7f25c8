"""`/v1/transactions`: begun, used by `/v1/sql`, and ended by requests of their own."""

from __future__ import annotations

import msgspec
from fastapi import APIRouter, Request, Response

from ....kvlayer.clock import format_timestamp
from ..access import address_of, user_of
from ..bodies import JSON, EndReply, TransactionReply, TransactionRequest, read_json
from ..openapi import described
from ..transactions import HeldTransactions


def transaction_routes(held: HeldTransactions) -> APIRouter:
    router = APIRouter(tags=["sql"])

    @router.post(
        "/v1/transactions", **described(request=TransactionRequest, reply=TransactionReply)
    )
    async def begin(request: Request) -> Response:
        """Begins a transaction that `POST /v1/sql` can name."""
        asked = await read_json(request, TransactionRequest)
        mode = "READ ONLY" if asked.read_only else "READ WRITE"
        text = f"BEGIN ISOLATION LEVEL {asked.isolation.upper()}, {mode}"
        made = await held.begin(
            user_of(request), address_of(request), asked.database, text, asked.idle_seconds
        )
        reply = TransactionReply(transaction=made.id, idle_seconds=made.idle_seconds)
        return Response(msgspec.json.encode(reply), media_type=JSON)

    @router.post("/v1/transactions/{transaction}/commit", **described(reply=EndReply))
    async def commit(request: Request, transaction: str) -> Response:
        """Commits it. One that has failed is rolled back, which the tag says."""
        return await _end(request, transaction, "COMMIT")

    @router.post("/v1/transactions/{transaction}/rollback", **described(reply=EndReply))
    async def rollback(request: Request, transaction: str) -> Response:
        """Rolls it back."""
        return await _end(request, transaction, "ROLLBACK")

    async def _end(request: Request, transaction: str, text: str) -> Response:
        found = held.find(transaction, user_of(request))
        try:
            (result,) = await held.run(found, text, [])
        finally:
            await held.end(found)
        reply = EndReply(tag=result.tag)
        if result.commit_timestamp is not None:
            reply.commit_timestamp = format_timestamp(result.commit_timestamp)
        return Response(msgspec.json.encode(reply), media_type=JSON)

    return router
