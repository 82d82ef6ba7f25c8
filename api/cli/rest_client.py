"""Requests of the command line to a server's REST door."""

from __future__ import annotations

import http.client
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote, urlsplit

import msgspec

from ...error import Error

DEFAULT_URL = "http://127.0.0.1:8080"


class Refused(Error):
    """The server cannot be reached, or said no; `status` is that of its answer."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def ask(method: str, url: str, path: str, body: bytes | None, media_type: str) -> bytes:
    """The body of the answer. `url` is the server's, with the user and the password if it needs
    them. Raises Refused."""
    with answered(method, url, path, body, media_type) as answer:
        return answer.read()


@contextmanager
def answered(
    method: str, url: str, path: str, body: bytes | None, media_type: str
) -> Iterator[http.client.HTTPResponse]:
    """As `ask`, for an answer that is read piece by piece."""
    where = urlsplit(url)
    secure = where.scheme == "https"
    kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    headers = {"Content-Type": media_type}
    if where.username is not None:
        who = f"{unquote(where.username)}:{unquote(where.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(who.encode()).decode()}"
    connection = kind(where.hostname or "127.0.0.1", where.port)
    address = f"{where.hostname or '127.0.0.1'}:{where.port}"
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        if answer.status != http.client.OK:
            said = _problem(answer.read()) or f"the server answered {answer.status}"
            raise Refused(said, answer.status)
        yield answer
    except OSError as error:
        raise Refused(f"cannot reach {address}: {error}") from error
    finally:
        connection.close()


def _problem(text: bytes) -> str:
    """The text of a refusal."""
    try:
        problem = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.MsgspecError:
        return ""
    said = [problem.get("title"), problem.get("detail"), problem.get("hint")]
    return ". ".join(str(each) for each in said if each)
