"""Shares of the log: who writes much waits while others write, and never with locks in hand."""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.write_shares import FREE_BYTES, RATE, WAIT_SECONDS_MAX
from tailrace.sql import Session
from tests.harness.people import People, run

MUCH = "x" * 1_000_000
COMMITS = 40
OWED = (COMMITS * len(MUCH) - 4 * FREE_BYTES) / RATE.default
"""The least seconds that so many commits take at the rate."""


async def write_much(session: Session) -> float:
    """The seconds that `COMMITS` rows of a megabyte take, one after the other."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(COMMITS):
        await session.execute("UPSERT INTO orders VALUES ($1, $2)", [number % 4, MUCH])
    return loop.time() - began


async def seconds_beside(other: Session | None, writer: Session) -> tuple[float, float]:
    """The seconds that `writer`'s commits take in all, and the longest that a row of `other`'s
    takes, which commits one every 20 ms."""
    loop = asyncio.get_running_loop()
    longest = 0.0

    async def write_now_and_then(session: Session) -> None:
        nonlocal longest
        while True:
            began = loop.time()
            await session.execute("UPSERT INTO orders VALUES (9, 'y')")
            longest = max(longest, loop.time() - began)
            await asyncio.sleep(0.02)

    beside = None if other is None else asyncio.create_task(write_now_and_then(other))
    try:
        return await write_much(writer), longest
    finally:
        if beside is not None:
            beside.cancel()
            await asyncio.wait([beside])


GRANT = "GRANT ALL ON orders TO ada; GRANT ALL ON orders TO bo"


def test_who_writes_much_waits_while_others_write() -> None:
    async def scenario(people: People) -> None:
        taken, longest = await seconds_beside(people.bo, people.ada)
        assert taken >= OWED
        assert longest < 0.2, "whoever writes little never waits"

    run(scenario, GRANT)


@pytest.mark.parametrize("other", ["nobody", "the same user"])
def test_nobody_waits_where_no_other_user_writes(other: str) -> None:
    async def scenario(people: People) -> None:
        session = None if other == "nobody" else people.node.session("ada")
        taken, _ = await seconds_beside(session, people.ada)
        assert taken < OWED / 2
        if session is not None:
            await session.close()

    run(scenario, GRANT)


def test_the_rate_may_be_none() -> None:
    async def scenario(people: People) -> None:
        await people.root(f"SET CLUSTER SETTING {RATE.name} = 0")
        taken, _ = await seconds_beside(people.bo, people.ada)
        assert taken < OWED / 2

    run(scenario, GRANT)


def test_nobody_waits_in_a_transaction() -> None:
    """Its locks would last as long as the wait; it pays behind its end, a second at most."""

    async def scenario(people: People) -> None:
        await people.ada.execute("BEGIN")
        taken, _ = await seconds_beside(people.bo, people.ada)
        await people.ada.execute("COMMIT")
        assert taken < OWED / 2
        await people.bo.execute("UPSERT INTO orders VALUES (9, 'z')")
        began = asyncio.get_running_loop().time()
        await people.ada.execute("SELECT 1")
        waited = asyncio.get_running_loop().time() - began
        assert WAIT_SECONDS_MAX / 2 < waited < 1.5 * WAIT_SECONDS_MAX

    run(scenario, GRANT)
