"""Executes of one statement one behind another, which become one write where that does the same."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from tailrace.api.pgwire.states import State
from tests.api.pgwire.test_conversation import DESCRIBE, SYNC, bind, execute, parse
from tests.api.pgwire.test_states import ready_machine
from tests.harness.pg_door import PgDoor, WireClient, pg_door

TABLES = """
CREATE TABLE t (
    id INT8 PRIMARY KEY, n INT8 NOT NULL, u STRING UNIQUE, s SERIAL, CHECK (n < 90)
);
CREATE TABLE plain (id INT8 PRIMARY KEY, n INT8);
CREATE TABLE chain (id INT8 PRIMARY KEY, before INT8 REFERENCES chain (id));
INSERT INTO plain SELECT i, 0 FROM generate_series(0, 9) AS g(i);
INSERT INTO t SELECT i, 0, 'u' || i FROM generate_series(0, 3) AS g(i);
"""
FLUSH = b"H\0\0\0\x04"
STATEMENTS = {
    "INSERT INTO t (id, n, u) VALUES ($1, $2, $3)": 3,
    "INSERT INTO t (id, n) VALUES ($1, 100 / $2)": 2,
    "UPDATE t SET n = n + $2 WHERE id = $1": 2,
    "UPDATE t SET u = $2 WHERE id = $1": 2,
    "UPDATE plain SET n = n + $2 WHERE id = $1": 2,
    "UPDATE plain SET n = 50 / $2 WHERE id = $1 AND n < 9": 2,
    "DELETE FROM plain WHERE id = $1": 1,
    "DELETE FROM plain WHERE n = $1": 1,
    "UPSERT INTO plain VALUES ($1, $2)": 2,
    "INSERT INTO plain VALUES ($1, $2) ON CONFLICT (id) DO UPDATE SET n = 7": 2,
    "INSERT INTO plain VALUES ($1, $2) RETURNING n": 2,
    "INSERT INTO chain VALUES ($1, $2)": 2,
}
"""Statements, and how many parameters they have."""

MANY = parse("INSERT INTO plain VALUES ($1, $2)", "many")


async def answers(client: WireClient) -> list[tuple[bytes, bytes]]:
    return await client.until_ready()


async def contents(client: WireClient) -> list[object]:
    tables = ("SELECT id, n, u, s IS NULL FROM t", "SELECT * FROM plain", "SELECT * FROM chain")
    serials = await client.query("SELECT count(*) - count(DISTINCT s) FROM t")
    return [serials, *[await client.query(f"{each} ORDER BY id") for each in tables]]


async def _queries(door: PgDoor) -> int:
    (session,) = door.node.services.sessions
    return session.activity.query_count


@pytest.mark.parametrize(
    "text", ["INSERT INTO plain VALUES ($1, $2)", "DELETE FROM t WHERE id = $1"]
)
def test_runs_of_one_statement_are_one_write(text: str) -> None:
    async def run() -> None:
        async with pg_door() as door:
            client = await door.client()
            await client.query(TABLES)
            client.raw(parse(text, "many"))
            count = text.count("$")
            one = [b"%d" % (100 + number) for number in range(100)]
            rows = b"".join(
                bind(*[value] * count, name="many") + DESCRIBE + execute() for value in one
            )
            before = await _queries(door)
            client.raw(rows + SYNC)
            assert b"".join(kind for kind, _ in await answers(client)) == b"1" + b"2nC" * 100 + b"Z"
            assert await _queries(door) - before <= 3

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(10))
def test_together_they_do_what_they_do_in_turn(seed: int) -> None:
    """The same messages, and the same with a Flush between any two: nothing is ahead then."""

    async def run() -> None:
        async with pg_door() as one_door, pg_door() as other_door:
            one, other = await one_door.client(), await other_door.client()
            for client in (one, other):
                await client.query(TABLES)
            for block in ("", "BEGIN", "BEGIN; SAVEPOINT s"):
                for text, count in STATEMENTS.items():
                    frames = _frames(Random(f"{seed} {text} {block}"), text, count)
                    told = []
                    for client, between in ((one, b""), (other, FLUSH)):
                        if block:
                            await client.query(block)
                        client.raw(between.join(frames) + SYNC)
                        told.append(await answers(client))
                        if "SAVEPOINT" in block:
                            await client.query("ROLLBACK TO s")
                        if block:
                            await client.query("COMMIT")
                    assert told[0] == told[1], (seed, text)
                    assert await contents(one) == await contents(other), (seed, text)

    asyncio.run(run())


def _frames(random: Random, text: str, count: int) -> list[bytes]:
    frames = [parse(text, "s" + text)]
    wrong = random.random() < 0.5
    least = random.choice([0, 4, 100])
    for number in range(random.choice([2, 5, 40])):
        key = least + (number if random.random() < 0.97 or not wrong else random.randrange(5))
        values: list[bytes | None] = [b"%d" % key]
        if count > 1:
            odd = random.choice([None, b"0", b"x", b"99999999999999999999"])
            values.append(odd if wrong and random.random() < 0.05 else b"%d" % random.randint(1, 9))
        if count > 2:
            values.append(b"u%d" % (key if random.random() < 0.97 else key + 1))
        frames.append(bind(*values, name="s" + text))
        if random.random() < 0.9:
            frames.append(DESCRIBE)
        frames.append(execute())
    return frames


def test_a_failed_run_is_told_behind_those_before_it() -> None:
    async def run() -> None:
        async with pg_door() as door:
            client = await door.client()
            await client.query(TABLES)
            rows = [bind(key, b"1", name="many") + execute() for key in (b"10", b"11", b"3", b"12")]
            client.raw(MANY + b"".join(rows) + SYNC)
            told = await answers(client)
            assert b"".join(kind for kind, _ in told) == b"12C2C2EZ"
            assert b"23505" in told[-2][1]
            assert await client.query("SELECT count(*) FROM plain") == [("10",)]

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        pytest.param(
            "UPDATE t SET u = $2 WHERE id = $1",
            [(b"0", b"u1"), (b"1", b"free")],
            id="a unique value that a later run lets go",
        ),
        pytest.param(
            "INSERT INTO chain VALUES ($1, $2)",
            [(b"1", b"2"), (b"2", None)],
            id="a row that a later run inserts",
        ),
    ],
)
def test_a_run_sees_nothing_of_later_ones(text: str, runs: list[tuple[bytes | None, ...]]) -> None:
    async def run() -> None:
        async with pg_door() as door:
            client = await door.client()
            await client.query(TABLES)
            rows = [bind(*values, name="s") + execute() for values in runs]
            client.raw(parse(text, "s") + b"".join(rows) + SYNC)
            assert b"".join(kind for kind, _ in await answers(client)) == b"12EZ"

    asyncio.run(run())


def test_only_whole_repetitions_are_taken() -> None:
    binds = [bind(b"%d" % number, name="s") for number in range(4)]
    data = binds[0] + DESCRIBE + execute() + binds[1] + execute() + binds[2] + execute(3)
    for end in range(len(data) + 1):
        machine = ready_machine()
        machine.receive(execute())
        machine.next_message()
        machine.receive(data[:end])
        found = machine.repetitions(b"\0s\0", 100)
        first, second = len(binds[0] + DESCRIBE + execute()), len(binds[1] + execute())
        whole = (end >= first) + (end >= first + second)
        assert found == [(binds[0][5:], True), (binds[1][5:], False)][:whole]
        assert machine.buffered_bytes == end - [0, first, first + second][whole]
        assert machine.state is State.PIPELINE


def test_repetitions_are_bounded_and_of_one_statement() -> None:
    machine = ready_machine()
    row, other = bind(b"1", name="s") + execute(), bind(b"1", name="sz") + execute()
    machine.receive(execute() + row * 5 + other)
    machine.next_message()
    assert len(machine.repetitions(b"\0s\0", 3)) == 3
    assert len(machine.repetitions(b"\0s\0", 3)) == 2
    assert machine.repetitions(b"\0s\0", 3) == []
    assert len(machine.repetitions(b"\0sz\0", 3)) == 1
    machine.receive(bind(b"1" * 5000, name="s") + execute())
    assert machine.repetitions(b"\0s\0", 3) == []
