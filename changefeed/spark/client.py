"""The server's exports, as Spark's workers ask for them. Standard library and pyarrow only."""

from __future__ import annotations

import base64
import http.client
import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import pyarrow as pa
import pyarrow.ipc

from ...error import Error

TIMEOUT_SECONDS = 60.0

RETRY_SECONDS = 60.0
"""How long a server may be away, while it restarts for instance, before a read fails."""

RETRY_PAUSE_SECONDS = 0.5

_AWAY = (http.client.HTTPException, OSError)
"""How a server that is not there shows; a connection that is refused or cut is an OSError."""

UNDEFINED_TABLE = "42P01"

PASSING = frozenset({"40001", "40P01", "55P03"})
"""What the next attempt may not meet again: conflicts, and a lock that another holds."""


TOKEN_VARIABLE = "TAILRACE_TOKEN"
"""Where a process finds the token that it shows, if its url names nobody."""


class ServerRefused(Error):
    """The server answered, and the answer is no; the message is its own."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        parts = [problem.get("title"), problem.get("detail"), problem.get("hint")]
        super().__init__(". ".join(str(part) for part in parts if part) or f"status {status}")
        self.status = status
        self.sqlstate: str | None = problem.get("sqlstate")


class TableMissing(ServerRefused):
    """There is no such table, or no more."""


class ServerAway(Error):
    """No answer for longer than a restart takes."""


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table, and the server that has it. Picklable: it travels to Spark's workers."""

    url: str
    table: str
    database: str = "defaultdb"


class ExportClient:
    """Asks one server. A request that gets no answer is asked again for `RETRY_SECONDS`."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        parts = urlsplit(address.url)
        if parts.scheme != "http" or not parts.hostname:
            raise ValueError(f"url {address.url!r}: write http://host:port")
        self._host, self._port = parts.hostname, parts.port or 80
        self._headers = _authorization(unquote(parts.username or ""), unquote(parts.password or ""))

    def table(self, as_of: int | None) -> dict[str, Any]:
        """`TableReply`: the table as of a timestamp, or now."""
        return self._ask("GET", self._table_path("", {} if as_of is None else {"as_of": as_of}))

    def spans(self, as_of: int | None, *, cut: bool = True) -> dict[str, Any]:
        """`SpansReply` of the table as of a timestamp, or now."""
        query: dict[str, Any] = {} if as_of is None else {"as_of": as_of}
        return self._ask("GET", self._table_path("/spans", {**query, "cut": cut}))

    def create_position(self, at: int | None) -> dict[str, Any]:
        path = self._table_path("/positions", {})
        return self._ask("POST", path, {} if at is None else {"at": at})

    def position(self, position_id: str) -> dict[str, Any]:
        return self._ask("GET", f"/v1/positions/{position_id}")

    def next(self, position_id: str, after: int) -> dict[str, Any]:
        return self._ask("GET", f"/v1/positions/{position_id}/next?after={after}")

    def advance(self, position_id: str, upto: int) -> None:
        self._ask("POST", f"/v1/positions/{position_id}/advance", {"upto": upto})

    def export(self, table_id: int, query: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """The batches of an export; a stream that breaks is taken up behind its last batch."""
        mark: str | None = None
        patience = _Patience(self._address.url)
        while True:
            asked = {**query, **({} if mark is None else {"mark": mark})}
            connection = self._connect()
            try:
                answer = self._answer(
                    connection, "GET", f"/v1/tables/{table_id}/export?{urlencode(asked)}"
                )
                with pa.ipc.open_stream(answer) as reader:
                    for batch, metadata in reader.iter_batches_with_custom_metadata():
                        mark = metadata[b"mark"].decode()
                        patience = _Patience(self._address.url)
                        yield batch
                # A stream cut off between two batches looks ended to pyarrow: only the end of the
                # chunked reply says that it was whole.
                answer.read()
                return
            except (*_AWAY, pa.ArrowInvalid) as error:
                connection.close()
                patience.wait(error)
            finally:
                connection.close()

    def _table_path(self, what: str, query: Mapping[str, Any]) -> str:
        asked = urlencode({**query, "database": self._address.database})
        return f"/v1/tables/{quote(self._address.table, safe='')}{what}?{asked}"

    def _ask(self, method: str, path: str, body: object | None = None) -> dict[str, Any]:
        """The answer's document. Raises ServerRefused and ServerAway.

        A request may be heard twice. That does no harm: reading does not change anything, advancing
        twice is advancing once, and a position that nobody knows of ends by its age.
        """
        patience = _Patience(self._address.url)
        while True:
            connection = self._connect()
            try:
                found: dict[str, Any] = json.loads(
                    self._answer(connection, method, path, body).read()
                )
                return found
            except ValueError as error:
                raise ServerRefused(200, {"title": f"no Tailrace server? {error}"}) from error
            except _AWAY as error:
                connection.close()
                patience.wait(error)
            finally:
                connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)

    def _answer(
        self,
        connection: http.client.HTTPConnection,
        method: str,
        path: str,
        body: object | None = None,
    ) -> http.client.HTTPResponse:
        """An answer whose status is 200. Raises ServerRefused, and what stands in `_AWAY`."""
        headers = dict(self._headers)
        if body is not None:
            headers["content-type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        if answer.length is None and not answer.chunked:
            # To the library headers that were cut off are whole: a server's have one of both.
            raise _NotNow("the answer was cut off in its headers")
        if answer.status == 200:
            return answer
        text = answer.read()
        try:
            problem = json.loads(text)
        except ValueError:
            problem = {"title": f"status {answer.status}: {text[:200]!r}: no Tailrace server?"}
        missing = problem.get("sqlstate") == UNDEFINED_TABLE
        refused = (TableMissing if missing else ServerRefused)(answer.status, problem)
        if answer.status == 503 or refused.sqlstate in PASSING:
            raise _NotNow(str(refused))
        raise refused


def _authorization(name: str, password: str) -> dict[str, str]:
    """`http://ada:secret@host` is a user and its password, `http://:token@host` a token."""
    if name:
        return {
            "authorization": f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode()}"
        }
    return {"authorization": f"Bearer {password}"} if password else {}


def with_token(url: str) -> str:
    """A url that names nobody, with the token of this process, if it has one."""
    token = os.environ.get(TOKEN_VARIABLE)
    if not token or "@" in url:
        return url
    return url.replace("://", f"://:{quote(token, safe='')}@", 1)


class _NotNow(ConnectionError):
    """The server starts or stops, or something is in the way that passes."""


class _Patience:
    """Waits between attempts, `RETRY_SECONDS` in all and then no longer."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._deadline = time.monotonic() + RETRY_SECONDS

    def wait(self, why: Exception) -> None:
        """Raises ServerAway."""
        if time.monotonic() >= self._deadline:
            raise ServerAway(f"{self._url} has not answered for {RETRY_SECONDS:g} s: {why}")
        time.sleep(RETRY_PAUSE_SECONDS)


def read_schema(text: str) -> pa.Schema:
    """An Arrow schema out of a reply."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
