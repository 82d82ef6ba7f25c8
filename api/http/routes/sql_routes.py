"""`POST /v1/sql` and `POST /v1/mirrors/sql`: statements to the store, queries to its mirrors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import pyarrow as pa
from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.exceptions import HTTPException

from ....catalog.values.errors import SQLError
from ....kvlayer.clock import Timestamp, parse_timestamp
from ....sql import Result, SessionState
from ....sql.syntax.statements import CreateChangefeed
from ...node import Node
from ..access import address_of, user_of
from ..arrow_writer import plain_stream
from ..bodies import (
    ARROW_STREAM,
    JSON,
    JSON_LINES,
    MirrorReply,
    MirrorRequest,
    SqlReply,
    SqlRequest,
    read_json,
)
from ..connected import while_connected
from ..json_replies import encode_lines, encode_results, encode_table, in_turns, reply
from ..openapi import described, described_sql
from ..streamed_replies import StreamedReply
from ..transactions import HeldTransactions

FORMS = (JSON, JSON_LINES, ARROW_STREAM)
"""What Accept may ask for; the first where it leaves the choice."""


def sql_routes(node: Node, held: HeldTransactions) -> APIRouter:
    router = APIRouter(tags=["sql"])

    @router.post("/v1/sql", **described_sql(request=SqlRequest, reply=SqlReply))
    async def run_sql(request: Request) -> Response:
        """Runs statements in order, and stops at the first error.

        The request is a session of its own. Each statement is a transaction, unless the text says
        BEGIN; what is not committed at the end of the text is rolled back, and is an error.
        With `transaction` it runs in that one, which stays open.

        Accept chooses the form: JSON for all results, or the last result's rows as JSON lines or as
        an Arrow IPC stream.
        """
        form = accepted(request)
        asked = await read_json(request, SqlRequest)
        await _refuse_streams(node, asked.sql)
        if asked.transaction is None:
            return await while_connected(request, _run(node, asked, form, request))
        transaction = held.find(asked.transaction, user_of(request))
        results = await held.run(transaction, asked.sql, list(asked.params), streamed=True)
        if not _streams(results):
            return _whole(results, form)
        return StreamedReply(
            results, form, sending=partial(held.sending, transaction), ended=_nothing
        )

    @router.post("/v1/mirrors/sql", **described(request=MirrorRequest, reply=MirrorReply))
    async def read_mirror(request: Request) -> Response:
        """Runs one SELECT of DuckDB's SQL on a mirror, which may be fed meanwhile."""
        asked = await read_json(request, MirrorRequest)
        until = None if asked.wait_for is None else await _timestamp(node, asked.wait_for)
        read = node.read_mirror(
            asked.mirror, asked.sql, asked.params, user=user_of(request), wait_for=until
        )
        table = await while_connected(request, read)
        return reply(encode_table(table), table.num_rows)

    return router


async def _timestamp(node: Node, text: str) -> Timestamp:
    """The timestamp that a mirror is waited for. Raises SQLError 22023."""
    if text == "now":
        return await node.store.now()
    try:
        return parse_timestamp(text)
    except ValueError as error:
        hint = 'Send the commit_timestamp of an earlier reply, or "now".'
        raise SQLError("22023", f"wait_for: {error}", hint=hint) from error


def accepted(request: Request) -> str:
    """The form that Accept asks for. Raises HTTPException 406 where there is none of those."""
    wanted = request.headers.get("accept", "*/*")
    kinds = [kind.partition(";")[0].strip().lower() for kind in wanted.split(",")]
    for kind in kinds:
        if kind in FORMS:
            return kind
        if kind in ("*/*", "application/*", ""):
            return JSON
    raise HTTPException(406, f"there is {', '.join(FORMS)}")


def _streams(results: Sequence[Result]) -> bool:
    return bool(results) and results[-1].batches is not None


def _whole(results: list[Result], form: str) -> Response:
    """A reply of results that are whole: all of them, or the rows of the last."""
    if form == JSON:
        return reply(encode_results(results), sum(_row_count(result) for result in results))
    if not results or not results[-1].returns_rows:
        raise SQLError(
            "0A000",
            f"{form} is for statements that return rows",
            hint="It has run. Ask for application/json: rows come last here, or not at all.",
        )
    last = results[-1]
    if form == JSON_LINES:
        return StreamingResponse(in_turns(encode_lines(last)), media_type=JSON_LINES)
    table: pa.Table = last.fetch_arrow()
    return StreamingResponse(in_turns(plain_stream(table)), media_type=ARROW_STREAM)


async def _run(node: Node, asked: SqlRequest, form: str, request: Request) -> Response:
    """The reply of a session of the request's own, which ends with it."""
    session = node.session(
        database=asked.database, user=user_of(request), address=address_of(request)
    )
    results: list[Result] = []
    try:
        results = await session.execute(asked.sql, asked.params, streamed=True)
        if session.state is not SessionState.IDLE:
            raise _left_open()
        if _streams(results):
            return StreamedReply(results, form, sending=session.sending, ended=session.close)
        await session.close()
    except BaseException:
        for result in results:
            await result.close()
        await session.close()
        raise
    return _whole(results, form)


async def _nothing() -> None:
    """A transaction by token goes on behind a reply."""


def _left_open() -> SQLError:
    return SQLError(
        "25000",
        "the transaction was open at the end of the request, and is rolled back",
        detail="A request is a session of its own: nothing of it is left when it ends.",
        hint="Send BEGIN, the statements and COMMIT in one request.",
    )


async def _refuse_streams(node: Node, text: str) -> None:
    """Before anything runs: what never ends cannot be a reply, nor can what stands behind it."""
    for place, statement in enumerate((await node.services.plans.reading(text)).statements):
        if isinstance(statement, CreateChangefeed) and statement.sink is None:
            error = SQLError(
                "0A000",
                "a changefeed without a sink cannot be streamed over this door",
                hint="Give it a sink: INTO 'duckdb:///mirror.duckdb', or GET /v1/changes?table=….",
            )
            error.statement = place
            raise error


def _row_count(result: Result) -> int:
    return result.row_count if result.returns_rows else 0
