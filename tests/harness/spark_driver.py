"""The process of `tests.system.spark_stream`: started, watched, killed."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from tests.harness.spark_cluster import WORKER_PYTHON, SparkCluster

PATIENCE_SECONDS = 300.0


class StreamDriver:
    """A driver with one query. It runs in a process group of its own, as its JVM is another."""

    def __init__(
        self, cluster: SparkCluster, url: str, table: str, start: int, folder: Path
    ) -> None:
        self._arguments = [json.dumps(cluster.settings()), url, table, str(start), str(folder)]
        self._environment = {**os.environ, WORKER_PYTHON: str(cluster.python)}
        self._log = folder.with_suffix(".log")
        self._process: subprocess.Popen[str] | None = None
        self._resolved: queue.Queue[int] = queue.Queue()
        self._reader: threading.Thread | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.system.spark_stream", *self._arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self._environment,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, args=(self._process,))
        self._reader.start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdecimal():
                self._resolved.put(int(line))

    def wait_until(self, timestamp: int) -> int:
        """Until a batch has ended at or above it; where that batch ended."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                found = self._resolved.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                log = self._log.read_text()[-4000:]
                raise AssertionError(f"the stream is not at {timestamp}: {log}") from None
            if found >= timestamp:
                return found

    def kill(self) -> None:
        """-9, the JVM too."""
        process, self._process = self._process, None
        assert process is not None, "not running"
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        assert self._reader is not None
        self._reader.join()
        assert process.stdout is not None
        process.stdout.close()
        self._resolved = queue.Queue()

    def __enter__(self) -> StreamDriver:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()
