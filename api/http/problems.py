"""Errors as problem documents (RFC 9457).

`title` is the error's message, and `sqlstate`, `detail`, `hint` and `position` are what any other
door would give. `statement` is the zero-based place of the statement that failed in a text of
several. What is wrong with the request itself (no such path, a body that is no JSON) has no
SQLSTATE: its title is that of the status, and its detail says what is wrong.
"""

from __future__ import annotations

from http import HTTPStatus

import msgspec
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ...catalog.values.errors import SQLError
from ...kvlayer.errors import KVError
from ...sql.results.errors import from_kv
from ..web.assets import asset

PROBLEM_TYPE = "application/problem+json"

_STATUS_BY_STATE = {
    "40001": 409,  # serialization failure: try again
    "40P01": 409,  # deadlock
    "23505": 409,  # duplicate key
    "28000": 401,  # who is it?
    "28P01": 401,  # not with that password
    "25P01": 404,  # no such transaction
    "25P03": 410,  # a transaction that has expired
    "53300": 429,  # too many transactions
    "42704": 404,  # unknown job, setting, session or role
    "42P07": 409,  # table exists
    "42P01": 404,  # unknown table
    "3D000": 404,  # unknown database
    "58P01": 404,  # unknown mirror file
    "42501": 403,  # not permitted
    "55P03": 423,  # lock not available
    "53100": 507,  # the disk is full
    "54000": 413,  # program limit exceeded
    "08006": 503,  # the store's server cannot be reached
    "57P01": 503,  # the server ends
    "57P03": 503,  # cannot connect now
    "58030": 503,  # I/O error: the store stopped accepting writes
    "XX000": 500,
}
_CLIENT_ERROR = 400

CLIENT_CLOSED_REQUEST = 499
"""As nginx has it. Nobody reads the reply."""


class Problem(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A problem document. What does not apply is left out."""

    title: str
    status: int
    sqlstate: str | None = None
    detail: str | None = None
    hint: str | None = None
    position: int | None = None
    statement: int | None = None

    def response(self, headers: dict[str, str] | None = None) -> Response:
        return Response(
            msgspec.json.encode(self),
            status_code=self.status,
            headers=headers,
            media_type=PROBLEM_TYPE,
        )


def problem(error: SQLError) -> Problem:
    """The form of an error over HTTP."""
    return Problem(
        title=_printable(error.message),
        status=_STATUS_BY_STATE.get(error.sqlstate, _CLIENT_ERROR),
        sqlstate=error.sqlstate,
        detail=None if error.detail is None else _printable(error.detail),
        hint=None if error.hint is None else _printable(error.hint),
        position=error.position,
        statement=error.statement,
    )


def _printable(text: str) -> str:
    """Text that UTF-8 can hold: a message may quote a lone surrogate of its statement."""
    return text.encode("utf-8", "backslashreplace").decode()


async def answer_sql_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, SQLError)
    return problem(error).response()


async def answer_kv_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, KVError)
    return problem(from_kv(error)).response()


async def answer_http_error(request: Request, error: Exception) -> Response:
    """No such path or method, and what a door says of a request's form. Who asks for HTML, as a
    browser does for a page, is given a page."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND and "text/html" in request.headers.get(
        "accept", ""
    ):
        return asset("missing.html", status=error.status_code)
    title = HTTPStatus(error.status_code).phrase
    detail = None if error.detail == title else error.detail
    answer = Problem(title=title, status=error.status_code, detail=detail)
    return answer.response(dict(error.headers or {}))


async def answer_bad_request(_request: Request, error: Exception) -> Response:
    """Wrong parameters in the URL."""
    assert isinstance(error, RequestValidationError)
    wrong = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()]
    answer = Problem(title="Unprocessable Content", status=422, detail="; ".join(wrong))
    return answer.response()


async def answer_fault(_request: Request, _error: Exception) -> Response:
    """A fault of ours. The server logs it; the client is told no more than that."""
    answer = Problem(
        title="internal error",
        status=500,
        sqlstate="XX000",
        detail="The server's log says what happened.",
    )
    return answer.response()


async def answer_nobody(request: Request, error: Exception) -> Response:
    """The client has gone, before its request was whole or while it was carried out."""
    return Response(status_code=CLIENT_CLOSED_REQUEST)
