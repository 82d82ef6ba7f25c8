"""`POST /v1/sql` and `POST /v1/mirrors/sql`: statements to the store, queries to its mirrors."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ...catalog.errors import SQLError
from ...sql import Result, SessionState
from ...sql.parser.statements import CreateChangefeed
from ..node import Node
from .bodies import MirrorReply, MirrorRequest, SqlReply, SqlRequest, read_json
from .json_replies import encode_results, encode_table, reply
from .openapi import described


def sql_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["sql"])

    @router.post("/v1/sql", **described(request=SqlRequest, reply=SqlReply))
    async def run_sql(request: Request) -> Response:
        """Runs statements in order, and stops at the first error.

        The request is a session of its own. Each statement is a transaction, unless the text says
        BEGIN; what is not committed at the end of the text is rolled back, and is an error.
        """
        results = await _run(node, await read_json(request, SqlRequest))
        return reply(encode_results(results), sum(_row_count(result) for result in results))

    @router.post("/v1/mirrors/sql", **described(request=MirrorRequest, reply=MirrorReply))
    async def read_mirror(request: Request) -> Response:
        """Runs one SELECT of DuckDB's SQL on a mirror, which may be fed meanwhile."""
        asked = await read_json(request, MirrorRequest)
        table = await node.mirrors.read(asked.mirror, asked.sql, asked.params)
        return reply(encode_table(table), table.num_rows)

    return router


async def _run(node: Node, asked: SqlRequest) -> list[Result]:
    _refuse_streams(node, asked.sql)
    session = node.session(database=asked.database)
    try:
        results = await session.execute(asked.sql, asked.params)
        state = session.state
    finally:
        await session.close()
    if state is not SessionState.IDLE:
        raise SQLError(
            "25000",
            "the transaction was open at the end of the request, and is rolled back",
            detail="A request is a session of its own: nothing of it is left when it ends.",
            hint="Send BEGIN, the statements and COMMIT in one request.",
        )
    return results


def _refuse_streams(node: Node, text: str) -> None:
    """Before anything runs: what never ends cannot be a reply, nor can what stands behind it."""
    for place, statement in enumerate(node.services.plans.prepare(text).statements):
        if isinstance(statement, CreateChangefeed) and statement.sink is None:
            error = SQLError(
                "0A000",
                "a changefeed without a sink cannot be streamed over this door",
                hint="Give it a sink: INTO 'duckdb:///mirror.duckdb'. The embedded API streams.",
            )
            error.statement = place
            raise error


def _row_count(result: Result) -> int:
    return result.row_count if result.returns_rows else 0
