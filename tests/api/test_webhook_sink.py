"""Changefeeds into webhooks, through SQL: read back by a server that knows nothing of the sink."""

from __future__ import annotations

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tailrace.catalog.values.errors import SQLError
from tests.harness.certificates import certificate
from tests.harness.webhook_receiver import Fault, WebhookReceiver

FAST = """webhook_sink_config = '{"Retry": {"Max": "inf", "Backoff": "5ms"}}'"""
SECRET = "kanari7"


class Orders:
    """A store with a table of two rows, and feeds of it."""

    def __init__(self, database: AsyncDatabase) -> None:
        self.database = database
        self.sql = database.sql

    async def feed(self, uri: str, options: str = FAST) -> int:
        created = await self.sql(f"CREATE CHANGEFEED FOR orders INTO '{uri}' WITH {options}")
        ((job_id,),) = created.fetchall()
        assert isinstance(job_id, int)
        return job_id

    async def caught_up(self, job_id: int) -> None:
        async with asyncio.timeout(30):
            now = await self.database.node.store.now()
            await self.database.feed(job_id).wait_until(now)

    async def shown(self, job_id: int) -> str:
        return str((await self.sql(f"SHOW CHANGEFEED JOB {job_id}")).fetchall())


@asynccontextmanager
async def orders(path: Path, *, private: bool = True) -> AsyncIterator[Orders]:
    database = await aopen(path / "data")
    try:
        if private:
            await database.sql(
                "SET CLUSTER SETTING changefeed.webhook.private_addresses.enabled = true; "
                "SET CLUSTER SETTING changefeed.webhook.insecure_http.enabled = true; "
                "SET CLUSTER SETTING jobs.retry.initial_backoff = '10ms'"
            )
        await database.sql("CREATE TABLE orders (k INT PRIMARY KEY, name STRING)")
        await database.sql("INSERT INTO orders VALUES (1, 'a'), (2, 'b')")
        yield Orders(database)
    finally:
        await database.close()


async def until(what: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not what():
            await asyncio.sleep(0.01)


def test_a_request_is_a_batch_of_messages(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            options = (
                "resolved, webhook_auth_header = 'Bearer x', extra_headers = '{\"X-A\": \"1\"}'"
            )
            job_id = await bench.feed(
                f"webhook-http://{receiver.address}/in/a%20b?part=1%262", options
            )
            await bench.caught_up(job_id)
            await bench.sql("UPDATE orders SET name = 'c' WHERE k = 2")
            await bench.sql("DELETE FROM orders WHERE k = 1")
            await bench.caught_up(job_id)
            await until(lambda: "resolved" in receiver.messages[-1])
        rows = [each for each in receiver.messages if "resolved" not in each]
        # Each key's in their order; keys have lanes of their own.
        assert sorted(rows, key=lambda row: str(row["key"])) == [
            {"after": {"k": 1, "name": "a"}, "key": [1], "topic": "orders"},
            {"after": None, "key": [1], "topic": "orders"},
            {"after": {"k": 2, "name": "b"}, "key": [2], "topic": "orders"},
            {"after": {"k": 2, "name": "c"}, "key": [2], "topic": "orders"},
        ]
        assert set(receiver.paths) == {"/in/a%20b?part=1%262"}
        for headers in receiver.headers:
            assert headers["Host"] == receiver.address
            assert headers["Content-Type"] == "application/json"
            assert (headers["Authorization"], headers["X-A"]) == ("Bearer x", "1")

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_requests_gather_as_they_are_told(tmp_path: Path) -> None:
    config = '{"Flush": {"Messages": 5, "Frequency": "50ms"}}'

    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            await bench.sql("SET CLUSTER SETTING changefeed.sink_io_workers = 1")
            await bench.sql("INSERT INTO orders SELECT g, 'x' FROM generate_series(3, 12) g")
            job_id = await bench.feed(
                f"webhook-http://{receiver.address}", f"webhook_sink_config = '{config}'"
            )
            await bench.caught_up(job_id)
        assert [json.loads(body)["length"] for body in receiver.bodies] == [5, 5, 2]

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_enriched_messages_say_whence_they_come(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            options = "envelope = 'enriched', enriched_properties = 'source,schema', resolved"
            job_id = await bench.feed(f"webhook-http://{receiver.address}", options)
            await bench.caught_up(job_id)
            await bench.sql("UPDATE orders SET name = 'c' WHERE k = 2")
            await bench.sql("DELETE FROM orders WHERE k = 1")
            await bench.caught_up(job_id)
            await until(lambda: "resolved" in receiver.messages[-1])
            store_id = bench.database.node.store.id
        rows = [each["payload"] for each in receiver.messages if "resolved" not in each]
        rows.sort(key=lambda row: int(row["key"]["k"]))  # messages of several keys have no order
        assert [(row["op"], row["key"], row["after"]) for row in rows] == [
            ("c", {"k": 1}, {"k": 1, "name": "a"}),
            ("d", {"k": 1}, None),
            ("c", {"k": 2}, {"k": 2, "name": "b"}),
            ("u", {"k": 2}, {"k": 2, "name": "c"}),
        ]
        for row in rows:
            source = row["source"]
            assert (source["changefeed_sink"], source["table_name"]) == ("webhook", "orders")
            assert (source["job_id"], source["cluster_id"]) == (str(job_id), store_id)
        fields = {each["field"] for each in receiver.messages[0]["schema"]["fields"]}
        assert fields == set(rows[0])

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


@pytest.mark.parametrize("seed", range(1, 4))
def test_no_row_is_lost_whatever_the_receiver_does(tmp_path: Path, seed: int) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.random, receiver.chance = Random(seed), 0.4
        retries = """webhook_sink_config = '{"Retry": {"Max": 2, "Backoff": "5ms"}}'"""
        options = f"updated, resolved, {retries}, webhook_client_timeout = '50ms'"
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(f"webhook-http://{receiver.address}", options)
            expected = {(k, name) for k, name in [(1, "a"), (2, "b")]}
            for number in range(60):
                await bench.sql(f"UPSERT INTO orders VALUES ({number % 7}, 'v{number}')")
                expected.add((number % 7, f"v{number}"))
                await asyncio.sleep(0.01)
            receiver.chance = 0.0
            await bench.caught_up(job_id)
        found: dict[int, dict[str, str]] = {}
        for message in receiver.messages:
            if "resolved" in message:
                continue
            seen = found.setdefault(message["key"][0], {})
            if message["updated"] not in seen:
                assert message["updated"] > max(seen, default=""), message
            seen[message["updated"]] = message["after"]["name"]
        assert {(k, name) for k, seen in found.items() for name in seen.values()} == expected
        assert len(receiver.faults) >= len(Fault) - 3, receiver.faults

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_what_a_receiver_refuses_for_ever_ends_the_feed(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.status, receiver.words = 400, f"no room for Bearer {SECRET} and {SECRET}"
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(
                f"webhook-http://{receiver.address}", f"webhook_auth_header = 'Bearer {SECRET}'"
            )
            with pytest.raises(Exception, match=f"webhook at {receiver.address}: 400"):
                await bench.caught_up(job_id)
            async with asyncio.timeout(10):
                while "failed" not in await bench.shown(job_id):
                    await asyncio.sleep(0.01)
            shown = await bench.shown(job_id)
            assert "no room for redacted" in shown
            assert SECRET not in shown

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


@pytest.mark.parametrize("status", [301, 401, 404, 429])
def test_a_receiver_that_takes_nothing_now_is_waited_for(tmp_path: Path, status: int) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.status = status
        once = """webhook_sink_config = '{"Retry": {"Max": 1, "Backoff": "1ms"}}'"""
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(f"webhook-http://{receiver.address}", once)
            async with asyncio.timeout(10):
                while f"{receiver.address}: {status}" not in await bench.shown(job_id):
                    await asyncio.sleep(0.01)
            receiver.status = 200
            await bench.caught_up(job_id)
        assert {message["key"][0] for message in receiver.messages} == {1, 2}

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_a_receiver_that_is_busy_for_long_is_told(tmp_path: Path) -> None:
    """Also while the sink itself tries again, so that no attempt of the feed has failed."""

    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.status = 503
        async with orders(tmp_path) as bench:
            job_id = await bench.feed(f"webhook-http://{receiver.address}")
            async with asyncio.timeout(30):
                while f"{receiver.address}: 503" not in await bench.shown(job_id):
                    await asyncio.sleep(0.01)
            with pytest.raises(SQLError) as caught:
                await bench.sql(f"SELECT wait_for_changefeed({job_id}, '1ms')")
            assert caught.value.sqlstate == "57014"
            assert str(caught.value.detail).startswith("It has resolved nothing yet; ")
            assert f"{receiver.address}: 503" in str(caught.value.detail)
            receiver.status = 200
            await bench.caught_up(job_id)
            assert f"{receiver.address}: 503" not in await bench.shown(job_id)

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_a_batch_too_large_goes_in_parts(tmp_path: Path) -> None:
    async def scenario(receiver: WebhookReceiver) -> None:
        receiver.bytes_max = 1_000
        async with orders(tmp_path) as bench:
            await bench.sql("INSERT INTO orders SELECT g, 'x' FROM generate_series(3, 300) g")
            job_id = await bench.feed(f"webhook-http://{receiver.address}")
            await bench.caught_up(job_id)
            assert {message["key"][0] for message in receiver.messages} == set(range(1, 301))
            await bench.sql(f"INSERT INTO orders VALUES (301, '{'x' * 2000}')")
            with pytest.raises(Exception, match="413"):
                await bench.caught_up(job_id)

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


def test_certificates_are_checked_on_both_sides(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path)

    def part(name: str, path: Path) -> str:
        return f"{name}={quote(b64encode(path.read_bytes()).decode(), safe='')}"

    async def scenario(receiver: WebhookReceiver) -> None:
        uri = f"webhook-https://{receiver.address}/"
        trusted = f"{uri}?{part('ca_cert', cert)}"
        whole = f"{trusted}&{part('client_cert', cert)}&{part('client_key', key)}"
        async with orders(tmp_path) as bench:
            with pytest.raises(SQLError, match="CERTIFICATE_VERIFY_FAILED") as caught:
                await bench.feed(uri)
            assert caught.value.sqlstate == "08001"
            job_id = await bench.feed(whole)
            await bench.caught_up(job_id)
            shown = await bench.shown(job_id)
            assert "client_key=redacted" in shown
            assert quote(b64encode(key.read_bytes()).decode(), safe="")[:40] not in shown
        assert len(receiver.messages) == 2

    with WebhookReceiver(certificate=(cert, key), clients=cert) as receiver:
        asyncio.run(scenario(receiver))


def test_the_documents_command_runs(tmp_path: Path) -> None:
    """That of docs/sinks.md, word for word but for the receiver's address."""
    text = (Path(__file__).parents[2] / "docs" / "sinks.md").read_text()
    (command,) = re.findall(r"```sql\n(CREATE CHANGEFEED[^`]*'webhook-https:[^`]*)```", text)

    async def scenario(receiver: WebhookReceiver) -> None:
        async with orders(tmp_path) as bench:
            await bench.sql("SET CLUSTER SETTING changefeed.sink_io_workers = 1")
            created = await bench.sql(
                command.replace(
                    "webhook-https://hooks.example", f"webhook-http://{receiver.address}"
                )
            )
            ((job_id,),) = created.fetchall()
            assert isinstance(job_id, int)
            await bench.caught_up(job_id)
        assert json.loads(receiver.bodies[0])["length"] == 2
        assert receiver.paths[0] == "/orders?token=secret"

    with WebhookReceiver() as receiver:
        asyncio.run(scenario(receiver))


REFUSED = [
    ("webhook-https://127.0.0.1:9/", "42501", "not public"),
    ("webhook-https://[::ffff:10.0.0.1]/", "42501", "not public"),
    ("webhook-https://169.254.169.254/latest", "42501", "not public"),
    ("webhook-http://192.0.2.1/", "42501", "in the clear"),
    ("webhook-https://nowhere.invalid/", "08001", "webhook at nowhere.invalid:443: "),
    ("webhook-https://h/?client_key=aaaa", "22023", "go together"),
    ("webhook-https://h/?ca_cert=!", "22023", "not PEM in base64"),
    ("webhook-https://h/?insecure_tls_skip_verify=maybe", "22023", "true or false"),
]


def test_receivers_that_will_not_do_are_refused_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path, private=False) as bench:
            for uri, sqlstate, words in REFUSED:
                with pytest.raises(SQLError, match=words) as caught:
                    await bench.feed(uri)
                assert caught.value.sqlstate == sqlstate, uri
            await bench.sql(
                "SET CLUSTER SETTING changefeed.webhook.private_addresses.enabled = true"
            )
            with pytest.raises(SQLError, match=r"webhook at 127.0.0.1:9: .*(refused|failed)"):
                await bench.feed("webhook-https://127.0.0.1:9/?token=x")
            for options in ("envelope = 'key_only'", "format = 'parquet'", "compression = 'gzip'"):
                with pytest.raises(SQLError):
                    await bench.feed("webhook-https://127.0.0.1:9/", options)

    asyncio.run(scenario())


BAD_OPTIONS = [
    """webhook_sink_config = '{"Flush": {"Messages": 5}}'""",
    """webhook_sink_config = '{"Flush": {"Frequency": "1s"}}'""",
    """webhook_sink_config = '{"Flush": {"Colour": 5}}'""",
    """webhook_sink_config = '{"Retry": {"Max": 0}}'""",
    """webhook_sink_config = '{"Retry": {"Backoff": 3}}'""",
    "webhook_sink_config = '[]'",
    "webhook_sink_config = 'x'",
    "webhook_client_timeout = '0s'",
    "webhook_client_timeout = '-1s'",
    "extra_headers = '{\"a\": 1}'",
    'extra_headers = \'{"X Tenant": "eu"}\'',
    'extra_headers = \'{"content-length": "3"}\'',
    "extra_headers = '{\"authorization\": \"b\"}', webhook_auth_header = 'a'",
    "webhook_auth_header = e'a\\nb'",
]


def test_values_that_will_not_do_are_refused(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with orders(tmp_path) as bench:
            for option in BAD_OPTIONS:
                with pytest.raises(SQLError) as caught:
                    await bench.feed("webhook-https://127.0.0.1:9/", option)
                assert caught.value.sqlstate == "22023", option

    asyncio.run(scenario())
