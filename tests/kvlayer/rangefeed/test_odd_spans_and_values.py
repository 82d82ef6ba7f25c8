"""Feeds of spans that begin and end anywhere, and of values larger than what a feed may buffer."""

from __future__ import annotations

from tailrace.kvlayer.settings import Settings
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store
from tests.harness.simulation import Simulation
from tests.harness.stores import key, put, running_store
from tests.harness.validators import History, Watch


async def follow(store: Store, watch: Watch, history: History, rows: dict[bytes, bytes]) -> None:
    """Commits the rows, and reads the feed of the watch's spans until it has resolved them."""
    feed = store.span_feed_from(watch.entries)
    await feed.next()
    at = await put(store, rows)
    history.note_commit(at, {name: body for name, body in rows.items() if inside(watch, name)})
    while watch.resolved < at:
        watch.note_events(await feed.next())
    feed.close()
    watch.finish()
    assert not watch.failures


def inside(watch: Watch, name: bytes) -> bool:
    return any(span.contains(name) for span, _ in watch.entries)


def test_span_need_not_begin_at_a_row_or_a_range() -> None:
    """From within a key to within another, in the next table; the ranges' borders lie elsewhere."""
    sim = Simulation(1)
    span = Span(key("bb", 7) + b"\x00", key("cc", 8)[:-1])
    names = [key(name, table) for table in (7, 8) for name in ("a", "bb", "bbb", "c", "cc", "d")]

    async def main() -> None:
        async with running_store(sim) as store:
            for border in (key("bbb", 7), key("", 8), key("a", 8)):
                await store.split(border)
            history = History()
            watch = Watch(history, [(span, store.clock.now())], restarts_hidden=True)
            await follow(store, watch, history, dict.fromkeys(names, b"1"))
            assert [name for name, _ in history.bodies] == names[2:9]

    sim.run(main())


def test_value_larger_than_every_budget_arrives() -> None:
    sim = Simulation(2)
    small = {"kv.rangefeed.buffer_bytes": "1000", "kv.rangefeed.memory_budget": "1000"}
    span = Span.prefix(key(""))

    async def main() -> None:
        async with running_store(sim, settings=Settings(small)) as store:
            history = History()
            watch = Watch(history, [(span, store.clock.now())], restarts_hidden=True)
            await follow(store, watch, history, {key("a"): bytes(100_000), key("b"): bytes(2000)})
            assert len(history.bodies) == 2

    sim.run(main())
