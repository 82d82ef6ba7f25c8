"""When transactions became visible in a mirror: a file that the sink's process appends to.

    python -m benchmarks.noted_times FILE serve FOLDER …    `tailrace serve` that notes into FILE

Eight bytes each: monotonic nanoseconds, a clock that all processes of a machine share.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

NS = struct.Struct("=q")


class NotedTimes:
    """Reads the file. `count` is how many transactions the mirror has."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    @property
    def count(self) -> int:
        return self.path.stat().st_size // NS.size

    def wait_for(self, count: int, *, seconds: float) -> None:
        arrived = self.within(count, seconds=seconds)
        assert arrived, f"{self.count} of {count} transactions arrived"

    def within(self, count: int, *, seconds: float) -> bool:
        """Waits for `count` transactions. Returns whether they came within `seconds`."""
        deadline = time.monotonic() + seconds
        while self.count < count:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.002)
        return True

    def latest(self, count: int) -> npt.NDArray[np.int64]:
        return np.fromfile(self.path, np.int64)[-count:]


def main() -> None:
    """The server's own recorder of stage times is given another listener."""
    from tailrace.api.cli.main import main as serve
    from tailrace.changefeed.contract.changes import CommitTimes, StageTimes
    from tailrace.changefeed.pipeline.stage_times import StageRecorder

    noted = Path(sys.argv[1]).open("ab", buffering=0)  # noqa: SIM115 (until the process ends)
    note_sunk = StageRecorder.note_sunk

    def note(recorder: StageRecorder, commits: Sequence[CommitTimes], stages: StageTimes) -> None:
        noted.write(NS.pack(stages.sunk) * sum(1 for called, *_ in commits if called))
        note_sunk(recorder, commits, stages)

    StageRecorder.note_sunk = note  # type: ignore[method-assign, assignment]
    sys.argv = ["tailrace", *sys.argv[2:]]
    serve()


if __name__ == "__main__":
    main()
