"""The parts of a store that its ranges share."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from ..clock import Clock
from ..closed_timestamp import ClosedTimestamps
from ..engine import Engine
from ..log import CommandLog
from ..metrics import Metrics
from ..process.offload import Offload
from ..rangefeed import MemoryBudget, ScanPace
from ..settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreParts:
    """The parts that a store is made of, handed in once and never exchanged."""

    log: CommandLog
    engine: Engine
    clock: Clock
    offload: Offload
    settings: Settings
    metrics: Metrics
    random: Random
    closed: ClosedTimestamps
    feed_memory: MemoryBudget
    scan_pace: ScanPace
