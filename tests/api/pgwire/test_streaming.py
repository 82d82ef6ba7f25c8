"""Long results over the wire: sent as they are computed, no faster than they are read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from struct import pack

from tests.harness.pg_door import PgDoor, WireClient, WireError, pg_door, row_of

ENDLESS = "SELECT i FROM generate_series(1, 100000000000) AS s(i)"
FAILING = "SELECT 9 / (150000 - i), repeat('x', 200) FROM generate_series(1, 200000) AS s(i)"
"""Fails behind what DuckDB computes ahead."""

Scenario = Callable[[PgDoor, WireClient], Awaitable[None]]


def run(scenario: Scenario) -> None:
    async def main() -> None:
        async with pg_door() as door:
            await scenario(door, await door.client())
            await until(lambda: waiting(door) == 0)

    asyncio.run(main())


def waiting(door: PgDoor) -> float:
    return door.node.store.metrics.get("sql_results_waiting")


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


def test_an_error_follows_the_rows_before_it() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", FAILING.encode() + b"\0")
        frames = await client.until_ready()
        kinds = [kind for kind, _ in frames]
        assert kinds[0] == b"T"
        assert kinds[-2:] == [b"E", b"Z"]
        assert 8192 <= kinds.count(b"D") == len(kinds) - 3 < 150_000
        assert WireError(frames[-2][1]).sqlstate == "22012"
        assert await client.query("SELECT 1") == [("1",)]

    run(scenario)


def test_what_was_written_before_a_failing_result_is_undone() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query("CREATE TABLE t (k INT8 PRIMARY KEY)")
        client.send(b"Q", f"INSERT INTO t VALUES (1); {FAILING}\0".encode())
        frames = await client.until_ready()
        assert frames[-2][0] == b"E"
        assert await client.query("SELECT * FROM t") == []

    run(scenario)


def test_a_client_that_does_not_read_is_waited_for() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", ENDLESS.encode() + b"\0")
        await until(lambda: waiting(door) == 1)
        other = await door.client()
        for _ in range(20):
            assert await other.query("SELECT count(*) FROM generate_series(1, 9)") == [("9",)]
        assert waiting(door) == 1
        client.writer.transport.abort()
        door.forget(client)

    run(scenario)


def test_a_result_is_cancelled_on_its_way() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", ENDLESS.encode() + b"\0")
        for _ in range(1000):
            await client.frame()
        cancel = await door.connect()
        cancel.raw(pack("!IIii", 16, 80877102, *client.key))
        frames = await client.until_ready()
        assert WireError(frames[-2][1]).sqlstate == "57014"
        assert await client.query("SELECT 1") == [("1",)]

    run(scenario)


def test_portals_take_turns() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query("BEGIN")
        for name in ("a", "b"):
            text = f"{ENDLESS} OFFSET {0 if name == 'a' else 1000}"
            client.send(b"P", f"{name}\0{text}\0".encode() + pack("!H", 0))
            client.send(b"B", f"{name}\0{name}\0".encode() + pack("!HHH", 0, 0, 0))
        for _ in range(3):
            for name in ("a", "b"):
                client.send(b"E", name.encode() + b"\0" + pack("!I", 6000))
        client.send(b"S")
        frames = await client.until_ready()
        rows = [int(row_of(body)[0] or 0) for kind, body in frames if kind == b"D"]
        assert sum(kind == b"s" for kind, _ in frames) == 6
        assert [rows[6000 * place] for place in range(6)] == [1, 1001, 6001, 7001, 12001, 13001]
        assert rows == [start + n for start in rows[::6000] for n in range(6000)]
        assert waiting(door) == 2
        await client.query("COMMIT")

    run(scenario)


def test_cursors_fetch_from_a_result_without_an_end() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query(f"BEGIN; DECLARE c CURSOR FOR {ENDLESS}")
        assert await client.query("FETCH 2 FROM c") == [("1",), ("2",)]
        assert len(await client.query("FETCH 20000 FROM c")) == 20_000
        await client.query("MOVE 10000 FROM c")
        assert await client.query("FETCH c") == [("30003",)]
        try:
            await client.query("FETCH PRIOR FROM c")
        except WireError as error:
            assert error.sqlstate == "55000"
        assert waiting(door) == 1
        await client.query("ROLLBACK")

    run(scenario)


def test_a_cursor_with_hold_goes_on_behind_the_commit() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await client.query("INSERT INTO t SELECT g FROM generate_series(1, 50000) AS s(g)")
        await client.query("BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k")
        await client.query("FETCH 1 FROM c; DELETE FROM t; COMMIT")
        rows = await client.query("FETCH ALL FROM c")
        assert rows == [(str(k),) for k in range(2, 50_001)]
        await client.query("CLOSE c")

    run(scenario)


def test_copy_sends_what_is_computed() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", b"COPY (SELECT i FROM generate_series(1, 100000) AS s(i)) TO STDOUT\0")
        frames = await client.until_ready()
        data = b"".join(body for kind, body in frames if kind == b"d")
        assert data.split() == [str(i).encode() for i in range(1, 100_001)]
        assert frames[-2] == (b"C", b"COPY 100000\0")
        client.send(b"Q", f"COPY ({FAILING}) TO STDOUT\0".encode())
        frames = await client.until_ready()
        assert frames[-2][0] == b"E"
        assert b"c" not in [kind for kind, _ in frames]

    run(scenario)


def test_a_feed_that_ends_by_design_is_an_error_of_its_statement() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        failed: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, about: failed.append(about))
        await client.query("CREATE TABLE t (k INT8 PRIMARY KEY)")
        await client.query("INSERT INTO t VALUES (1)")
        feeds = [await door.client() for _ in range(3)]
        policy = " WITH schema_change_policy = 'stop'"
        for feed, options in zip(feeds, ("", policy, ""), strict=True):
            feed.send(b"Q", f"CREATE CHANGEFEED FOR TABLE t{options}\0".encode())
            while (await feed.frame())[0] != b"D":
                pass
        altering = await door.client()
        await altering.query("ALTER TABLE t ADD COLUMN v INT8 DEFAULT 7")
        states = [await end_of(feeds[1])]
        await altering.query("TRUNCATE t")
        states += [await end_of(feeds[0]), await end_of(feeds[2])]
        assert states == ["55000"] * 3
        feeds[0].send(b"Q", b"CREATE CHANGEFEED FOR TABLE t WITH initial_scan = 'no'\0")
        await feeds[0].frame()
        await altering.query("DROP TABLE t")
        assert await end_of(feeds[0]) == "42P01"
        assert failed == []

    run(scenario)


async def end_of(client: WireClient) -> str:
    """The SQLSTATE of the error that ends what the client runs, and leaves the client as it was."""
    frames = await client.until_ready()
    assert frames[-2][0] == b"E", frames
    error = WireError(frames[-2][1])
    assert error.fields["S"] == "ERROR", error
    assert await client.query("SELECT 1") == [("1",)]
    return error.sqlstate
