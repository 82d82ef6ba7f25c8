"""Azurite, Microsoft's own emulator of Azure's blobs, as a process that can be stopped.

Its blobs are read by requests that share no code with the sink.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import signal
import xml.etree.ElementTree as ET
from email.utils import formatdate
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from benchmarks.servers import free_port
from tests.harness.listed_files import gone_since_it_was_listed
from tests.harness.program_process import ProgramProcess
from tests.system.programs import azurite

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that every Azurite has, and its key, as its documents print them."""

CONTAINER = "lake"
VERSION = "2021-08-06"


class AzureServer(ProgramProcess):
    """A server with one container, whose blobs outlive the process. Killed it would forget blobs
    that it has acknowledged."""

    ended_by = signal.SIGTERM

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "azurite.log")
        self._folder = folder
        self.port = free_port()

    def command(self) -> list[str]:
        return [
            "node", str(azurite()), "--location", str(self._folder), "--blobHost", "127.0.0.1",
            "--blobPort", str(self.port), "--skipApiVersionCheck", "--silent",
            "--disableTelemetry",
        ]  # fmt: skip

    def answers(self) -> bool:
        try:
            self._request("GET", "", comp="list")
        except OSError:
            return False
        return True

    def __enter__(self) -> Self:
        self.start()
        self._request("PUT", f"/{CONTAINER}", restype="container")
        return self

    def uri(self, prefix: str, parameters: str = "", *, port: int | None = None) -> str:
        """Blobs below `prefix`, by way of a gateway at `port` where one is named."""
        return (
            f"azure://{CONTAINER}/{prefix}?AZURE_ACCOUNT_NAME={ACCOUNT}"
            f"&AZURE_ACCOUNT_KEY={quote(KEY, safe='')}"
            f"&AZURE_ENDPOINT=http://127.0.0.1:{port or self.port}{parameters}"
        )

    def objects(self) -> dict[str, bytes]:
        """The container's blobs, in the order of their names."""
        listed = ET.fromstring(
            self._request("GET", f"/{CONTAINER}", restype="container", comp="list")
        )
        names = sorted(str(name.text) for name in listed.iter("Name"))
        found: dict[str, bytes] = {}
        for name in names:
            with gone_since_it_was_listed():
                found[name] = self._request("GET", f"/{CONTAINER}/{quote(name)}")
        return found

    def _request(self, verb: str, path: str, **query: str) -> bytes:
        """The answer to a request signed by the account's key. Raises OSError for none, and for
        one that refuses."""
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": VERSION}
        resource = f"/{ACCOUNT}/{ACCOUNT}{path or '/'}"
        signed = "\n".join(
            [verb, *[""] * 11, *(f"{name}:{value}" for name, value in headers.items()), resource]
            + [f"{name}:{query[name]}" for name in sorted(query)]
        )
        digest = hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()
        headers["authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"http://127.0.0.1:{self.port}/{ACCOUNT}{path or '/'}?{urlencode(query)}"
        with urlopen(Request(url, headers=headers, method=verb)) as answer:
            body: bytes = answer.read()
        return body
