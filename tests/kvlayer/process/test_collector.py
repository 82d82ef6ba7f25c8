"""What a long statement made is passed over by the collector, and walked before it is much."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator

import pytest

from tailrace.kvlayer.process import collector
from tailrace.kvlayer.process.collector import MADE_MANY, Collector
from tailrace.kvlayer.process.fibre import in_slices


@pytest.fixture
def passing() -> Iterator[Collector]:
    made = Collector()
    made.begin_passing()
    yield made
    made.end_passing()


def young() -> int:
    """How many objects the next full collection walks."""
    return len(gc.get_objects())


def make(count: int) -> list[list[object]]:
    return [[] for _ in range(count)]


def test_what_was_made_meanwhile_is_not_walked(passing: Collector) -> None:
    passing.suspend()
    kept = make(2 * MADE_MANY)
    passing.resume()
    assert young() < MADE_MANY
    assert len(kept) == 2 * MADE_MANY


def test_what_was_made_is_many_however_much_went_meanwhile(passing: Collector) -> None:
    gone = make(2 * MADE_MANY)
    passing.suspend()
    kept = make(2 * MADE_MANY)
    gone.clear()
    assert gc.get_count()[0] < MADE_MANY, "the interpreter's count is no measure"
    passing.resume(made_many=True)
    assert young() < MADE_MANY
    assert len(kept) == 2 * MADE_MANY


def test_a_short_statement_leaves_the_collector_its_work(passing: Collector) -> None:
    gc.collect()
    passing.suspend()
    kept = make(MADE_MANY // 4)
    passing.resume()
    assert young() >= len(kept)


def test_what_a_full_collection_saw_is_passed_over(passing: Collector) -> None:
    kept = make(MADE_MANY)
    gc.collect()
    assert young() < len(kept)


def test_all_is_walked_again_before_much_is_passed_over(
    passing: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collector, "BLOCKS_MAX", MADE_MANY)
    passing.suspend()
    kept = make(4 * MADE_MANY)
    passing.resume()
    assert young() >= len(kept), "they are to be walked"
    gc.collect()
    assert young() < len(kept), "they were walked, and live"


def test_an_embedded_store_leaves_the_collector_as_it_is() -> None:
    frozen = gc.get_freeze_count()
    kept = asyncio.run(in_slices_alone())
    assert gc.isenabled()
    assert gc.get_freeze_count() == frozen
    assert len(kept) == 2 * MADE_MANY


async def in_slices_alone() -> list[list[object]]:
    return await in_slices(lambda: make(2 * MADE_MANY))
