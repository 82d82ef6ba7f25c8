"""The way of requests to the store of a replica: over HTTP, or in a simulation."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol
from urllib.parse import quote, urlencode

import httpx2

from ...contract.resending import REQUEST_SECONDS
from .location import ReplicaTarget

JSON = "application/json"
MSGPACK = "application/msgpack"


class TransportBroken(Exception):
    """No answer came: what was asked may have been done."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: bytes


class Transport(Protocol):
    """A connection to the target's store, or several."""

    async def post(
        self, path: str, body: bytes, *, media_type: str = JSON, seconds: float = REQUEST_SECONDS
    ) -> Reply:
        """Raises TransportBroken, also where no answer comes for so many seconds."""
        ...

    async def get(self, path: str, parameters: Mapping[str, str]) -> Reply:
        """Raises TransportBroken."""
        ...

    async def close(self) -> None: ...


class HttpTransport:
    """Connections that are kept alive, as many as requests are under way at once."""

    def __init__(self, target: ReplicaTarget) -> None:
        self._target = target
        self._client: httpx2.AsyncClient | None = None

    async def post(
        self, path: str, body: bytes, *, media_type: str = JSON, seconds: float = REQUEST_SECONDS
    ) -> Reply:
        headers = {"content-type": media_type}
        return await self._ask("POST", quote(path), body, headers, seconds)

    async def get(self, path: str, parameters: Mapping[str, str]) -> Reply:
        query = urlencode(parameters, encoding="latin-1")
        return await self._ask("GET", f"{quote(path)}?{query}" if query else quote(path))

    async def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        seconds: float = REQUEST_SECONDS,
    ) -> Reply:
        try:
            if self._client is None:
                self._client = self._connected()
            answer = await self._client.request(
                method, path, content=body, headers=headers, timeout=seconds
            )
        except (httpx2.HTTPError, OSError) as error:
            raise TransportBroken(
                f"{self._target.shown}: {error or type(error).__name__}"
            ) from None
        return Reply(answer.status_code, answer.content)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _connected(self) -> httpx2.AsyncClient:
        target = self._target
        connections_max = target.concurrency + 1  # progress is told beside entries
        context: ssl.SSLContext | bool = False  # authorities are read, in 20 ms, where they vouch
        if target.tls:
            try:
                context = ssl.create_default_context(cafile=target.root_certificate)
            except OSError:  # why is not told: it would tell of any file of the node
                raise TransportBroken(
                    f"{target.shown}: sslrootcert names no certificates in PEM that the node reads"
                ) from None
        return httpx2.AsyncClient(
            base_url=f"{'https' if target.tls else 'http'}://{target.address}",
            auth=(target.user, target.password),
            timeout=REQUEST_SECONDS,
            limits=httpx2.Limits(
                max_connections=connections_max, max_keepalive_connections=connections_max
            ),
            verify=context,
            trust_env=False,
        )
