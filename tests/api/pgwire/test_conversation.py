"""Conversations, byte by byte, with a server in process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from struct import pack

import psycopg
import pytest

from tailrace.api.pgwire.conversation import WEIGHT_PER_STEP, WEIGHTS
from tailrace.api.pgwire.messages import Execute
from tests.harness.pg_door import PgDoor, WireClient, WireError, pg_door

TABLE = "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING)"


def at_door(work: Callable[[PgDoor, WireClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with pg_door() as door:
            client = await door.client()
            await client.query(TABLE)
            await work(door, client)

    asyncio.run(run())


def parse(text: str, name: str = "", *oids: int) -> bytes:
    body = f"{name}\0{text}\0".encode() + pack(f"!H{len(oids)}I", len(oids), *oids)
    return _frame(b"P", body)


def bind(
    *values: bytes | None, name: str = "", portal: str = "", formats: bytes = b"\0\0"
) -> bytes:
    parts = [
        pack("!i", -1) if value is None else pack("!i", len(value)) + value for value in values
    ]
    body = f"{portal}\0{name}\0".encode() + formats + pack("!H", len(values))
    return _frame(b"B", body + b"".join(parts) + b"\0\0")


def execute(limit: int = 0, portal: str = "") -> bytes:
    return _frame(b"E", portal.encode() + b"\0" + pack("!I", limit))


def _frame(kind: bytes, body: bytes) -> bytes:
    return kind + pack("!I", len(body) + 4) + body


def query(text: str) -> bytes:
    return _frame(b"Q", text.encode() + b"\0")


DESCRIBE = _frame(b"D", b"P\0")
SYNC = _frame(b"S", b"")


async def kinds(client: WireClient) -> str:
    return b"".join(kind for kind, _ in await client.until_ready()).decode()


def test_a_text_of_statements_is_one_transaction() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        with pytest.raises(WireError) as caught:
            await client.query("INSERT INTO t VALUES (1, ''); INSERT INTO t VALUES (1, '')")
        assert caught.value.sqlstate == "23505"
        assert await client.query("SELECT id FROM t") == []
        await client.query("INSERT INTO t VALUES (1, ''); INSERT INTO t VALUES (2, NULL)")
        assert await client.query("SELECT * FROM t ORDER BY id") == [("1", ""), ("2", None)]

    at_door(work)


def test_a_pipeline_is_one_transaction_up_to_its_sync() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        insert = parse("INSERT INTO t VALUES ($1, $2)")
        client.raw(insert + bind(b"1", b"a") + execute() + bind(b"1", b"b") + execute())
        client.raw(bind(b"3", b"c") + execute() + SYNC)
        assert await kinds(client) == "12C2EZ"
        assert await client.query("SELECT id FROM t") == []
        client.raw(insert + bind(b"1", b"a") + execute() + bind(b"2", None) + execute() + SYNC)
        assert await kinds(client) == "12C2CZ"
        assert await client.query("SELECT count(*) FROM t") == [("2",)]

    at_door(work)


def test_a_long_pipeline_gives_way() -> None:
    """Others have their turns between its statements, none of which waits for anything."""

    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a')")
        (session,) = door.node.services.sessions
        counts = [session.activity.query_count]

        async def look() -> None:
            while True:
                counts.append(session.activity.query_count)
                await asyncio.sleep(0)

        looking = asyncio.ensure_future(look())
        one = bind(name="s") + execute()
        client.raw(parse("SELECT note FROM t WHERE id = 1", "s") + one * 100 + SYNC)
        assert (await kinds(client)).count("D") == 100
        looking.cancel()
        steps = [after - before for before, after in pairwise(counts)]
        assert sum(steps) == 100
        assert max(steps) <= WEIGHT_PER_STEP // WEIGHTS[Execute] + 1

    at_door(work)


def test_a_sync_that_comes_late_ends_the_same_transaction() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        insert = parse("INSERT INTO t VALUES (1, 'a')") + bind() + execute()
        for ending, rows in [(parse("wrong"), []), (SYNC, [("1",)])]:
            client.raw(insert + _frame(b"H", b""))
            assert [(await client.frame())[0] for _ in range(3)] == [b"1", b"2", b"C"]
            client.raw(ending + (SYNC if ending != SYNC else b""))
            await client.until_ready()
            assert await client.query("SELECT id FROM t") == rows

    at_door(work)


def test_a_portal_is_moved_by_its_name() -> None:
    """As `Cursor.forward` of asyncpg moves it."""

    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c'), (4, 'd')")
        await client.query("BEGIN")
        rows = parse("SELECT note FROM t ORDER BY id", "s") + bind(name="s", portal="p")
        client.raw(rows + SYNC)
        assert await kinds(client) == "12Z"
        for move, tag in [("MOVE FORWARD 2 IN p", b"MOVE 2\0"), ("MOVE p", b"MOVE 1\0")]:
            client.raw(query(move))
            assert (await client.until_ready())[0] == (b"C", tag)
        client.raw(execute(1, portal="p") + SYNC)
        assert (await client.until_ready())[0][1].endswith(b"d")
        client.raw(query("MOVE ALL FROM p"))
        assert (await client.until_ready())[0] == (b"C", b"MOVE 0\0")
        with pytest.raises(WireError) as caught:
            await client.query("MOVE BACKWARD 1 IN p")
        assert caught.value.sqlstate == "55000"

    at_door(work)


def test_a_portal_gives_nothing_in_a_failed_transaction() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        await client.query("BEGIN")
        rows = parse("SELECT note FROM t ORDER BY id", "s") + bind(name="s", portal="p")
        client.raw(rows + execute(1, portal="p") + SYNC)
        assert await kinds(client) == "12DsZ"
        with pytest.raises(WireError):
            await client.query("SELECT 1 / 0")
        for asked in (execute(portal="p") + SYNC, query("MOVE p")):
            client.raw(asked)
            assert await kinds(client) == "EZ"

    at_door(work)


def test_a_portal_gives_as_many_rows_as_are_asked_for() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
        client.raw(parse("SELECT note FROM t ORDER BY id LIMIT 10") + bind() + DESCRIBE)
        client.raw(execute(2) + execute(2) + SYNC)
        assert await kinds(client) == "12TDDsDCZ"
        with pytest.raises(WireError) as caught:
            client.raw(execute() + SYNC)
            for kind, body in await client.until_ready():
                if kind == b"E":
                    raise WireError(body)
        assert caught.value.sqlstate == "34000"

    at_door(work)


def test_after_an_error_a_pipeline_is_skipped_to_its_sync() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        client.raw(parse("SELECT wrong FROM t LIMIT 1") + bind() + execute() + parse("SELECT 1"))
        client.raw(SYNC + parse("SELECT 1") + bind() + execute() + SYNC)
        assert await kinds(client) == "EZ"
        assert await kinds(client) == "12DCZ"

    at_door(work)


def test_a_failed_transaction_waits_for_rollback() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("BEGIN")
        client.raw(parse("SELECT 1/0") + bind() + execute() + SYNC)
        frames = await client.until_ready()
        assert frames[-1] == (b"Z", b"E")
        client.raw(parse("SELECT 1") + SYNC)
        assert WireError((await client.until_ready())[0][1]).sqlstate == "25P02"
        client.raw(parse("ROLLBACK") + bind() + execute() + SYNC)
        assert (await client.until_ready())[-1] == (b"Z", b"I")

    at_door(work)


def test_a_bind_must_fit_its_statement() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        for message, sqlstate in [
            (bind(b"1"), "08P01"),
            (bind(b"x", b""), "22P02"),
            (bind(b"1", b"\xff"), "22021"),
            (bind(b"\0\0", b"", formats=b"\0\1\0\1"), "22P03"),
            (bind(b"1", b"", formats=b"\0\1\0\2"), "22023"),
            (bind(b"1", b"", formats=b"\0\3\0\0\0\0\0\0"), "08P01"),
            (bind(b"1", b"", name="unknown"), "26000"),
        ]:
            client.raw(parse("INSERT INTO t VALUES ($1, $2)") + message + execute() + SYNC)
            frames = await client.until_ready()
            assert frames[1][0] == b"E", message
            assert WireError(frames[1][1]).sqlstate == sqlstate, message
        assert await client.query("SELECT id FROM t") == []

    at_door(work)


def test_each_bind_of_a_statement_says_its_formats() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a')")
        client.raw(parse("SELECT id FROM t WHERE id = 1", "s") + SYNC)
        assert await kinds(client) == "1Z"
        for form, told in [(0, b"1"), (1, pack("!q", 1)), (0, b"1")]:
            body = b"\0s\0" + pack("!HHHH", 0, 0, 1, form)
            client.raw(_frame(b"B", body) + DESCRIBE + execute() + SYNC)
            frames = await client.until_ready()
            assert frames[1][1][-2:] == pack("!H", form)
            assert frames[2][1] == pack("!Hi", 1, len(told)) + told

    at_door(work)


def test_a_statement_bound_anew_tells_its_new_columns() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        for name in ("one", "two"):
            client.raw(parse(f"SELECT 1 AS {name}") + bind() + DESCRIBE + execute() + SYNC)
            frames = await client.until_ready()
            assert name.encode() in frames[2][1]

    at_door(work)


def test_an_unknown_oid_is_refused_with_its_number() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        client.raw(parse("SELECT $1", "", 424242) + SYNC)
        error = WireError((await client.until_ready())[0][1])
        assert error.sqlstate == "42704"
        assert "424242" in error.fields["M"]

    at_door(work)


MODES = "transaction_isolation", "transaction_read_only", "transaction_deferrable"


def test_psycopg_sets_the_modes_of_its_transactions() -> None:
    """By BEGIN, and by the defaults of the session."""

    async def shown(connection: psycopg.AsyncConnection) -> list[object]:
        found = [await (await connection.execute(f"SHOW {name}")).fetchone() for name in MODES]
        return [row[0] for row in found if row is not None]

    async def work(door: PgDoor, client: WireClient) -> None:
        where = f"host=127.0.0.1 port={door.port} user=root dbname=defaultdb"
        expected: list[object] = ["repeatable read", "on", "on"]
        async with await psycopg.AsyncConnection.connect(where) as connection:
            await connection.set_isolation_level(psycopg.IsolationLevel.REPEATABLE_READ)
            await connection.set_read_only(True)
            await connection.set_deferrable(True)
            assert await shown(connection) == expected
            with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                await connection.execute("INSERT INTO t VALUES (1, 'a')")
        async with await psycopg.AsyncConnection.connect(where, autocommit=True) as connection:
            for name, value in zip(MODES, ("'repeatable read'", "on", "on"), strict=True):
                await connection.execute(f"SET default_{name} TO {value}".encode())
            assert await shown(connection) == expected

    at_door(work)


@pytest.mark.parametrize("oid", [0, 705])
def test_a_parameter_may_be_of_the_type_unknown(oid: int) -> None:
    """Its place says of which type it is."""

    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("INSERT INTO t VALUES (1, 'a')")
        text = "SELECT note FROM t WHERE id = $1"
        client.raw(parse(text, "", oid) + bind(b"1") + execute() + SYNC)
        frames = await client.until_ready()
        assert [kind for kind, _ in frames] == [b"1", b"2", b"D", b"C", b"Z"]

    at_door(work)


def test_a_binary_header_comes_with_the_first_row() -> None:
    """Readers know it from PostgreSQL so."""

    async def work(door: PgDoor, client: WireClient) -> None:
        header = b"PGCOPY\n\xff\r\n\0" + bytes(8)
        for rows in (0, 2):
            await client.query("".join(f"INSERT INTO t VALUES ({n}, '');" for n in range(rows)))
            client.send(b"Q", b"COPY t TO STDOUT (FORMAT binary)\0")
            messages = [body for kind, body in await client.until_ready() if kind == b"d"]
            assert [body.startswith(header) for body in messages] == [True] + [False] * rows
            assert len(messages[0]) > len(header)

    at_door(work)


def test_cancel_stops_what_runs_and_nothing_else() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", b"EXPERIMENTAL CHANGEFEED FOR t\0")
        assert (await client.frame())[0] == b"T"
        wrong = await door.connect()
        wrong.raw(pack("!IIii", 16, 80877102, client.key[0], client.key[1] ^ 1))
        assert await wrong.ended() == b""
        other = await door.client()
        await other.query("INSERT INTO t VALUES (1, 'a')")
        assert (await client.frame())[0] == b"D"
        right = await door.connect()
        right.raw(pack("!IIii", 16, 80877102, *client.key))
        frames = await client.until_ready()
        assert WireError(frames[-2][1]).sqlstate == "57014"
        again = await door.connect()
        again.raw(pack("!IIii", 16, 80877102, *client.key))
        assert await again.ended() == b""
        assert await client.query("SELECT 1") == [("1",)]

    at_door(work)


def test_a_copy_that_waits_for_rows_is_listed_and_canceled_by_another_session() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        client.send(b"Q", b"COPY t FROM STDIN\0")
        assert (await client.frame())[0] == b"G"
        client.send(b"d", b"1\tone\n")
        other = await door.client()
        listed = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'COPY%'"
        [(pid,)] = await other.query(listed)
        assert await other.query(f"SELECT pg_cancel_backend({pid})") == [("t",)]
        kind, body = await client.frame()
        assert (kind, b"57014" in body) == (b"E", True)
        client.send(b"d", b"2\ttwo\n")
        client.send(b"c")
        assert await kinds(client) == "Z"
        assert await client.query("SELECT count(*) FROM t") == [("0",)]
        assert await other.query(listed) == []

    at_door(work)


def test_a_slow_client_slows_its_feed_and_not_the_store() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        other = await door.client()
        client.send(b"Q", b"EXPERIMENTAL CHANGEFEED FOR t WITH initial_scan = 'no'\0")
        assert (await client.frame())[0] == b"T"
        transport = client.writer.transport
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()
        note = "x" * 10_000
        for start in range(0, 400, 100):
            rows = ", ".join(f"({number}, '{note}')" for number in range(start, start + 100))
            await other.query(f"INSERT INTO t VALUES {rows}")
        assert await other.query("SELECT count(*) FROM t") == [("400",)]
        transport.resume_reading()
        seen = [await client.frame() for _ in range(400)]
        assert {kind for kind, _ in seen} == {b"D"}

    at_door(work)


def test_connections_that_are_dropped_leave_nothing() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        for number in range(300):
            dropped = await door.connect()
            if number % 3:
                dropped.startup(user="root")
            if number % 3 == 2:
                dropped.send(b"Q", b"BEGIN; INSERT INTO t VALUES (1, 'x')\0")
            dropped.writer.transport.abort()
            door.forget(dropped)
        async with asyncio.timeout(20):
            while door.server.connection_count > 1:
                await asyncio.sleep(0.01)
        assert await client.query("SELECT count(*) FROM t") == [("0",)]

    at_door(work)


def test_a_statement_of_ten_megabytes_is_answered() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        text = "x" * 10_000_000
        assert await client.query(f"SELECT length('{text}')") == [("10000000",)]
        with pytest.raises(WireError) as caught:
            await client.query(f"SELECT '{text}")
        assert caught.value.sqlstate == "42601"

    at_door(work)


def test_a_client_is_told_whose_rights_it_has() -> None:
    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query("CREATE USER ada")
        assert client.status["is_superuser"] == "on"
        assert client.status["session_authorization"] == "root"
        await client.query("SET ROLE ada")
        assert client.status["is_superuser"] == "off"
        await client.query("DISCARD ALL")
        assert client.status["is_superuser"] == "on"

    at_door(scenario)


@pytest.mark.parametrize(
    ("statement", "names"),
    [
        ("INSERT INTO c VALUES (1, 1, 1)", ("c", None, "c_pkey")),
        ("INSERT INTO c VALUES (2, 1, 1)", ("c", None, "c_n_key")),
        ("INSERT INTO c VALUES (2, 2, 9)", ("c", None, "c_t_fkey")),
        ("DELETE FROM t", ("c", None, "c_t_fkey")),
        ("INSERT INTO c VALUES (2, -1, 1)", ("c", None, "positive")),
        ("INSERT INTO c VALUES (2, NULL, 1)", ("c", "n", None)),
        ("INSERT INTO c SELECT 2, NULL, 1", ("c", "n", None)),
    ],
)
def test_errors_name_what_was_violated(
    statement: str, names: tuple[str | None, str | None, str | None]
) -> None:
    """pgx, sqlx, node-postgres and pgjdbc hand on the fields, and programs choose by them."""

    async def scenario(door: PgDoor, client: WireClient) -> None:
        await client.query(
            "CREATE TABLE c (id INT8 PRIMARY KEY, n INT8 NOT NULL UNIQUE, t INT8 REFERENCES t, "
            "CONSTRAINT positive CHECK (n > 0))"
        )
        await client.query("INSERT INTO t VALUES (1, 'a')")
        await client.query("INSERT INTO c VALUES (1, 1, 1)")
        with pytest.raises(WireError) as caught:
            await client.query(statement)
        assert tuple(map(caught.value.fields.get, "tcn")) == names

    at_door(scenario)
