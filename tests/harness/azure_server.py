"""Azurite, Microsoft's own emulator of Azure's blobs, as a process that can be stopped.

Its blobs are read by requests that share no code with the sink.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import subprocess
import time
import xml.etree.ElementTree as ET
from email.utils import formatdate
from pathlib import Path
from types import TracebackType
from urllib.parse import quote

import httpx2

from benchmarks.servers import free_port
from tests.system.programs import azurite

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its key, as its documents print them."""

CONTAINER = "lake"
VERSION = "2021-08-06"
PATIENCE_SECONDS = 60.0


class AzureServer:
    """A server with one container, whose blobs outlive the process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx2.Client(timeout=PATIENCE_SECONDS)

    def start(self) -> None:
        assert self._process is None, "running"
        self._process = subprocess.Popen(
            ["node", str(azurite()), "--location", str(self._folder), "--blobHost", "127.0.0.1",
             "--blobPort", str(self._port), "--skipApiVersionCheck", "--silent",
             "--disableTelemetry"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                self._request("GET", "", comp="list")
                return
            except httpx2.TransportError:
                assert time.monotonic() < deadline, "Azurite does not answer"
                time.sleep(0.05)

    def stop(self) -> None:
        """Ends it as it is. Killed it would forget blobs that it has acknowledged."""
        assert self._process is not None, "not running"
        self._process.terminate()
        self._process.wait()
        self._process = None

    def __enter__(self) -> AzureServer:
        self.start()
        self._request("PUT", f"/{CONTAINER}", restype="container")
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
        return (
            f"azure://{CONTAINER}/{prefix}?AZURE_ACCOUNT_NAME={ACCOUNT}"
            f"&AZURE_ACCOUNT_KEY={quote(KEY, safe='')}"
            f"&AZURE_ENDPOINT=http://127.0.0.1:{self._port}{parameters}"
        )

    def objects(self) -> dict[str, bytes]:
        """The container's blobs, in the order of their names."""
        listed = ET.fromstring(
            self._request("GET", f"/{CONTAINER}", restype="container", comp="list")
        )
        names = sorted(str(name.text) for name in listed.iter("Name"))
        return {name: self._request("GET", f"/{CONTAINER}/{quote(name)}") for name in names}

    def _request(self, verb: str, path: str, **query: str) -> bytes:
        """A request signed by the account's key. Raises httpx2.TransportError."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
        resource = f"/{ACCOUNT}/{ACCOUNT}{path or '/'}"
        signed = "\n".join(
            [verb, *[""] * 11, *(f"{name}:{value}" for name, value in headers.items()), resource]
            + [f"{name}:{query[name]}" for name in sorted(query)]
        )
        digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
        headers["authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"http://127.0.0.1:{self._port}/{ACCOUNT}{path or '/'}"
        answer = self._client.request(verb, url, params=query, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.content
