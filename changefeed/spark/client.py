"""The server's exports, as Spark's workers ask for them. Standard library and pyarrow only."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import pyarrow as pa
import pyarrow.ipc

TIMEOUT_SECONDS = 60.0

RETRY_SECONDS = 60.0
"""How long a server may be away, while it restarts for instance, before a read fails."""

RETRY_PAUSE_SECONDS = 0.5

_AWAY = (ConnectionError, http.client.HTTPException, TimeoutError, OSError)


class ServerRefused(Exception):
    """The server answered, and the answer is no; the message is its own."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        parts = [problem.get("title"), problem.get("detail"), problem.get("hint")]
        super().__init__(". ".join(str(part) for part in parts if part) or f"status {status}")
        self.status = status
        self.sqlstate: str | None = problem.get("sqlstate")


class ServerAway(Exception):
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
        deadline: float | None = None
        while True:
            asked = {**query, **({} if mark is None else {"mark": mark})}
            path = f"/v1/tables/{table_id}/export?{urlencode(asked)}"
            connection, answer = self._open("GET", path)
            try:
                with pa.ipc.open_stream(answer) as reader:
                    for batch, metadata in reader.iter_batches_with_custom_metadata():
                        mark = metadata[b"mark"].decode()
                        deadline = None
                        yield batch
                # A stream cut off between two batches looks ended to pyarrow: only the end of the
                # chunked reply says that it was whole.
                if answer.read() == b"" and answer.isclosed():
                    return
            except (*_AWAY, pa.ArrowInvalid):
                now = time.monotonic()
                deadline = deadline or now + RETRY_SECONDS
                if now > deadline:
                    raise ServerAway(f"{self._address.url} broke off its answer") from None
                time.sleep(RETRY_PAUSE_SECONDS)
            finally:
                connection.close()

    def _table_path(self, what: str, query: Mapping[str, Any]) -> str:
        asked = urlencode({**query, "database": self._address.database})
        return f"/v1/tables/{quote(self._address.table, safe='')}{what}?{asked}"

    def _ask(self, method: str, path: str, body: object | None = None) -> dict[str, Any]:
        connection, answer = self._open(method, path, body)
        try:
            found: dict[str, Any] = json.loads(answer.read())
            return found
        finally:
            connection.close()

    def _open(
        self, method: str, path: str, body: object | None = None
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """An answer whose status is 200. Raises ServerRefused and ServerAway."""
        deadline = time.monotonic() + RETRY_SECONDS
        headers = {} if body is None else {"content-type": "application/json"}
        content = None if body is None else json.dumps(body)
        while True:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
            try:
                connection.request(method, path, content, headers)
                answer = connection.getresponse()
                if answer.status == 200:
                    return connection, answer
                problem = json.loads(answer.read())
            except (*_AWAY, ValueError) as error:
                connection.close()
                if time.monotonic() > deadline:
                    raise ServerAway(f"{self._address.url} does not answer: {error}") from error
                time.sleep(RETRY_PAUSE_SECONDS)
                continue
            connection.close()
            if answer.status != 503:  # a server that starts or stops: ask it again
                raise ServerRefused(answer.status, problem)
            if time.monotonic() > deadline:
                raise ServerAway(f"{self._address.url}: {ServerRefused(503, problem)}")
            time.sleep(RETRY_PAUSE_SECONDS)


def read_schema(text: str) -> pa.Schema:
    """An Arrow schema out of a reply."""
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
