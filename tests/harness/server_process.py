"""`tailrace serve` as a real process, and what a client says to it.

with ServerProcess(folder) as server:
    server.rows("SELECT 1")
    server.kill()        # -9
    server.start()       # again, on the same folder
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx2

COMMAND = (sys.executable, "-m", "tailrace.api.cli", "serve")
PATIENCE_SECONDS = 60.0
PAGE_BYTES = resource.getpagesize()


class ServerProcess:
    """One server on one data folder. `output` is what it has printed since its last start."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        insecure: bool = True,
        descriptors: int | None = None,
        command: Sequence[str] = COMMAND,
    ) -> None:
        """`descriptors` is how many files it may open, and may not have more."""
        self.folder = folder
        limit = "" if descriptors is None else f"ulimit -n {descriptors}; "
        self._command = ("sh", "-c", f'{limit}exec "$@"', "sh", *command)
        trust = ("--insecure",) if insecure and "--insecure" not in options else ()
        self._options = (*options, *trust)
        self.pg_port = 0
        self.url = ""
        self.output: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._log = folder.with_suffix(".log")
        self.client = httpx2.Client(timeout=PATIENCE_SECONDS)

    def start(self, *, port: int = 0) -> None:
        """Returns when the server says that it is ready, at `port` or a free one."""
        assert self._process is None, self._process
        self.output.clear()
        with self._log.open("a") as log:
            self._process = subprocess.Popen(
                [
                    *self._command,
                    str(self.folder),
                    "--port",
                    str(port),
                    "--pg-port",
                    "0",
                    *self._options,
                ],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.output.append(line.rstrip())
            if "postgres at " in line:
                self.pg_port = int(line.split("postgres at ")[1].split()[0].rpartition(":")[2])
            if "ready on " in line:
                self.url = line.rpartition("ready on ")[2].strip()
                return
        self._process.stdout.close()
        code = self._process.wait()
        self._process = None
        raise AssertionError(f"the server ended with {code}: {self._log.read_text()[-4000:]}")

    @property
    def port(self) -> int:
        """Where it listens, or last did."""
        return int(self.url.rpartition(":")[2])

    @property
    def alive(self) -> bool:
        """Whether it runs, and has not ended by itself."""
        return self._process is not None and self._process.poll() is None

    @property
    def resident_bytes(self) -> int:
        """The memory that it has now."""
        assert self._process is not None, "not running"
        pages = Path(f"/proc/{self._process.pid}/statm").read_text().split()[1]
        return int(pages) * PAGE_BYTES

    @property
    def processor_seconds(self) -> float:
        """The processor time that it has used."""
        assert self._process is not None, "not running"
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def niceness(self) -> int:
        """By how much it gives way to other processes."""
        assert self._process is not None, "the server runs"
        return os.getpriority(os.PRIO_PROCESS, self._process.pid)

    @property
    def resident_bytes_peak(self) -> int:
        """The most memory that it has had since `forget_peak`, or its start."""
        assert self._process is not None, "not running"
        lines = Path(f"/proc/{self._process.pid}/status").read_text().splitlines()
        [peak] = [line for line in lines if line.startswith("VmHWM:")]
        return int(peak.split()[1]) * 1024

    def forget_peak(self) -> None:
        assert self._process is not None, "not running"
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5")

    @property
    def rpc_address(self) -> str:
        """Where nodes may join; it was started with --rpc-port."""
        [line] = [line for line in self.output if "nodes may join at " in line]
        return line.rpartition(" ")[2]

    def send(self, what: signal.Signals) -> None:
        """Stops it (SIGSTOP), or lets it go on (SIGCONT)."""
        assert self._process is not None, "not running"
        self._process.send_signal(what)

    def limit_files(self, size: int) -> None:
        """From here on the system refuses to write files beyond `size`, as a broken disk would."""
        assert self._process is not None, "not running"
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, hard))

    def kill(self) -> None:
        """Without a word, as a crash or a power cut of the process would."""
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        """Asks it to stop, and returns its exit code."""
        return self._end(signal.SIGTERM)

    def interrupt(self) -> int:
        """As Ctrl-C at its terminal does; returns its exit code."""
        return self._end(signal.SIGINT)

    def wait(self) -> int:
        """Waits until it ends by itself, and returns its exit code."""
        return self._end(None)

    def _end(self, how: signal.Signals | None) -> int:
        process, self._process = self._process, None
        assert process is not None, "not running"
        assert process.stdout is not None
        if how is not None:
            process.send_signal(how)
        with process.stdout as rest:
            self.output += rest.read().splitlines()
        return process.wait(PATIENCE_SECONDS)

    def errors(self) -> str:
        """All that it has written to its standard error, over all its starts."""
        return self._log.read_text()

    def sql(self, text: str, *params: object) -> list[dict[str, Any]]:
        """The results of all statements."""
        answer = self.client.post(f"{self.url}/v1/sql", json={"sql": text, "params": params})
        assert answer.status_code == 200, answer.text
        results: list[dict[str, Any]] = answer.json()["results"]
        return results

    def rows(self, text: str, *params: object) -> list[list[Any]]:
        rows: list[list[Any]] = self.sql(text, *params)[-1]["rows"]
        return rows

    def mirror_rows(self, mirror: str, text: str) -> list[list[Any]]:
        answer = self.client.post(
            f"{self.url}/v1/mirrors/sql", json={"mirror": mirror, "sql": text}
        )
        assert answer.status_code == 200, answer.text
        rows: list[list[Any]] = answer.json()["rows"]
        return rows

    def wait_for_feeds(self, timestamp: str) -> None:
        """Until every changefeed is resolved at `timestamp`, as SHOW CHANGEFEED JOBS has it."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            result = self.sql("SHOW CHANGEFEED JOBS")[0]
            names = [column["name"] for column in result["columns"]]
            jobs = [dict(zip(names, row, strict=True)) for row in result["rows"]]
            resolved = [job["high_water_timestamp"] for job in jobs]
            if all(at is not None and Decimal(at) >= Decimal(timestamp) for at in resolved):
                return
            assert time.monotonic() < deadline, f"not at {timestamp}: {jobs}"
            time.sleep(0.02)

    def __enter__(self) -> ServerProcess:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.client.close()
        if self._process is not None:
            self.kill()
