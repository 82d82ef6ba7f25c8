"""Span configurations: set, cut, combined, and there after a crash."""

from __future__ import annotations

import pytest

from tailrace.kvlayer.span import Span
from tailrace.kvlayer.span_config import DEFAULT, SpanConfig
from tests.harness.simulation import Simulation
from tests.harness.stores import crash, key, open_store, reopen, running_store

A, B, C, D = (key(name) for name in "abcd")
SHORT, LONG = SpanConfig(gc_ttl_seconds=60), SpanConfig(gc_ttl_seconds=600, range_max_bytes=10**6)


def test_later_configuration_cuts_the_earlier() -> None:
    sim = Simulation(1)

    async def main() -> None:
        async with running_store(sim) as store:
            configs = store.span_configs
            await configs.set(Span(A, D), LONG)
            await configs.set(Span(B, C), SHORT)
            assert configs.entries() == [
                (Span(A, B), LONG),
                (Span(B, C), SHORT),
                (Span(C, D), LONG),
            ]
            await configs.reset(Span(A, C))
            assert configs.entries() == [(Span(C, D), LONG)]

    sim.run(main())


def test_span_has_the_longest_life_and_the_smallest_size() -> None:
    sim = Simulation(2)

    async def main() -> None:
        async with running_store(sim) as store:
            configs = store.span_configs
            await configs.set(Span(A, B), LONG)
            await configs.set(Span(B, C), SHORT)
            assert configs.for_span(Span(A, C)) == LONG
            assert configs.for_span(Span(B, C)) == SHORT
            # Some key has no time to live of its own, and may need a longer one.
            assert configs.for_span(Span(A, D)) == SpanConfig(range_max_bytes=10**6)
            assert configs.for_span(Span(C, D)) == DEFAULT
            assert [part for part, _ in configs.in_span(Span(A, D))] == [
                Span(A, B),
                Span(B, C),
                Span(C, D),
            ]

    sim.run(main())


def test_configurations_survive_a_crash() -> None:
    sim = Simulation(3)

    async def before() -> None:
        store = await open_store(sim)
        await store.span_configs.set(Span(A, D), LONG)
        await store.split(B)
        crash(sim)

    async def after() -> None:
        store = await reopen(sim)
        assert store.span_configs.for_span(Span(A, D)) == LONG
        await store.close()

    sim.run(before())
    sim.run(after())


@pytest.mark.parametrize(("ttl", "size"), [(-1.0, None), (float("nan"), None), (None, 0)])
def test_bad_values_are_refused(ttl: float | None, size: int | None) -> None:
    with pytest.raises(ValueError, match="must be"):
        SpanConfig(gc_ttl_seconds=ttl, range_max_bytes=size)
