"""Engines: ordered maps of bytes that take atomic batches.

An *engine batch* is applied whole or not at all; its applied index (the position in the log that it
brings the engine to) is written with it. An engine owes nothing to durability between flushes: the
log is the truth. What one engine does the other does too: `tests/kvlayer/engine` runs one suite
over both.

`EngineBatch`, `Engine` and `Reader` are the protocol; `MemoryEngine` is for tests and `:memory:`;
`RocksEngine` (module `rocksdb`) is the durable one.

Never knows: versions, intents, ranges, time.
"""

from .memory import MemoryEngine
from .protocol import (
    Engine,
    EngineBatch,
    EngineDamaged,
    EngineFailed,
    EngineStall,
    Reader,
    Snapshot,
)

__all__ = [
    "Engine",
    "EngineBatch",
    "EngineDamaged",
    "EngineFailed",
    "EngineStall",
    "MemoryEngine",
    "Reader",
    "Snapshot",
]
