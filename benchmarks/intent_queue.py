"""What the unresolved-intent queue of a range costs in memory.

    python -m benchmarks.intent_queue [--intents 1000000] [--transactions 10000]

`bytes_per_million_intents` is what the queue grows by while one transaction goes from a thousand
intents to `--intents`, scaled to a million: it counts them and keeps no keys, so it should be the
size of one integer. `bytes_per_transaction` is what it keeps for each of many.
"""

from __future__ import annotations

import argparse
import gc
import time
import tracemalloc

from benchmarks.outcome import print_outcome
from tailrace.kvlayer.clock import Timestamp
from tailrace.kvlayer.command import WriteIntent
from tailrace.kvlayer.rangefeed.resolved_timestamp import ResolvedTimestamp

COMMAND_INTENTS = 500
BASE_INTENTS = 1000
MILLION = 1_000_000


def write(tracker: ResolvedTimestamp, transaction_id: bytes, intents: int) -> None:
    named = [b"k"] * COMMAND_INTENTS
    for _ in range(intents // COMMAND_INTENTS):
        tracker.consume([WriteIntent(transaction_id, Timestamp(100), 1, named, named)])


def held_bytes() -> int:
    gc.collect()
    return tracemalloc.get_traced_memory()[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--intents", type=int, default=MILLION)
    parser.add_argument("--transactions", type=int, default=10_000)
    arguments = parser.parse_args()

    tracker = ResolvedTimestamp()
    tracker.scanned()
    tracemalloc.start()
    write(tracker, b"x" * 16, BASE_INTENTS)
    before = held_bytes()
    began = time.perf_counter()
    write(tracker, b"x" * 16, arguments.intents)
    seconds = time.perf_counter() - began
    one = held_bytes() - before

    ids = [number.to_bytes(16, "big") for number in range(arguments.transactions)]
    before = held_bytes()
    for number, transaction_id in enumerate(ids):
        tracker.intents.add(transaction_id, Timestamp(1000 + number), 1)
    many = held_bytes() - before
    tracemalloc.stop()
    print_outcome(
        "intent_queue",
        {
            "bytes_per_million_intents": one * MILLION / arguments.intents,
            "bytes_per_transaction": many / arguments.transactions,
            "intents_per_s": arguments.intents / seconds,
        },
    )


if __name__ == "__main__":
    main()
