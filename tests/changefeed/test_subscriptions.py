"""Subscriptions through SQL: what a client that comes back reads, and what is kept for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from decimal import Decimal
from random import Random

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed import Changefeeds, ChangefeedServices
from tailrace.changefeed.sinks import default_kinds
from tailrace.kvlayer.protected_timestamp import ProtectedTimestamps, records
from tailrace.sql import Row, Session
from tests.harness.secrets import sealer
from tests.harness.simulation import Simulation
from tests.harness.sql_node import SqlNode, sql_node

TABLE = "CREATE TABLE t (k INT8 PRIMARY KEY, v STRING)"
SUBSCRIBED = "CREATE SUBSCRIPTION s FOR TABLE t WITH updated, min_checkpoint_frequency = '100ms'"


@asynccontextmanager
async def node_with_feeds(sim: Simulation) -> AsyncIterator[tuple[SqlNode, Changefeeds]]:
    """A node whose sessions make feeds of its own store."""
    async with sql_node(sim) as node:
        services = ChangefeedServices(
            store=node.store,
            descriptors=node.services.catalog.descriptors,
            leases=node.services.leases,
            kinds=default_kinds(),
            offload=sim.offload,
            protections=ProtectedTimestamps(node.store),
            rights=node.services.rights,
            sealer=sealer(),
        )
        feeds = Changefeeds(services, node.registry)
        node.services = replace(node.services, changefeeds=feeds)
        await node.first.close()
        node.first = node.session()
        yield node, feeds


class Client:
    """A program that keeps what it has processed, and may die at any time.

    It remembers rows by key and timestamp. What it has written down is what it had when it last
    wrote down a resolved timestamp, which it does before it acknowledges that.
    """

    def __init__(self) -> None:
        self.processed: list[tuple[int, Decimal]] = []
        self.resolved = Decimal(0)
        self._seen: list[tuple[int, Decimal]] = []

    def begin_again(self) -> None:
        """What was not written down is forgotten."""
        self._seen.clear()

    def take(self, result_rows: Sequence[Row]) -> Decimal | None:
        """Notes rows; returns the last resolved timestamp among them, which is written down."""
        last = None
        for _, key, value in result_rows:
            assert isinstance(value, bytes)
            said = json.loads(value)
            if key is None:
                last = Decimal(said["resolved"])
                self._write_down(last)
                continue
            assert isinstance(key, bytes)
            at = Decimal(said["updated"])
            if at > self.resolved:
                self._seen.append((json.loads(key)[0], at))
        return last

    def _write_down(self, resolved: Decimal) -> None:
        self.processed += [row for row in self._seen if row[1] <= resolved]
        self._seen = [row for row in self._seen if row[1] > resolved]
        self.resolved = max(self.resolved, resolved)


async def fetched(session: Session, how: str = "ALL", count: int = 1) -> Sequence[Row]:
    """The rows of the next FETCHes until there are so many, resolved messages not counted."""
    rows: list[Row] = []
    while sum(row[1] is not None for row in rows) < count:
        (result,) = await session.execute(f"FETCH {how} FROM SUBSCRIPTION s")
        rows += result.fetch_rows()
    return rows


def keys(rows: Sequence[Row]) -> list[object]:
    return [row[1] for row in rows if row[1] is not None]


async def next_resolved(session: Session) -> str:
    while True:
        (result,) = await session.execute("FETCH ALL FROM SUBSCRIPTION s")
        marks = [row[2] for row in result.fetch_rows() if row[1] is None]
        if marks:
            assert isinstance(marks[-1], bytes)
            resolved = json.loads(marks[-1])["resolved"]
            assert isinstance(resolved, str)
            return resolved


async def refused(session: Session, text: str) -> SQLError:
    with pytest.raises(SQLError) as raised:
        await session.execute(text)
    return raised.value


def test_who_comes_back_reads_on_from_what_was_acknowledged() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(f"{TABLE}; INSERT INTO t VALUES (1, 'a'), (2, 'b')")
            await node.sql(SUBSCRIBED)
            first = node.session()
            assert keys(await fetched(first, count=2)) == [b"[1]", b"[2]"]
            at = await next_resolved(first)
            await node.sql("INSERT INTO t VALUES (3, 'c')")
            assert keys(await fetched(first)) == [b"[3]"]
            await first.execute(f"ACKNOWLEDGE SUBSCRIPTION s UP TO {at}")
            await first.close()
            second = node.session()
            assert keys(await fetched(second)) == [b"[3]"]
            await second.close()

    sim = Simulation(1)
    sim.run(scenario())


def test_killed_at_random_a_client_has_each_version_once() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(TABLE)
            await node.sql("INSERT INTO t SELECT g, 'scanned' FROM generate_series(1, 50) AS g(g)")
            await node.sql(SUBSCRIBED)
            writing = asyncio.create_task(write(node))
            client, deaths = Client(), 0
            while not writing.done() or client.resolved < writing.result():
                session = node.session()
                client.begin_again()
                reading = asyncio.create_task(read(session, client))
                await asyncio.sleep(random.expovariate(2.0))
                deaths += not reading.done()
                reading.cancel()
                await asyncio.wait([reading])
                await session.close()
            assert deaths > 10, deaths
            (written,) = await node.rows("SELECT count(*), count(DISTINCT k) FROM t")
            assert written == (50, 50)
            assert len(client.processed) == len(set(client.processed)) == 50 + 120

    async def write(node: SqlNode) -> Decimal:
        """Versions, each of a transaction of its own; returns a timestamp behind the last."""
        for number in range(120):
            await node.sql("UPSERT INTO t VALUES ($1, $2)", 1 + number % 50, str(number))
            await asyncio.sleep(random.expovariate(10.0))
        ((behind,),) = await node.rows("SELECT cluster_logical_timestamp()")
        assert isinstance(behind, Decimal)
        return behind

    async def read(session: Session, client: Client) -> None:
        while True:
            how = random.choice(("ALL", "1", "7"))
            (result,) = await session.execute(f"FETCH {how} FROM SUBSCRIPTION s")
            resolved = client.take(result.fetch_rows())
            if resolved is not None and random.random() < 0.5:
                await session.execute(f"ACKNOWLEDGE SUBSCRIPTION s UP TO {resolved}")

    sim = Simulation(2)
    random = Random(2)
    sim.run(scenario())


def test_acknowledged_with_what_was_made_of_the_rows() -> None:
    """In one transaction: a ROLLBACK takes back both."""

    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(f"{TABLE}; CREATE TABLE done (k INT8 PRIMARY KEY)")
            await node.sql(SUBSCRIBED)
            session = node.session()
            at = await next_resolved(session)
            for ending, expected in (("ROLLBACK", (0, None)), ("COMMIT", (1, at))):
                await session.execute(
                    f"BEGIN; INSERT INTO done VALUES (1); ACKNOWLEDGE SUBSCRIPTION s UP TO {at}; "
                    f"{ending}"
                )
                (count,) = (await node.rows("SELECT count(*) FROM done"))[0]
                (shown,) = await node.rows("SHOW SUBSCRIPTIONS")
                assert (count, shown[3]) == expected
            await session.close()

    sim = Simulation(3)
    sim.run(scenario())


def test_a_position_goes_forwards_only() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(TABLE)
            await node.sql(SUBSCRIBED)
            session = node.session()
            earlier, later = await next_resolved(session), await next_resolved(session)
            await session.execute(f"ACKNOWLEDGE SUBSCRIPTION s UP TO {later}")
            await session.execute(f"ACKNOWLEDGE SUBSCRIPTION s UP TO '{later}'")
            error = await refused(session, f"ACKNOWLEDGE SUBSCRIPTION s UP TO {earlier}")
            assert (error.sqlstate, later in str(error)) == ("22023", True)
            future = Decimal(later) + 10**12
            error = await refused(session, f"ACKNOWLEDGE SUBSCRIPTION s UP TO {future}")
            assert (error.sqlstate, "in the future" in error.message) == ("22023", True)
            error = await refused(session, "ACKNOWLEDGE SUBSCRIPTION s UP TO 'soon'")
            assert error.sqlstate == "22023"
            await session.close()

    sim = Simulation(4)
    sim.run(scenario())


@pytest.mark.parametrize("bound", ["max_age", "max_bytes"])
def test_beyond_its_bounds_it_fails_by_name_and_lets_go(bound: str) -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, feeds):
            await node.sql(TABLE)
            value = "10m" if bound == "max_age" else "10000"
            await node.sql(f"SET CLUSTER SETTING changefeed.subscription.{bound} = '{value}'")
            node.store.settings.set(f"changefeed.subscription.{bound}", value)
            await node.sql(SUBSCRIBED)
            await feeds.subscription_bounds.enforce()
            (shown,) = await node.rows("SHOW SUBSCRIPTIONS")
            assert shown[5] == "standing"
            assert len(records(node.store.engine)) == 1
            if bound == "max_age":
                await asyncio.sleep(601)
            for k in range(20):
                await node.sql("UPSERT INTO t VALUES ($1, repeat('x', 1000))", k)
                if bound == "max_bytes" and k == 5:
                    await feeds.subscription_bounds.enforce()
            await feeds.subscription_bounds.enforce()
            (shown,) = await node.rows("SHOW SUBSCRIPTIONS")
            assert f"changefeed.subscription.{bound} allows" in str(shown[5])
            assert records(node.store.engine) == []
            error = await node.error("FETCH ALL FROM SUBSCRIPTION s")
            assert (error.sqlstate, '"s" has failed' in error.message) == ("55000", True)
            await node.sql("DROP SUBSCRIPTION s")

    sim = Simulation(5)
    sim.run(scenario())


def test_acknowledged_bytes_count_no_more() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, feeds):
            await node.sql(TABLE)
            node.store.settings.set("changefeed.subscription.max_bytes", "10000")
            await node.sql(SUBSCRIBED)
            session = node.session()
            for k in range(30):
                await node.sql("UPSERT INTO t VALUES ($1, repeat('x', 1000))", k)
                await feeds.subscription_bounds.enforce()
                if k % 5 == 4:
                    await fetched(session, count=5)
                    at = await next_resolved(session)
                    await session.execute(f"ACKNOWLEDGE SUBSCRIPTION s UP TO {at}")
            (shown,) = await node.rows("SHOW SUBSCRIPTIONS")
            assert shown[5] == "standing"
            await session.close()

    sim = Simulation(6)
    sim.run(scenario())


def test_a_dropped_subscription_is_forgotten_with_its_protection() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(TABLE)
            await node.sql(SUBSCRIBED)
            assert (await node.error(SUBSCRIBED)).sqlstate == "42710"
            again = SUBSCRIBED.replace("SUBSCRIPTION", "SUBSCRIPTION IF NOT EXISTS")
            assert "skipping" in ((await node.sql(again)).notice or "")
            await node.sql("DROP SUBSCRIPTION s")
            assert records(node.store.engine) == []
            assert (await node.error("FETCH FROM SUBSCRIPTION s")).sqlstate == "42704"
            assert "skipping" in ((await node.sql("DROP SUBSCRIPTION IF EXISTS s")).notice or "")

    sim = Simulation(7)
    sim.run(scenario())


def test_nobody_reads_the_subscription_of_another() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(f"{TABLE}; CREATE USER ada; CREATE USER bo; GRANT SELECT ON t TO ada")
            ada, bo = node.session("ada"), node.session("bo")
            assert (await refused(bo, SUBSCRIBED)).sqlstate == "42501"
            await ada.execute(SUBSCRIBED)
            for statement in (
                "FETCH ALL FROM SUBSCRIPTION s",
                "ACKNOWLEDGE SUBSCRIPTION s UP TO 1",
                "DROP SUBSCRIPTION s",
            ):
                assert (await refused(bo, statement)).sqlstate == "42704"
            (shown,) = await bo.execute("SHOW SUBSCRIPTIONS")
            assert shown.fetch_rows() == []
            await next_resolved(ada)
            await node.sql("REVOKE SELECT ON t FROM ada")
            with pytest.raises(SQLError) as raised:
                while True:
                    await next_resolved(ada)
            assert raised.value.sqlstate == "42501"
            await ada.close()
            await bo.close()

    sim = Simulation(8)
    sim.run(scenario())


def test_fetch_waits_no_longer_than_it_is_told() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(TABLE)
            await node.sql("CREATE SUBSCRIPTION s FOR t WITH resolved = '1h', initial_scan = 'no'")
            await next_resolved(node.first)
            began = asyncio.get_running_loop().time()
            assert await node.rows("FETCH ALL FROM SUBSCRIPTION s WITH (timeout = '3s')") == []
            assert asyncio.get_running_loop().time() - began == pytest.approx(3.0, abs=0.1)
            await node.sql("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
            found = await node.rows("FETCH 2 FROM SUBSCRIPTION s WITH timeout = '3s'")
            assert keys(found) == [b"[1]", b"[2]"]
            found = await node.rows("FETCH NEXT FROM SUBSCRIPTION s")
            assert keys(found) == [b"[3]"]
            error = await node.error("FETCH BACKWARD 1 FROM SUBSCRIPTION s")
            assert error.sqlstate == "42601"
            error = await node.error("FETCH ALL FROM SUBSCRIPTION s WITH (speed = '1')")
            assert error.sqlstate == "42601"

    sim = Simulation(9)
    sim.run(scenario())


def test_a_table_that_was_dropped_ends_it_behind_its_last_row() -> None:
    async def scenario() -> None:
        async with node_with_feeds(sim) as (node, _):
            await node.sql(f"{TABLE}; INSERT INTO t VALUES (1, 'a')")
            await node.sql(SUBSCRIBED)
            await node.sql("INSERT INTO t VALUES (2, 'b'); DROP TABLE t")
            session = node.session()
            assert keys(await fetched(session, count=2)) == [b"[1]", b"[2]"]
            with pytest.raises(SQLError) as raised:
                while True:
                    await session.execute("FETCH ALL FROM SUBSCRIPTION s")
            assert raised.value.sqlstate == "42P01"
            await session.close()

    sim = Simulation(10)
    sim.run(scenario())
