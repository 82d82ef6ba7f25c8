"""An emulator of Google Cloud Storage as a process that can be stopped.

Its objects are read by requests that share no code with the sink.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlopen

import pytest

from benchmarks.servers import free_port
from tests.harness.listed_files import gone_since_it_was_listed
from tests.harness.program_process import ProgramProcess

BUCKET = "lake"
TOKEN = "kanari7"

ENDPOINT = "CLOUD_STORAGE_EMULATOR_ENDPOINT"
"""The environment variable by which Google's client in Arrow finds the emulator."""


class GCSServer(ProgramProcess):
    """A server with one bucket, whose objects outlive the process. Killed it may leave half a file
    of its own, with which it does not start again."""

    ended_by = signal.SIGINT

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder.with_suffix(".log"))
        self._folder = folder
        self.port = free_port()
        self._address = f"http://127.0.0.1:{self.port}"
        monkeypatch.setenv(ENDPOINT, self._address)

    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "gcp_storage_emulator", "--data-dir", str(self._folder), "start",
            "--host", "127.0.0.1", "--port", str(self.port), "--default-bucket", BUCKET, "-q",
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            self._get("/storage/v1/b")
        except OSError:
            return False
        return True

    def uri(self, prefix: str, parameters: str = "") -> str:
        return f"gs://{BUCKET}/{prefix}?BEARER_TOKEN={TOKEN}{parameters}"

    def objects(self) -> dict[str, bytes]:
        """The bucket's objects, in the order of their names."""
        items = json.loads(self._get(f"/storage/v1/b/{BUCKET}/o")).get("items", [])
        names = sorted(item["name"] for item in items)
        path = f"/download/storage/v1/b/{BUCKET}/o"
        found: dict[str, bytes] = {}
        for name in names:
            with gone_since_it_was_listed():
                found[name] = self._get(f"{path}/{quote(name, safe='')}?alt=media")
        return found

    def _get(self, path: str) -> bytes:
        """The answer to a request. Raises OSError for none, and for one that refuses."""
        with urlopen(self._address + path) as answer:
            body: bytes = answer.read()
        return body
