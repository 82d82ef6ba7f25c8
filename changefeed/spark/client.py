"""The server's exports, as Spark's workers ask for them. Standard library and pyarrow only."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.ipc

TIMEOUT_SECONDS = 60.0

RETRY_SECONDS = 60.0
"""How long a server may be away, while it restarts for instance, before a read fails."""

RETRY_PAUSE_SECONDS = 0.5

_AWAY = (http.client.HTTPException, OSError)
"""How a server that is not there shows; a connection that is refused or cut is an OSError."""

UNDEFINED_TABLE = "42P01"

PASSING = frozenset({"40001", "40P01", "55P03"})
"""SQLSTATEs that the next attempt may not meet: conflicts, and a lock that another holds."""


class ServerRefused(Exception):
    """The server answered, and the answer is no; the message is its own."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        parts = [problem.get("title"), problem.get("detail"), problem.get("hint")]
        super().__init__(". ".join(str(part) for part in parts if part) or f"status {status}")
        self.status = status
        self.sqlstate: str | None = problem.get("sqlstate")


class TableMissing(ServerRefused):
    """The table does not exist, or no more."""


class ServerAway(Exception):
    """No answer for longer than a restart takes."""


@dataclass(frozen=True, slots=True)
class TableAddress:
    """A table, and the server that has it. Picklable: it travels to Spark's workers.

    `url` names nobody, so it may stand in errors. `certificate` is the server's own, in PEM, where
    no authority vouches for it: then it is that certificate or none.
    """

    url: str
    table: str
    database: str = "defaultdb"
    authorization: str | None = field(default=None, repr=False)
    certificate: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        url: str,
        table: str,
        database: str = "defaultdb",
        *,
        token: str | None = None,
        certificate: str | None = None,
    ) -> TableAddress:
        """`http://ada:secret@host` is a user and its password, `http://:token@host` a token.

        Raises ValueError for a url that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("url: write http://host:port, or https://host:port")
        host = parts.netloc.rpartition("@")[2]
        return cls(
            urlunsplit((parts.scheme, host, "", "", "")),
            table,
            database,
            _authorization(unquote(parts.username or ""), token or unquote(parts.password or "")),
            certificate,
        )


_PORTS = {"http": 80, "https": 443}


class ExportClient:
    """Asks one server. A request that gets no answer is asked again for `RETRY_SECONDS`."""

    def __init__(self, address: TableAddress) -> None:
        self._address = address
        parts = urlsplit(address.url)
        assert parts.hostname is not None, address
        self._host, self._port = parts.hostname, parts.port or _PORTS[parts.scheme]
        self._context = _context(address.certificate) if parts.scheme == "https" else None
        self._headers: dict[str, str] = {}
        if address.authorization is not None:
            self._headers["authorization"] = address.authorization

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

    def release(self, position_id: str) -> None:
        """The reader will not come back."""
        try:
            self._ask("DELETE", f"/v1/positions/{position_id}")
        except ServerRefused as answer:
            if answer.status != 204:  # done: there is nothing to say
                raise

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
        if self._context is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=TIMEOUT_SECONDS, context=self._context
        )

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
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
        except ssl.SSLCertVerificationError as error:  # an OSError, and yet another server
            title = f"the certificate of {self._address.url} is not trusted: {error.verify_message}"
            raise ServerRefused(525, {"title": title}) from error
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


def _authorization(name: str, secret: str) -> str | None:
    if name:
        return f"Basic {base64.b64encode(f'{name}:{secret}'.encode()).decode()}"
    return f"Bearer {secret}" if secret else None


def _context(certificate: str | None) -> ssl.SSLContext:
    """Trusts who vouches for servers in general, or one certificate alone, whatever its names."""
    if certificate is None:
        return ssl.create_default_context()
    context = ssl.create_default_context(cadata=certificate)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # so that it need not be self-signed
    return context


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
