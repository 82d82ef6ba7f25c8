"""The comparison's tables: three copies, each with a changefeed of another schema feed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from enum import Enum

from ...changefeed import JOB_KIND
from ...changefeed.pipeline.live import LiveFeed
from ..node import Node


class Subject(Enum):
    """A copy of the table, named for the schema feed of its changefeed."""

    POLLING = "polling"
    RANGEFEED = "rangefeed"
    LEASING = "leasing"

    @property
    def table(self) -> str:
        """The full name of the table that is fed this way."""
        return f"{DATABASE}.public.{self.value}"


DATABASE = "compare"
LEDGER = f"{DATABASE}.public.ledger"
"""What the long transaction writes: no table of the workload, so that nobody waits for its lock."""

START_SECONDS = 30.0
"""How long new feeds may take to reach the present; they have nothing to scan."""


async def prepare(node: Node) -> None:
    """Makes what is missing: the database, the tables, and their feeds, which go to `null://`.

    What is measured is the time until a sink is given the row, so none is needed that keeps it.
    """
    running = await _jobs(node)
    feeds = [
        f"CREATE CHANGEFEED FOR TABLE {subject.table} INTO 'null://'"
        f" WITH schema_feed = '{subject.value}', initial_scan = 'no'"
        for subject in Subject
        if subject not in running
    ]
    tables = [
        f"CREATE TABLE IF NOT EXISTS {subject.table}"
        " (id INT8 PRIMARY KEY, amount FLOAT8 NOT NULL, note STRING)"
        for subject in Subject
    ]
    ledger = f"CREATE TABLE IF NOT EXISTS {LEDGER} (id INT8 PRIMARY KEY, state STRING)"
    await run(node, [f"CREATE DATABASE IF NOT EXISTS {DATABASE}", *tables, ledger, *feeds])


async def set_locked(node: Node, locked: bool) -> Sequence[str]:
    """Locks or unlocks the three copies, and returns the SQL that did it."""
    word = "true" if locked else "false"
    statements = [
        f"ALTER TABLE {subject.table} SET (changefeed_optimized = {word})" for subject in Subject
    ]
    await run(node, statements)
    return statements


async def follow(node: Node) -> dict[Subject, LiveFeed]:
    """The feeds, once each of them has come to the present. Raises TimeoutError, FeedStopped."""
    jobs = await _jobs(node)
    feeds = {subject: node.feed(jobs[subject]) for subject in Subject}
    now = await node.store.now()
    async with asyncio.timeout(START_SECONDS):
        for live in feeds.values():
            await live.wait_until(now)
    return feeds


async def run(node: Node, statements: Sequence[str]) -> None:
    """Runs statements in a session of their own. Raises SQLError."""
    session = node.session()
    try:
        for statement in statements:
            await session.execute(statement)
    finally:
        await session.close()


async def _jobs(node: Node) -> dict[Subject, int]:
    """The comparison's feeds that have not ended, by the copy that each follows."""
    subjects = {subject.table: subject for subject in Subject}
    found: dict[Subject, int] = {}
    for job in await node.jobs.list():
        if job.kind != JOB_KIND or job.state.final:
            continue
        names = node.feeds.status(job.id, job.payload, None).full_table_names
        if len(names) == 1 and names[0] in subjects:
            found[subjects[names[0]]] = job.id
    return found
