"""The key of a store in a test."""

from __future__ import annotations

from random import Random

from tailrace.changefeed.connections import KEY_BYTES, Sealer


def sealer(seed: int = 0) -> Sealer:
    random = Random(seed)
    return Sealer(random.randbytes(KEY_BYTES), random.randbytes)
