"""Replies whose rows are computed while they are sent: no more is held than a batch or two.

An error may come when half of the reply has gone, and its status with it. Then the reply says so in
its own form, and is broken off: the connection ends before the body does, so that no client takes
what it has for the whole.

    application/json       … [9, 1]]}], "error": {"title": "division by zero", …}}
    application/x-ndjson   ["error", {"title": "division by zero", …}]      no row is a list
    Arrow                  the stream lacks its end marker
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import msgspec
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...sql import Result
from ...sql.results.errors import told_of
from ...sql.results.results import arrow_schema
from .arrow_writer import PlainStream
from .bodies import ARROW_STREAM, JSON, JSON_LINES
from .json_replies import encode_lines, encode_open_result, encode_result, encode_rows
from .problems import Problem, problem


class Form(Protocol):
    """The forms of a reply whose last result comes in batches."""

    def head(self) -> Iterable[bytes]: ...
    def batch(self, batch: Result) -> Iterable[bytes]: ...
    def tail(self, result: Result) -> bytes: ...
    def failed(self, what: Problem) -> bytes: ...


class ResultReply(StreamingResponse):
    """A reply whose body is taken from a result while it is sent.

    `sending` is what the rows are taken within, and `ended` is awaited when the reply has ended,
    however that was.
    """

    def __init__(
        self,
        result: Result,
        media_type: str,
        *,
        sending: Callable[[Result], AbstractAsyncContextManager[None]],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__((), media_type=media_type)
        self._result = result
        self._sending = sending
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._result.close()
            await self._ended()

    async def begin(self, send: Send) -> None:
        """Sends the status and the headers."""
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})


class StreamedReply(ResultReply):
    """The reply of statements of which the last one's result has batches."""

    def __init__(
        self,
        results: Sequence[Result],
        form: str,
        *,
        sending: Callable[[Result], AbstractAsyncContextManager[None]],
        ended: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(results[-1], form, sending=sending, ended=ended)
        self._form = _form(form, results)

    async def stream_response(self, send: Send) -> None:
        """The rows as they are computed. A body without its last part is broken off by the server,
        which is what becomes of one that fails."""

        async def write(parts: Iterable[bytes]) -> None:
            for part in parts:
                await send({"type": "http.response.body", "body": part, "more_body": True})
                await asyncio.sleep(0)

        await self.begin(send)
        last, form = self._result, self._form
        assert last.batches is not None, last
        await write(form.head())
        try:
            # Not in a generator: whatever cuts the statement short must be raised in here.
            async with self._sending(last):
                while (table := await last.batches.next()) is not None:
                    await write(form.batch(last.batch(table)))
        except OSError:  # the client's connection has ended
            raise
        except Exception as error:
            await write([form.failed(problem(told_of(error)))])
            return
        await send({"type": "http.response.body", "body": form.tail(last), "more_body": False})


def _form(form: str, results: Sequence[Result]) -> Form:
    if form == JSON:
        return _Json(results)
    if form == JSON_LINES:
        return _JsonLines()
    assert form == ARROW_STREAM, form
    return _Arrow(results[-1])


class _Json:
    """`SqlReply`. What is known of the last result only at its end stands behind its rows."""

    def __init__(self, results: Sequence[Result]) -> None:
        self._results = results
        self._begun = False

    def head(self) -> Iterator[bytes]:
        *whole, last = self._results
        yield b'{"results":['
        for result in whole:
            yield from encode_result(result)
            yield b","
        yield encode_open_result(last)

    def batch(self, batch: Result) -> Iterator[bytes]:
        for rows in encode_rows(batch):
            yield b"," + rows if self._begun else rows
            self._begun = True

    def tail(self, result: Result) -> bytes:
        assert result.batches is not None, result
        count = result.batches.row_count
        return b"]," + msgspec.json.encode({"tag": result.full_tag, "row_count": count})[1:] + b"]}"

    def failed(self, what: Problem) -> bytes:
        return b']}],"error":' + msgspec.json.encode(what) + b"}"


class _JsonLines:
    def head(self) -> Iterable[bytes]:
        return ()

    def batch(self, batch: Result) -> Iterator[bytes]:
        return encode_lines(batch)

    def tail(self, _result: Result) -> bytes:
        return b""

    def failed(self, what: Problem) -> bytes:
        return msgspec.json.encode(("error", what)) + b"\n"


class _Arrow:
    def __init__(self, last: Result) -> None:
        self._stream = PlainStream(arrow_schema(last.columns))

    def head(self) -> Iterable[bytes]:
        return ()

    def batch(self, batch: Result) -> Iterator[bytes]:
        return self._stream.write(batch.fetch_arrow())

    def tail(self, _result: Result) -> bytes:
        return self._stream.end()

    def failed(self, _what: Problem) -> bytes:
        return b""
