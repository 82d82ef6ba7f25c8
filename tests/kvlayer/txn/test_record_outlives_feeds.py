"""A transaction's record outlives every range feed that could still need its verdict.

Were it gone while a feed counts the transaction's intents, a push would answer "aborted" for one
that committed; the feed would drop the intents, resolve past the rows, and never show them
(CockroachDB's advisory a104309).
"""

from __future__ import annotations

import asyncio

import pytest

from tailrace.kvlayer.events import Checkpoint, ValueBatch
from tailrace.kvlayer.keys import table_span
from tailrace.kvlayer.rangefeed import PushVerdict
from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.txn import resolution
from tests.harness.simulation import Simulation
from tests.harness.stores import hold_log, key, release_log, running_store

A, B, C = key("a"), key("b"), key("c")


@pytest.mark.parametrize("sliced", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_record_outlives_every_feed_that_may_push(
    seed: int, sliced: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit is applied, and no feed has seen it yet: a push in between must say so."""
    if sliced:
        monkeypatch.setattr(resolution, "COMMAND_ROWS_MAX", 1)
    sim = Simulation(seed)

    async def main() -> None:
        settings = Settings({"kv.rangefeed.push_txns.age": "1ms"})
        async with running_store(sim, settings=settings) as store:
            feed = store.span_feed([table_span(7)], store.clock.last)
            watching = asyncio.create_task(feed.next())
            writer = store.begin()
            await writer.put([A, B, C], [b"1"] * 3)
            await asyncio.sleep(0.05)
            hold_log(store)
            committing = asyncio.create_task(writer.commit())
            await asyncio.sleep(2)  # feeds push what is so old, again and again
            outcome = await store._ranges.push(writer.id)
            assert outcome.verdict is PushVerdict.COMMITTED
            release_log(store)
            at = await committing
            seen: dict[bytes, bytes | None] = {}
            events, resolved = await watching, 0
            while resolved < at:
                for event in events:
                    if isinstance(event, Checkpoint):
                        resolved = max(resolved, event.resolved)
                        assert resolved < at or len(seen) == 3, "a row is passed by"
                    elif isinstance(event, ValueBatch):
                        seen |= zip(event.keys, event.values, strict=True)
                events = await feed.next()
            assert seen == {A: b"1", B: b"1", C: b"1"}
            await asyncio.sleep(0.1)
            gone = await store._ranges.push(writer.id)
            assert gone.verdict is PushVerdict.ABORTED, "nobody counts it any more"
            feed.close()

    sim.run(main())
