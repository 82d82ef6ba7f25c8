"""Statements that are carried out at once, beside the same ones on the ordinary way.

A run of a prepared statement that comes in one piece may be carried out at once; one with a Flush
before its Sync never is, and means the same.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from random import Random
from struct import pack

import pytest

from tailrace.api.pgwire import immediate as answers
from tailrace.api.pgwire.immediate import GIVEN_SECONDS
from tailrace.kvlayer.errors import StoreClosed
from tailrace.kvlayer.files import disk as files
from tailrace.kvlayer.files.syncs import LaneSyncs
from tailrace.kvlayer.log import command_log
from tailrace.kvlayer.store import Store
from tailrace.kvlayer.txn import immediate
from tailrace.sql import Session
from tailrace.sql.session.immediate import TEXT_LENGTH_MAX, ImmediateStatements, Outcome
from tests.harness.pg_door import Frame, PgDoor, WireClient, pg_door, row_of

TABLE = "CREATE TABLE t (id INT8 PRIMARY KEY, note STRING, n INT8 NOT NULL DEFAULT 7, at DATE)"
TEXTS = {
    "select": "SELECT id, note, n, at FROM t WHERE id = $1",
    "some": "SELECT note FROM t WHERE id = $1 AND n < $2",
    "insert": "INSERT INTO t VALUES ($1, $2, $3)",
    "short": "INSERT INTO t (id, note) VALUES ($1, $2)",
    "update": "UPDATE t SET n = n + $1 WHERE id = $2",
    "delete": "DELETE FROM t WHERE id = $1",
}
BORDERS = {"begin": "BEGIN", "commit": "COMMIT", "end": "end;"}
"""Of transactions, prepared as pgbench has them."""
PARAMETERS = {"select": 1, "some": 2, "insert": 3, "short": 2, "update": 2, "delete": 1}
SEEDS = 4
STEPS = 160
ROWS_SPILLED = 150
"""Twice the commands that a transaction may be ahead of the log."""
SYNC_SECONDS_MAX = 20


def frame(kind: bytes, body: bytes) -> bytes:
    return kind + pack("!I", len(body) + 4) + body


FLUSH, SYNC = frame(b"H", b""), frame(b"S", b"")
DESCRIBE, EXECUTE = frame(b"D", b"P\0"), frame(b"E", b"\0\0\0\0\0")


def bind(name: str, values: tuple[bytes | None, ...], *, binary: bool = False) -> bytes:
    """A Bind of values in text, for rows in text or in binary."""
    parts = [pack("!i", -1) if raw is None else pack("!i", len(raw)) + raw for raw in values]
    head = f"\0{name}\0".encode() + b"\0\0" + pack("!H", len(values))
    return frame(b"B", head + b"".join(parts) + (b"\0\1\0\1" if binary else b"\0\0"))


async def run(
    client: WireClient,
    name: str,
    *values: bytes | None,
    ordinary: bool = False,
    described: bool = True,
    binary: bool = False,
) -> list[Frame]:
    piece = bind(name, values, binary=binary) + (DESCRIBE if described else b"") + EXECUTE
    client.raw(piece + (FLUSH if ordinary else b"") + SYNC)
    return await client.until_ready()


async def prepare(client: WireClient, texts: dict[str, str] = TEXTS) -> None:
    for name, text in texts.items():
        client.raw(frame(b"P", f"{name}\0{text}\0".encode() + b"\0\0") + SYNC)
        await client.until_ready()


async def text(client: WireClient, words: str) -> list[Frame]:
    client.send(b"Q", words.encode() + b"\0")
    return await client.until_ready()


def sqlstate(frames: list[Frame]) -> str | None:
    for kind, body in frames:
        if kind == b"E":
            fields = {part[:1]: part[1:].decode() for part in body.split(b"\0") if part}
            return fields[b"C"]
    return None


def rows(frames: list[Frame]) -> list[tuple[str | None, ...]]:
    return [row_of(body) for kind, body in frames if kind == b"D"]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The tags of what is carried out at once within the block."""
    tags: list[str] = []
    with monkeypatch.context() as patch:
        for name in ("run", "begin", "commit"):
            original = getattr(ImmediateStatements, name)

            def counting(*given: object, original: Callable[..., Outcome] = original) -> Outcome:
                outcome = original(*given)
                tags.append(outcome.tag)
                return outcome

            patch.setattr(ImmediateStatements, name, counting)
        yield tags


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set, the log's disk syncs; cleared, each sync waits for it."""
    syncs, sync = threading.Event(), files._RealFile.fdatasync
    syncs.set()

    def held(file: files._RealFile) -> None:
        syncs.wait(SYNC_SECONDS_MAX)
        sync(file)

    monkeypatch.setattr(files._RealFile, "fdatasync", held)
    monkeypatch.setattr(files, "syncs_of", LaneSyncs)
    return syncs


def at_door(
    work: Callable[[PgDoor, WireClient], Awaitable[None]], path: str | Path = ":memory:"
) -> None:
    async def run_work() -> None:
        async with pg_door(path=path) as door:
            client = await door.client()
            await client.query(TABLE)
            await prepare(client)
            await work(door, client)

    asyncio.run(run_work())


def test_one_client_is_alone_until_another_speaks(tmp_path: Path) -> None:
    """Its commits are durable in the step that received them; two clients' share syncs."""

    async def work(door: PgDoor, client: WireClient) -> None:
        store = door.node.store
        assert isinstance(store, Store)
        log = store._ranges.log
        settled: list[int] = []
        settle = log.settle

        def counting(index: int, told: Callable[[StoreClosed | None], None]) -> None:
            before = log.durable_index
            settle(index, told)
            if before < index <= log.durable_index:
                settled.append(index)

        log.settle = counting  # type: ignore[method-assign]
        other = await door.client()
        await text(other, "SELECT 1")
        for number in range(immediate.ALONE_AFTER):
            await run(client, "insert", b"%d" % number, b"x", b"1")
        assert not settled
        assert not log.alone
        # A disk that was slow for once has the next syncs beside the loop.
        for number in range(100, 200):
            await run(client, "insert", b"%d" % number, b"x", b"1")
        assert len(settled) > 10
        assert log.alone
        await text(other, "SELECT 1")
        assert not log.alone

    at_door(work, tmp_path / "store")


def test_a_lone_client_has_the_processor_before_feeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind its answer, and not while that takes long, as where others wait for it, too."""
    untold: list[bool] = []
    turns_take = 0.0

    monkeypatch.setattr(immediate, "ALONE_AFTER", 1)
    monkeypatch.setattr(command_log, "STEP_SYNC_SECONDS", math.inf)  # no disk is too slow
    monkeypatch.setattr(answers, "GIVEN_SECONDS", math.inf)

    async def work(door: PgDoor, client: WireClient) -> None:
        nonlocal turns_take
        store = door.node.store
        assert isinstance(store, Store)
        log, told, numbers = store._ranges.log, [0], count()
        log.on_durable(told.append)

        def give() -> None:
            untold.append(told[-1] < log.durable_index)
            until = time.monotonic() + turns_take
            while time.monotonic() < until:
                pass

        async def commits() -> int:
            untold.clear()
            for _ in range(100):
                await run(client, "insert", b"%d" % next(numbers), b"x", b"1")
            assert all(untold)
            return len(untold)

        monkeypatch.setattr(os, "sched_yield", give)
        assert await commits() > 90
        monkeypatch.setattr(answers, "GIVEN_SECONDS", GIVEN_SECONDS)
        turns_take = 1000 * GIVEN_SECONDS
        assert await commits() == 1

    at_door(work, tmp_path / "store")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_answers_are_the_ordinary_ones(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two nodes are told the same by two clients each: the one at once where that goes, the other
    on the ordinary way. Every byte of their answers is the same. In every other run whoever speaks
    twice is taken to be alone."""
    if seed % 2:
        monkeypatch.setattr(immediate, "ALONE_AFTER", 1)

    async def work() -> None:
        random = Random(seed)
        async with pg_door() as quick, pg_door() as plain:
            first = await quick.client(), await plain.client()
            second = await quick.client(), await plain.client()
            for client in first:
                await client.query(TABLE)
            for client in (*first, *second):
                await client.query("SET lock_timeout = '20ms'")
                await prepare(client, TEXTS | BORDERS)
            state = b"I"
            for step in range(STEPS):
                if random.random() < 0.15:
                    await same_run(
                        random, second, step, list(TEXTS)
                    )  # by itself, beside what is open
                elif random.random() < 0.3:
                    words = random.choice(TRANSACTIONS + (CHANGES if state == b"I" else ()))
                    found = [await text(client, words) for client in first]
                    assert found[0] == found[1], (step, words)
                    state = found[0][-1][1]
                else:
                    state = await same_run(random, first, step, [*TEXTS, *BORDERS])

    with counted(monkeypatch) as tags:
        asyncio.run(work())
    assert {"SELECT 1", "INSERT 0 1", "UPDATE 0", "BEGIN"} <= set(tags), tags


TRANSACTIONS = ("BEGIN", "BEGIN", "commit;", "COMMIT", "ROLLBACK", "SAVEPOINT s")
CHANGES = (
    "BEGIN", "BEGIN", "BEGIN ISOLATION LEVEL READ COMMITTED", "BEGIN READ ONLY",
    "ALTER TABLE t ADD COLUMN IF NOT EXISTS more INT8 DEFAULT 5",
    "ALTER TABLE t DROP COLUMN IF EXISTS more", "SET TIME ZONE 'Europe/Berlin'", "TRUNCATE t",
    "SET default_transaction_read_only = on", "SET default_transaction_read_only = off",
)  # fmt: skip
"""What is said between transactions alone: a schema change would wait for them."""


async def same_run(
    random: Random, pair: tuple[WireClient, WireClient], step: int, names: list[str]
) -> bytes:
    """A statement of one client of each node, whose answers are compared: how the transaction is
    behind it."""
    name = random.choice(names)
    values = tuple(_value(random) for _ in range(PARAMETERS.get(name, 0)))
    described, binary = random.random() < 0.7, random.random() < 0.3
    answers = [
        await run(
            client, name, *values, ordinary=client is pair[1], described=described, binary=binary
        )
        for client in pair
    ]
    assert answers[0] == answers[1], (step, name, values)
    return answers[0][-1][1]


def _value(random: Random) -> bytes | None:
    if random.random() < 0.05:
        return random.choice((None, b"x", b"", b"9223372036854775808"))
    return b"%d" % random.randrange(6)


def test_a_right_that_is_revoked_is_missed_at_once() -> None:
    async def work(door: PgDoor, root: WireClient) -> None:
        await root.query("CREATE USER ada")
        await root.query("GRANT SELECT, INSERT ON t TO ada")
        ada = await door.client("ada")
        await prepare(ada)
        for _ in range(3):
            assert sqlstate(await run(ada, "select", b"1")) is None
        assert sqlstate(await run(ada, "insert", b"1", b"a", b"2")) is None
        assert sqlstate(await run(ada, "insert", b"2", b"a", b"2")) is None
        await root.query("REVOKE SELECT, INSERT ON t FROM ada")
        assert sqlstate(await run(ada, "select", b"1")) == "42501"
        assert sqlstate(await run(ada, "insert", b"3", b"a", b"2")) == "42501"

    at_door(work)


def test_a_table_that_is_another_is_planned_anew() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        other = await door.client()
        await prepare(other)
        for number in (b"1", b"2", b"3"):
            await run(client, "short", number, b"old")
            assert rows(await run(other, "select", number)) == [(number.decode(), "old", "7", None)]
        await client.query("DROP TABLE t")
        await client.query(TABLE.replace("DEFAULT 7", "DEFAULT 8"))
        await run(other, "short", b"1", b"new")
        assert rows(await run(other, "select", b"1")) == [("1", "new", "8", None)]
        assert rows(await run(client, "select", b"2")) == []

    at_door(work)


def test_a_commit_is_told_when_it_is_durable(disk: threading.Event, tmp_path: Path) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        reader = await door.client()
        await prepare(reader)
        disk.clear()
        asked = [asyncio.create_task(run(client, "update", b"1", b"1"))]
        asked.append(asyncio.create_task(run(reader, "select", b"1")))
        done, _ = await asyncio.wait(asked, timeout=0.3)
        assert not done, "told before it is durable"
        disk.set()
        assert (await asked[0])[-2:] == [(b"C", b"UPDATE 1\0"), (b"Z", b"I")]
        assert rows(await asked[1]) == [("1", "a", "3", None)]

    at_door(work, tmp_path / "store")


def test_a_client_that_goes_during_its_commit_harms_nobody(
    disk: threading.Event, tmp_path: Path
) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        disk.clear()
        client.raw(bind("update", (b"5", b"1")) + EXECUTE + SYNC)
        await client.writer.drain()
        await asyncio.sleep(0.1)
        door.forget(client)
        await client.close()
        await asyncio.sleep(0.1)
        disk.set()
        other = await door.client()
        assert await other.query("SELECT n FROM t") == [("7",)]

    at_door(work, tmp_path / "store")


def test_what_comes_during_a_commit_is_taken_behind_it() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        client.raw(bind("update", (b"5", b"1")) + EXECUTE + SYNC)
        await client.writer.drain()
        client.raw(bind("select", (b"1",)) + EXECUTE + SYNC)
        assert (await client.until_ready())[-2] == (b"C", b"UPDATE 1\0")
        assert rows(await client.until_ready()) == [("1", "a", "7", None)]

    at_door(work)


def test_a_locked_row_is_waited_for() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        other = await door.client()
        await prepare(other)
        await text(client, "BEGIN")
        await run(client, "update", b"1", b"1")
        waiting = asyncio.create_task(run(other, "update", b"10", b"1"))
        done, _ = await asyncio.wait([waiting], timeout=0.3)
        assert not done
        await text(client, "COMMIT")
        assert (await waiting)[-2] == (b"C", b"UPDATE 1\0")
        assert rows(await run(client, "select", b"1")) == [("1", "a", "13", None)]

    at_door(work)


def test_a_portal_that_was_run_at_once_has_ended() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        answers = []
        for ordinary in (False, True):
            await text(client, "BEGIN")
            await run(client, "select", b"1", ordinary=ordinary)
            client.raw(DESCRIBE + EXECUTE + SYNC)
            answers.append(await client.until_ready())
            await run(client, "select", b"1", ordinary=ordinary)
            client.raw(frame(b"C", b"P\0") + EXECUTE + SYNC)
            answers.append(await client.until_ready())
            await text(client, "ROLLBACK")
        assert answers[:2] == answers[2:]
        assert sqlstate(answers[1]) == "34000"

    at_door(work)


def test_a_statement_by_itself_is_listed_while_it_commits(
    disk: threading.Event, tmp_path: Path
) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "insert", b"1", b"a", b"2")
        (session,) = door.node.services.sessions
        before = session.activity.query_count
        disk.clear()
        running = asyncio.create_task(run(client, "update", b"1", b"1"))
        while session.activity.text is None:
            await asyncio.sleep(0.01)
        assert session.activity.text == TEXTS["update"]
        assert session.activity.query_count > before
        disk.set()
        await running
        assert session.activity.text is None
        assert session.activity.last_text == TEXTS["update"]

    at_door(work, tmp_path / "store")


def test_a_long_statement_takes_the_ordinary_way(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        words = f"INSERT INTO t VALUES ($1, '{'x' * TEXT_LENGTH_MAX}')"
        await prepare(client, {"long": words})
        with counted(monkeypatch) as tags:
            for number in (b"1", b"2"):
                assert sqlstate(await run(client, "long", number)) is None
            assert not tags

    at_door(work)


@pytest.mark.parametrize("length", [-17, -1, 0, 3])
def test_a_wrong_length_ends_the_connection(length: int) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        client.raw(b"B" + pack("!i", length) + bind("select", (b"1",))[5:] + EXECUTE + SYNC)
        assert b"08P01" in await client.ended()

    at_door(work)


def test_a_bind_without_a_body_is_refused() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        for body in (b"", b"\0", b"\0\0", b"\0select\0"):
            client.raw(frame(b"B", body) + EXECUTE + SYNC)
            assert sqlstate(await client.until_ready()) in ("08P01", "26000")
        assert rows(await run(client, "select", b"1")) == []

    at_door(work)


def test_a_run_that_comes_in_two_pieces_is_answered_as_one() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        whole = bind("insert", (b"1", b"a", b"2")) + DESCRIBE + EXECUTE + SYNC
        answers = []
        for cut in (1, 4, 7, len(whole) - 5, len(whole) - 1):
            client.raw(whole[:cut])
            await asyncio.sleep(0.01)
            client.raw(whole[cut:])
            answers.append(await client.until_ready())
            assert sqlstate(await run(client, "delete", b"1")) is None
        client.raw(whole)
        assert answers == [await client.until_ready()] * len(answers)

    at_door(work)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_transaction_is_carried_out_at_once(
    prepared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await prepare(client, BORDERS)

        def border(name: str) -> Awaitable[list[Frame]]:
            return run(client, name) if prepared else text(client, BORDERS[name])

        for number in (b"1", b"2"):  # the first run of each is planned
            with counted(monkeypatch) as tags:
                await border("begin")
                await run(client, "insert", number, b"a", b"2")
                await run(client, "update", b"1", number)
                await run(client, "select", number)
                assert (await border("commit"))[-1] == (b"Z", b"I")
        assert tags == ["BEGIN", "INSERT 0 1", "UPDATE 1", "SELECT 1", "COMMIT"]
        assert await client.query("SELECT id, n FROM t") == [("1", "3"), ("2", "3")]

    at_door(work)


def test_a_transaction_that_outgrows_its_buffer_writes_each_row_once(
    disk: threading.Event, tmp_path: Path
) -> None:
    """What is spilled waits for the log behind the step that wrote it."""

    async def work(door: PgDoor, client: WireClient) -> None:
        await client.query("SET CLUSTER SETTING kv.transaction.buffer_bytes = 1000")
        await text(client, "BEGIN")
        disk.clear()
        for number in range(ROWS_SPILLED):
            asked = asyncio.create_task(run(client, "insert", b"%d" % number, b"a", b"1"))
            done, _ = await asyncio.wait([asked], timeout=0.3)
            if not done:
                disk.set()
            assert sqlstate(await asked) is None, (number, await asked)
        assert disk.is_set(), "no write has waited for the log"
        await text(client, "COMMIT")
        assert rows(await text(client, "SELECT count(*) FROM t")) == [(str(ROWS_SPILLED),)]

    at_door(work, tmp_path / "store")


def test_a_transaction_that_was_aborted_is_told_so() -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await text(client, "BEGIN")
        await run(client, "insert", b"1", b"a", b"1")
        (opened,) = [
            session._transactions.opened
            for session in door.node.services.sessions
            if isinstance(session, Session) and session._transactions.opened is not None
        ]
        await opened.transaction.rollback()
        assert sqlstate(await text(client, "COMMIT")) is not None
        assert rows(await text(client, "SELECT count(*) FROM t")) == [("0",)]

    at_door(work)


def test_a_session_with_a_time_limit_takes_the_ordinary_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work(door: PgDoor, client: WireClient) -> None:
        await run(client, "select", b"1")
        with counted(monkeypatch) as tags:
            await run(client, "select", b"1")
            assert tags == ["SELECT 0"]
            await client.query("SET statement_timeout = '5s'")
            await run(client, "select", b"1")
            assert tags == ["SELECT 0"]

    at_door(work)
