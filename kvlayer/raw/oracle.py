"""Time from outside: a store's physical time is another store's, and not this machine's.

    second   oracle   time     raw writes
    0        away     none     refused: nothing was heard of it yet
    2        100      100      from 100 on
    2.5      100.5    100.5    from 100.5 on
    3        away     100.5    go on: the logical part is advanced by each
    33       away     100.5    refused: 30 s of outage
    34       99       100.5    refused: an oracle that goes back is not believed
    35       133      133      from 133 on

SQL goes on throughout: its timestamps ascend from what the clock has handed out. After the RawKV
cross-cluster replication RFC of TiKV (rfcs#86), section 2.2.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from ..clock import LOGICAL_MASK, ZERO, Timestamp, WallClock, format_timestamp, unix_us
from ..errors import ClockStopped, KVError, OracleAway
from ..metrics import Metrics
from ..settings import Settings

ASK_SECONDS = 0.5
"""Between one answer and the next question: so far may the time of a write lie behind."""

OUTAGE_SECONDS_MAX = 30.0
"""What is written later would bear a time that says little of when it was written, and what is
counted from it, as the age of what a recovery lacks, would be wrong by as much."""


class OracleTime:
    """Implements `clock.PhysicalTime`: the greatest timestamp that the oracle has answered.

    It stands still between two answers, and never goes back. The machine's clock is read for how
    long ago an answer came, and for nothing else.
    """

    def __init__(self, name: str, wall: WallClock) -> None:
        self._name = name
        self._wall = wall
        self._last = ZERO
        self._heard_ns = wall.monotonic_ns()
        self._trouble = "it was not asked yet"

    @property
    def last(self) -> Timestamp:
        """The greatest answer; ZERO before the first."""
        return self._last

    @property
    def trouble(self) -> str:
        """The reason for which it is not heard, if so."""
        return self._trouble

    @property
    def age_seconds(self) -> float:
        """The seconds since the last answer; before the first, since the oracle was first asked."""
        return (self._wall.monotonic_ns() - self._heard_ns) / 1e9

    def heard(self, answer: Timestamp) -> bool:
        """The oracle has answered. False where it went back, which is as if it had not."""
        if answer <= self._last:
            self._trouble = (
                f"it answers {format_timestamp(answer)}, which is not above "
                f"{format_timestamp(self._last)}: it has lost its history"
            )
            return False
        self._last = answer
        self._heard_ns = self._wall.monotonic_ns()
        return True

    def failed(self, reason: str) -> None:
        """The oracle has not answered, for that reason."""
        self._trouble = reason

    def unix_us(self) -> int:
        # Rounded up: a draw has a logical part of its own, and must not lie below the answer's.
        return unix_us(Timestamp(self._last + LOGICAL_MASK)) if self._last else 0

    def check_fresh(self, drawn: Timestamp) -> None:
        if not self._last:
            raise OracleAway(
                f"raw writes wait for the oracle at {self._name}, which has not answered yet: "
                f"{self._trouble}"
            )
        if self.age_seconds > OUTAGE_SECONDS_MAX:
            raise OracleAway(
                f"raw writes are refused: the oracle at {self._name} has last answered at "
                f"{_shown(self._last)}, more than {OUTAGE_SECONDS_MAX:g} s ago: {self._trouble}"
            )
        if drawn < self._last:
            raise ClockStopped(
                f"raw writes wait for the clock, which stands at {_shown(drawn)}: its bound cannot "
                f"be saved, and the oracle is at {_shown(self._last)}"
            )

    def obey(self, settings: Settings) -> None:
        """Does nothing: the RFC fixes both intervals."""

    def report(self, metrics: Metrics) -> None:
        metrics.put("kv_oracle_age_seconds", self.age_seconds)

    def __repr__(self) -> str:
        return f"<OracleTime {self._name} last={format_timestamp(self._last)}>"


def _shown(at: Timestamp) -> str:
    moment = datetime.fromtimestamp(unix_us(at) / 1e6, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class OracleWatch:
    """Asks the oracle again and again, while it is started.

    `ask` returns a timestamp that the oracle has drawn for the question, or raises a KVError, both
    within some seconds.
    """

    def __init__(
        self, time: OracleTime, ask: Callable[[], Awaitable[Timestamp]], metrics: Metrics
    ) -> None:
        self._time = time
        self._ask = ask
        self._metrics = metrics
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Returns when the oracle was asked once, whatever came of it."""
        assert self._task is None, "the oracle is being asked already"
        self._task = asyncio.create_task(self._run(), name="the oracle")
        await self._asked.wait()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None

    async def _run(self) -> None:
        while True:
            try:
                answer = await self._ask()
            except KVError as error:
                self._time.failed(str(error))
                self._metrics.add("kv_oracle_failures_total")
            else:
                if not self._time.heard(answer):
                    self._metrics.add("kv_oracle_refused_total")
            self._time.report(self._metrics)
            self._asked.set()
            await asyncio.sleep(ASK_SECONDS)
