"""`GET /v1/changes`: a changefeed without a sink, as JSON lines or as server-sent events.

    {"table": "orders", "key": [1], "value": {"after": {"id": 1}}}
    {"resolved": "1795423823000000000.0000000000"}

    event: change
    data: {"table": "orders", "key": [1], "value": {"after": {"id": 1}}}

    id: 1795423823000000000.0000000000
    event: resolved
    data: {"resolved": "1795423823000000000.0000000000"}

With `transactions` there are also lines, and events `transaction`, where one begins and ends.

A browser whose connection broke says by `Last-Event-ID` which resolved timestamp it saw last, and
the feed goes on behind it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Annotated

import msgspec
from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Send

from ....catalog.descriptors.system_tables import DEFAULT_DATABASE
from ....catalog.values.errors import SQLError
from ....sql import Result, Row
from ....sql.results.errors import told_of
from ...node import Node
from ..access import address_of, user_of
from ..bodies import JSON_LINES
from ..ending import mark_endless
from ..problems import problem
from ..statement_texts import qualified, with_options
from ..streamed_replies import ResultReply

EVENT_STREAM = "text/event-stream"
LAST_EVENT_ID = "last-event-id"
_NOT_OPTIONS = frozenset({"table", "database"})
_BEGINNINGS = frozenset({"cursor", "initial_scan", "initial_scan_only", "no_initial_scan"})

_encode = msgspec.json.Encoder().encode


def changes_routes(node: Node) -> APIRouter:
    router = APIRouter(tags=["changefeeds"])

    @router.get("/v1/changes", response_class=StreamingResponse)
    async def changes(
        request: Request,
        table: Annotated[list[str], Query(min_length=1, description="As often as there are.")],
        database: Annotated[str, Query()] = DEFAULT_DATABASE,
    ) -> Response:
        """Commits to tables, as they come, until the client goes. Other parameters are options of
        CREATE CHANGEFEED, those without a value empty. Accept chooses the form: JSON lines, or
        `text/event-stream`."""
        query = request.query_params
        given = {name: query[name] or None for name in query if name not in _NOT_OPTIONS}
        _check_format(given)
        events = EVENT_STREAM in request.headers.get("accept", "")
        options = _options(given, request.headers.get(LAST_EVENT_ID)) if events else given
        text = f"CREATE CHANGEFEED FOR TABLE {', '.join(map(qualified, table))}"
        session = node.session(
            database=database, user=user_of(request), address=address_of(request)
        )
        try:
            (result,) = await session.execute(text + with_options(options), streamed=True)
        except BaseException:
            await session.close()
            raise
        mark_endless(request)
        write = _event if events else _line
        return ChangesReply(result, write, sending=session.sending, ended=session.close)

    return router


def _check_format(given: Mapping[str, str | None]) -> None:
    """Raises SQLError where a message would be no value of JSON."""
    formats = [value for name, value in given.items() if name.lower() == "format"]
    if any((value or "json").lower() != "json" for value in formats):
        raise SQLError(
            "0A000",
            f"GET /v1/changes has no messages in format {formats[0]}",
            detail="Each line, and each event, is an object of JSON that holds the message.",
            hint="Leave the option out.",
        )


def _options(given: Mapping[str, str | None], last_seen: str | None) -> Mapping[str, str | None]:
    """The options of a stream of events. Its ids are its resolved timestamps, so it has some."""
    options = {"resolved": None, **given}
    if not last_seen:
        return options
    rest = {name: value for name, value in options.items() if name.lower() not in _BEGINNINGS}
    return {**rest, "cursor": last_seen}


class ChangesReply(ResultReply):
    """The rows of a changefeed as they come. An end of the feed is the last thing that is said, and
    the body is broken off behind it."""

    def __init__(
        self,
        result: Result,
        write: Callable[[Mapping[str, object]], bytes],
        *,
        sending: Callable[[Result], AbstractAsyncContextManager[None]],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        form = EVENT_STREAM if write is _event else JSON_LINES
        super().__init__(result, form, sending=sending, ended=ended)
        self.headers["Cache-Control"] = "no-store"
        self._write = write

    async def stream_response(self, send: Send) -> None:
        async def say(said: Mapping[str, object]) -> None:
            body = self._write(said)
            await send({"type": "http.response.body", "body": body, "more_body": True})

        await self.begin(send)
        stream = self._result.stream
        assert stream is not None, self._result
        try:
            # Not in a generator: whatever cuts the statement short must be raised in here.
            async with self._sending(self._result):
                async for row in stream:
                    await say(_said(row))
        except OSError:  # the client's connection has ended
            raise
        except Exception as error:
            await say({"error": problem(told_of(error))})


def _said(row: Row) -> Mapping[str, object]:
    table, key, value = row
    assert isinstance(value, bytes), row
    if table is None:
        mark: Mapping[str, Mapping[str, object]] = msgspec.json.decode(value)
        return mark.get("__crdb__", mark)  # of the envelopes `row` and `bare`
    assert key is None or isinstance(key, bytes), row
    return {
        "table": table,
        "key": msgspec.Raw(key) if key else None,  # a schema change has none
        "value": msgspec.Raw(value) if value else None,
    }


def _line(said: Mapping[str, object]) -> bytes:
    return _encode(said) + b"\n"


def _event(said: Mapping[str, object]) -> bytes:
    data = b"data: " + _encode(said) + b"\n\n"
    if "error" in said:
        return b"event: error\n" + data
    if "resolved" in said:
        return b"id: %b\nevent: resolved\n%b" % (str(said["resolved"]).encode(), data)
    if "transaction" in said:
        return b"event: transaction\n" + data
    return b"event: change\n" + data
