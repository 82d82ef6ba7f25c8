"""An emulator of Google Cloud Storage as a process that can be stopped.

Its objects are read by requests that share no code with the sink. The client of Google's that Arrow
has finds the emulator by an environment variable.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import httpx2
import pytest

from benchmarks.servers import free_port

BUCKET = "lake"
TOKEN = "kanari7"
PATIENCE_SECONDS = 60.0


class GCSServer:
    """A server with one bucket, whose objects outlive the process."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx2.Client(timeout=PATIENCE_SECONDS)
        self._address = f"http://127.0.0.1:{self._port}"
        monkeypatch.setenv("CLOUD_STORAGE_EMULATOR_ENDPOINT", self._address)

    def start(self) -> None:
        assert self._process is None, "running"
        self._process = self._spawned()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._get("/storage/v1/b")
                return
            except httpx2.TransportError:
                assert time.monotonic() < deadline, "the emulator does not answer"
                time.sleep(0.05)
            if self._process.poll() is not None:  # its port was not free again yet
                self._process = self._spawned()

    def _spawned(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "gcp_storage_emulator", "--data-dir", str(self._folder), "start",
             "--host", "127.0.0.1", "--port", str(self._port), "--default-bucket", BUCKET, "-q"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def stop(self) -> None:
        """Interrupts it. Killed it may leave half a file of its own, with which it does not start
        again."""
        assert self._process is not None, "not running"
        self._process.send_signal(signal.SIGINT)
        self._process.wait()
        self._process = None

    def __enter__(self) -> GCSServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()
        if self._process is not None:
            self.stop()

    def uri(self, prefix: str, parameters: str = "") -> str:
        return f"gs://{BUCKET}/{prefix}?BEARER_TOKEN={TOKEN}{parameters}"

    def objects(self) -> dict[str, bytes]:
        """The bucket's objects, in the order of their names."""
        items = self._get(f"/storage/v1/b/{BUCKET}/o").json().get("items", [])
        names = sorted(item["name"] for item in items)
        path = f"/download/storage/v1/b/{BUCKET}/o"
        return {
            name: self._get(f"{path}/{quote(name, safe='')}?alt=media").content for name in names
        }

    def _get(self, path: str) -> httpx2.Response:
        answer = self._client.get(self._address + path)
        assert answer.status_code == 200, answer.text
        return answer
