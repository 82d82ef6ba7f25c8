"""Requests to one receiver, at the address that was judged when the client was opened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

import httpx2

from ....kvlayer.settings import Settings
from ..protocol import SinkError
from ..uri import bracketed
from .address import find_address
from .target import WebhookTarget

ANSWER_BYTES_MAX = 64 * 1024
"""The size of an answer: a longer one is cut off, and its connection with it."""

RETRY_AFTER_SECONDS_MAX = 3600.0
"""The longest time for which a receiver is left alone because it asked for that."""

WORDS_MAX = 200

CONTENT_TYPE = "Content-Type"
"""The header that is no secret."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    reason: str
    body: bytes
    retry_after: float = 0.0
    """The seconds for which the receiver asks to be left alone."""

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    @property
    def words(self) -> str:
        said = " ".join(self.body.decode(errors="replace").split())
        return f"{self.status} {self.reason}" + (f": {said}" if said else "")


class PinnedClient:
    """Posts to a target, over connections that are kept alive. `headers` may hold secrets, and an
    answer may take `seconds`."""

    def __init__(
        self,
        target: WebhookTarget,
        settings: Settings,
        headers: Mapping[str, str],
        *,
        authorization: str | None,
        seconds: float,
    ) -> None:
        self._target = target
        self._settings = settings
        self._seconds = seconds
        self._headers = {**headers, "Host": target.authority, "User-Agent": "tailrace"}
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._secrets = _secrets(target, headers, authorization)
        self._transport: httpx2.AsyncHTTPTransport | None = None
        self._base = ""

    async def open(self) -> None:
        """Raises SinkError where nobody takes connections, or the settings forbid the address."""
        target, tls = self._target, await self._target.tls()
        address = await find_address(target, self._settings, tls)
        self._base = f"{'https' if target.secure else 'http'}://{bracketed(address)}:{target.port}"
        # The transport alone: a client would log URLs, follow redirects and heed proxies.
        self._transport = httpx2.AsyncHTTPTransport(verify=tls or False, trust_env=False)

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def post(self, path: str, body: bytes) -> Answer:
        """Posts to a path, with its query. Raises SinkError where there is no answer."""
        assert self._transport is not None, "not open"
        request = httpx2.Request(
            "POST",
            httpx2.URL(self._base + path),
            headers=self._headers,
            content=body,
            extensions={"sni_hostname": self._target.host},
        )
        try:
            async with asyncio.timeout(self._seconds):
                response = await self._transport.handle_async_request(request)
                try:
                    answer = await _beginning(response)
                finally:
                    await response.aclose()
        except TimeoutError:
            raise self.error(f"no answer within {self._seconds:g} s") from None
        except (httpx2.TransportError, OSError) as error:
            words = str(error) or f"the connection broke off ({type(error).__name__})"
            raise self.error(words) from None
        return Answer(
            response.status_code, response.reason_phrase, answer, _retry_after(response.headers)
        )

    def error(self, words: str, retry_after: float = 0.0) -> SinkError:
        """The receiver's words, without secrets of a request that the receiver repeats."""
        for secret in self._secrets:
            words = words.replace(secret, "redacted")
        return SinkError(f"{self._target.shown}: {words[:WORDS_MAX]}", retry_after=retry_after)


def _secrets(
    target: WebhookTarget, headers: Mapping[str, str], authorization: str | None
) -> list[str]:
    """Texts that no message may hold, the longest first: a receiver repeats what it was sent as it
    came, or as it has decoded it."""
    query = target.request_target.partition("?")[2]
    found = {query, *(part.partition("=")[2] for part in query.split("&")), *target.secrets}
    found |= {value for name, value in headers.items() if name != CONTENT_TYPE}
    for each in (authorization, target.authorization):
        if each is not None:
            found |= {each, *each.split()[1:]}
    return sorted(found - {""}, key=len, reverse=True)


def _retry_after(headers: httpx2.Headers) -> float:
    """Returns the seconds of a `Retry-After`, zero where there is none that can be read. A date is
    judged by the receiver's own clock, which is in `Date`."""
    given = headers.get("Retry-After", "").strip()
    try:
        if given.isdecimal():
            seconds = float(given)
        else:
            told = parsedate_to_datetime(given) - parsedate_to_datetime(headers.get("Date", ""))
            seconds = told.total_seconds()
    except (TypeError, ValueError):  # the latter also where one date has a zone and the other none
        return 0.0
    return min(max(seconds, 0.0), RETRY_AFTER_SECONDS_MAX)


async def _beginning(response: httpx2.Response) -> bytes:
    """The answer's body, as far as it matters."""
    found = b""
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > ANSWER_BYTES_MAX:
            break
    return found
