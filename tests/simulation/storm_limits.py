"""The limits and constants of a storm: as they are, or so small that each is met time and again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from random import Random
from types import ModuleType
from unittest.mock import patch

from tailrace.changefeed.contract import changes
from tailrace.changefeed.pipeline import backfill, crossing, decode, lane, writer
from tailrace.changefeed.pipeline.budget import MEMORY_LIMIT
from tailrace.changefeed.sinks.duckdb import pending, table_writer, tombstones
from tailrace.kvlayer.rangefeed import catch_up
from tailrace.kvlayer.txn import reading

CONSTANTS: Sequence[tuple[ModuleType, str, Sequence[int]]] = [
    (crossing, "BACKFILL_KEY_BYTES_MAX", (1, 300, 1_000)),
    (backfill, "BACKFILL_SLICE_ROWS", (1, 2)),
    (backfill, "BACKFILL_ROWS_BEHIND", (0, 3)),
    (decode, "SLICE_ROWS_MAX", (1, 3)),
    (changes, "COLUMNAR_ROWS_MIN", (1, 2)),
    (lane, "SLICE_BYTES", (1, 500)),
    (lane, "CHECKPOINT_SPACING_NS", (0, 1_000_000_000)),
    (writer, "BULK_ROWS_MIN", (2,)),
    (writer, "BULK_ROWS_WANTED", (4,)),
    (pending, "ROWWISE_MAX", (0, 1)),
    (table_writer, "PROBE_ROWS_MIN", (1,)),
    (tombstones, "ROWWISE_MAX", (0,)),
    (tombstones, "PRUNE_MIN", (1,)),
    (catch_up, "SLICE_ROWS", (1, 3)),
    (reading, "SLICE_ROWS", (1, 3)),
]
"""Constants, and what a seed may choose for them beside what they are."""

MEMORY_LIMITS = ("500", "2000", "20000")


def settings(random: Random) -> dict[str, str]:
    """Settings that bound a feed."""
    if random.random() < 0.3:
        return {}
    return {MEMORY_LIMIT.name: random.choice(MEMORY_LIMITS)}


@contextmanager
def small_constants(random: Random) -> Iterator[None]:
    """Sets some of the constants, for the time of the block."""
    share = random.choice([0.0, 0.5, 1.0, 1.0])
    with ExitStack() as patches:
        for module, name, values in CONSTANTS:
            if random.random() < share:
                patches.enter_context(patch.object(module, name, random.choice(values)))
        yield
