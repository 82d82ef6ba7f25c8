"""The client of the exports against servers that break off, start again, or are none."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tailrace.changefeed.spark import client
from tailrace.changefeed.spark.client import (
    ExportClient,
    ServerAway,
    ServerRefused,
    TableAddress,
    TableMissing,
    read_schema,
)
from tailrace.changefeed.spark.options import OptionRefused, SourceOptions
from tests.harness.certificates import certificate
from tests.harness.cutting_proxy import CuttingProxy
from tests.harness.exports import Row, now
from tests.harness.http_door import HttpDoor

ROWS = 9000


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_PAUSE_SECONDS", 0.01)


@pytest.fixture(scope="module")
def door() -> Iterator[HttpDoor]:
    """One server with one table, which no test of this file changes."""
    with HttpDoor() as opened:
        opened.sql("CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)")
        opened.sql(f"INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, {ROWS}) AS g(i)")
        yield opened


def port_of(door: HttpDoor) -> int:
    port = door.client.base_url.port
    assert port is not None
    return port


def rows_at(url: str, door: HttpDoor) -> list[Row]:
    reading = ExportClient(TableAddress.of(url, "t"))
    spans = reading.spans(None)
    query = {"as_of": spans["as_of"]}
    batches = reading.export(spans["table_id"], query)
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(
    "cuts",
    [[0], [40], [None, 30], [None, 300], [None, 70_000], [None, 150_000, 20_000, 300]],
    ids=str,
)
def test_cut_streams_are_taken_up(door: HttpDoor, cuts: list[int | None], reset: bool) -> None:
    """Wherever the answer to a question or a stream is cut, every row comes once."""
    whole = 1 << 40
    with CuttingProxy(
        port_of(door), cuts=[whole if cut is None else cut for cut in cuts], reset=reset
    ) as proxy:
        found = rows_at(proxy.url, door)
        assert proxy.connections == 2 + len(cuts) - cuts.count(None)
    assert [row["k"] for row in found] == list(range(1, ROWS + 1))


def test_every_place_of_a_cut_is_noticed(door: HttpDoor) -> None:
    """Cuts near the end, where a stream of Arrow looks whole and the reply is not."""
    reading = ExportClient(TableAddress.of(str(door.client.base_url), "t"))
    spans = reading.spans(None)
    answer = door.client.get(
        f"/v1/tables/{spans['table_id']}/export",
        params={"as_of": spans["as_of"], "where": '[["k", "<", 4]]'},
    )
    size = len(answer.content)
    for missing in range(1, 40, 3):
        with CuttingProxy(port_of(door), cuts=[size + 150 - missing]) as proxy:
            again = ExportClient(TableAddress.of(proxy.url, "t"))
            query = {"as_of": spans["as_of"], "where": '[["k", "<", 4]]'}
            batches = list(again.export(spans["table_id"], query))
        assert [k for batch in batches for k in batch.column("k").to_pylist()] == [1, 2, 3]


def test_refusals_are_not_repeated(door: HttpDoor) -> None:
    with CuttingProxy(port_of(door), cuts=[]) as proxy:
        reading = ExportClient(TableAddress.of(proxy.url, "missing"))
        with pytest.raises(TableMissing, match='missing" does not exist') as caught:
            reading.spans(None)
        assert (caught.value.status, caught.value.sqlstate) == (404, "42P01")
        assert proxy.connections == 1


def test_position_of_another_store_is_refused(door: HttpDoor) -> None:
    reading = ExportClient(TableAddress.of(str(door.client.base_url), "t"))
    with pytest.raises(ServerRefused, match="another store's") as caught:
        reading.position("ab" * 16)
    assert caught.value.status == 404
    with pytest.raises(ServerRefused) as caught:
        reading.next("not hexadecimal"[:3], 5)
    assert caught.value.status == 404


def test_positions_over_http(door: HttpDoor) -> None:
    reading = ExportClient(TableAddress.of(str(door.client.base_url), "t"))
    made = reading.create_position(None)
    found = reading.next(made["id"], made["at"])
    assert found["upto"] > made["at"]
    assert read_schema(found["schema"]).names == ["k", "v"]
    reading.advance(made["id"], found["upto"])
    assert reading.position(made["id"]) == {**made, "at": found["upto"]}
    assert door.client.delete(f"/v1/positions/{made['id']}").status_code == 204
    with pytest.raises(ServerRefused):
        reading.advance(made["id"], found["upto"])


def test_position_in_the_future_is_refused(door: HttpDoor) -> None:
    reading = ExportClient(TableAddress.of(str(door.client.base_url), "t"))
    with pytest.raises(ServerRefused, match="in the future") as caught:
        reading.create_position(now(door) + (1 << 50))
    assert caught.value.status == 422


def test_absent_server_is_named_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        reserved.close()
        with pytest.raises(ServerAway, match=url):
            ExportClient(TableAddress.of(url, "t")).table(None)
        with pytest.raises(ServerAway, match=url):
            list(ExportClient(TableAddress.of(url, "t")).export(1, {}))


class _Starting(BaseHTTPRequestHandler):
    """Answers 503 twice, then 423 once, then a document."""

    answers = [503, 503, 423, 200]  # noqa: RUF012 (a class that the server makes anew each time)

    def do_GET(self) -> None:
        status = self.answers.pop(0)
        body = json.dumps(
            {"table_id": 7} if status == 200 else {"title": "not now", "sqlstate": "55P03"}
        ).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def test_server_that_starts_is_waited_for() -> None:
    with HTTPServer(("127.0.0.1", 0), _Starting) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        assert ExportClient(TableAddress.of(url, "t")).table(None) == {"table_id": 7}
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("url", ["ftp://host:1", "127.0.0.1:80", "http://", "tailrace://x"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="write http://host:port"):
        ExportClient(TableAddress.of(url, "t"))


def test_secrets_of_a_url_are_in_no_error_and_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "RETRY_SECONDS", 0.0)
    for address in (
        TableAddress.of("http://ada:secret@127.0.0.1:1/path?secret", "t"),
        TableAddress.of("http://:secret@127.0.0.1:1", "t"),
        TableAddress.of("http://127.0.0.1:1", "t", token="secret"),
    ):
        assert address.authorization is not None
        assert "secret" not in repr(address)
        with pytest.raises(ServerAway) as caught:
            ExportClient(address).table(None)
        assert "http://127.0.0.1:1 has not answered" in str(caught.value)
        assert "secret" not in str(caught.value)
    with pytest.raises(OptionRefused) as refused:
        SourceOptions.read({"url": "tailrace://:secret@host", "table": "t"})
    assert "secret" not in str(refused.value)


class _Started(_Starting):
    def do_GET(self) -> None:
        self.answers = [200]
        super().do_GET()


def test_a_server_is_its_certificate_or_none(tmp_path: Path) -> None:
    """One that nobody vouches for, whatever its names: the application knows it from the server."""
    (tmp_path / "other").mkdir()
    cert, key = certificate(tmp_path)
    other, _ = certificate(tmp_path / "other")
    with HTTPServer(("127.0.0.1", 0), _Started) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        url = f"https://localhost:{server.server_address[1]}"
        known = TableAddress.of(url, "t", certificate=cert.read_text())
        assert ExportClient(known).table(None) == {"table_id": 7}
        for strange in (
            TableAddress.of(url, "t"),
            TableAddress.of(url, "t", certificate=other.read_text()),
        ):
            with pytest.raises(ServerRefused, match="certificate"):
                ExportClient(strange).table(None)
        server.shutdown()
        thread.join()
