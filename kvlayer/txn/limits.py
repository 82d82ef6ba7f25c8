"""Documented limits of keys and values."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import KeyTooLarge
from ..keys import KEY_BYTES_MAX, KEYSPACE_LENGTH, VALUE_BYTES_MAX

COMMAND_ROWS_MAX = 250
"""Intents that one command writes or resolves, in one step of the loop: each takes 10 to 40 µs. A
command by itself takes 0.1 ms, so that half as many make a large COPY a tenth dearer."""

COMMAND_BYTES_MAX = 1024 * 1024
"""And bytes of values."""

COMMANDS_AHEAD_MAX = 64
"""How far a large write may run ahead of the log: what is not durable is held in memory."""

STALL_BACKOFF_SECONDS = 0.002
"""A stalled engine flushes for some tens of milliseconds: asking now and then costs nothing."""


def check_sizes(keys: Sequence[bytes], bodies: Sequence[bytes]) -> None:
    """Raises KeyTooLarge, naming the limit."""
    longest = max(map(len, keys), default=0)
    if longest > KEY_BYTES_MAX:
        raise KeyTooLarge(f"key of {longest} bytes is over the limit of {KEY_BYTES_MAX}")
    largest = max(map(len, bodies), default=0)
    if largest > VALUE_BYTES_MAX:
        raise KeyTooLarge(f"value of {largest} bytes is over the limit of {VALUE_BYTES_MAX}")
    assert longest == 0 or min(map(len, keys)) >= KEYSPACE_LENGTH, "a key without a keyspace"


def slices(keys: Sequence[bytes], values: Sequence[bytes]) -> list[tuple[list[bytes], list[bytes]]]:
    """Keys and values, cut into what one command takes."""
    if len(values) > COMMAND_ROWS_MAX:
        return [
            part
            for at in range(0, len(values), COMMAND_ROWS_MAX)
            for part in slices(keys[at : at + COMMAND_ROWS_MAX], values[at : at + COMMAND_ROWS_MAX])
        ]
    if values and sum(map(len, values)) <= COMMAND_BYTES_MAX:
        return [(list(keys), list(values))]
    found: list[tuple[list[bytes], list[bytes]]] = []
    start = size = 0
    for position, value in enumerate(values):
        if size + len(value) > COMMAND_BYTES_MAX and position > start:
            found.append((list(keys[start:position]), list(values[start:position])))
            start, size = position, 0
        size += len(value)
    if start < len(values):
        found.append((list(keys[start:]), list(values[start:])))
    return found
