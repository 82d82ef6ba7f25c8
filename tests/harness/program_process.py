"""A program that a test starts, and may stop, kill and start again.

with KafkaProcess(folder) as kafka:
    kafka.kill()     # -9
    kafka.start()    # again, on the same data
"""

from __future__ import annotations

import signal
import subprocess
import time
from abc import ABC, abstractmethod
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

PATIENCE_SECONDS = 60.0


class ProgramProcess(ABC):
    """One program, whose output of all its starts is in a file. It ends with the `with`."""

    ended_by: ClassVar[signal.Signals] = signal.SIGKILL
    """The signal that ends the program in order."""
    user: str | None = None
    """Who runs it, where that is not who runs the tests."""

    def __init__(self, log: Path) -> None:
        self._log_file = log
        self._process: subprocess.Popen[bytes] | None = None

    @abstractmethod
    def command(self) -> list[str]:
        """The command of the program, run in the folder of its log."""

    def answers(self) -> bool:
        """Whether it can be used. A program of which that is not known can be used at once."""
        return True

    def start(self) -> None:
        """Returns when it answers. One that has ended meanwhile is started anew: what the one
        before it held, a port or a lock, may not be free yet."""
        assert self._process is None, "running"
        self._process = self._begin()  # it may have to be installed first
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.answers():
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"it does not answer: {self.log[-4000:]}")
            time.sleep(0.05)
            if not self.running:
                self._process = self._begin()

    def stop(self) -> None:
        """Ends it in order."""
        self._end(self.ended_by)

    def kill(self) -> None:
        """kill -9."""
        self._end(signal.SIGKILL)

    def send(self, what: signal.Signals) -> None:
        """Stops it (SIGSTOP), or lets it go on (SIGCONT)."""
        assert self._process is not None, "not running"
        self._process.send_signal(what)

    @property
    def running(self) -> bool:
        """Whether it was started, and has not ended by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """All that it has printed."""
        return self._log_file.read_text(errors="replace")

    def _begin(self) -> subprocess.Popen[bytes]:
        self._log_file.parent.mkdir(parents=True, exist_ok=True)
        with self._log_file.open("ab") as log:
            return subprocess.Popen(
                self.command(), stdout=log, stderr=log, cwd=self._log_file.parent, user=self.user
            )

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        assert process is not None, "not running"
        process.send_signal(how)
        process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.stop()
