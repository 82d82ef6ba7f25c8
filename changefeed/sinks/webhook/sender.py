"""Sends batches to a webhook."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

import httpx2

from ....kvlayer.settings import Settings
from ...contract.options import ChangefeedOptions
from ..delivery import Message
from ..protocol import SinkError, SinkRefused
from .address import find_address
from .target import WebhookTarget

REQUEST_TIMEOUT, TOO_LARGE, TOO_EARLY, TOO_MANY_REQUESTS = 408, 413, 425, 429
PASSING_STATUSES = frozenset({REQUEST_TIMEOUT, TOO_EARLY, TOO_MANY_REQUESTS})
"""Of those from 400 to 499, what a receiver may answer otherwise later."""

ANSWER_BYTES_MAX = 64 * 1024
"""Of an answer: one that is longer is cut off, and its connection with it."""

WORDS_MAX = 200


class BatchTooLarge(SinkRefused):
    """The receiver takes no request of that size."""


class WebhookSender:
    """Requests of one attempt of one feed, over connections that are kept alive."""

    resolved_by_topic = False

    def __init__(
        self, target: WebhookTarget, options: ChangefeedOptions, settings: Settings
    ) -> None:
        self._target = target
        self._settings = settings
        self._seconds = options.webhook_client_timeout
        authorization = options.webhook_auth_header or target.authorization
        self._headers = {
            **options.extra_headers,
            "Host": target.authority,
            "Content-Type": "application/json",
            "User-Agent": "tailrace",
        }
        if authorization is not None:
            self._headers["Authorization"] = authorization
        self._secrets = _secrets(target, options.extra_headers, authorization)
        self._transport: httpx2.AsyncHTTPTransport | None = None
        self._url = httpx2.URL("")

    async def open(self) -> None:
        target, tls = self._target, self._target.tls()
        address = await find_address(target, self._settings, tls)
        host = f"[{address}]" if ":" in address else address
        scheme = "https" if target.secure else "http"
        self._url = httpx2.URL(f"{scheme}://{host}:{target.port}{target.request_target}")
        # The transport alone: a client would log URLs, follow redirects and heed proxies.
        self._transport = httpx2.AsyncHTTPTransport(verify=tls or False, trust_env=False)

    async def send(self, messages: Sequence[Message]) -> None:
        """A batch that is too large for the receiver goes in halves."""
        values = [message.value for message in messages if message.value is not None]
        body = b'{"payload":[%b],"length":%d}' % (b",".join(values), len(values))
        try:
            await self._post(body)
        except BatchTooLarge:
            if len(messages) == 1:
                raise
            middle = len(messages) // 2
            await self.send(messages[:middle])
            await self.send(messages[middle:])

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        await self._post(value)

    async def close(self) -> None:
        if self._transport is not None:
            await self._transport.aclose()

    async def _post(self, body: bytes) -> None:
        assert self._transport is not None, "not open"
        request = httpx2.Request(
            "POST",
            self._url,
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
            raise self._error(f"no answer within {self._seconds:g} s") from None
        except (httpx2.TransportError, OSError) as error:
            raise self._error(str(error) or type(error).__name__) from None
        self._judge(response, answer)

    def _judge(self, response: httpx2.Response, answer: bytes) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        said = " ".join(answer.decode(errors="replace").split())
        words = f"{status} {response.reason_phrase}" + (f": {said}" if said else "")
        if status >= 500 or status in PASSING_STATUSES:
            raise self._error(words)
        refusal = BatchTooLarge if status == TOO_LARGE else SinkRefused
        raise refusal(str(self._error(words)))

    def _error(self, words: str) -> SinkError:
        """What the receiver said, without what a receiver that repeats its request would tell."""
        for secret in self._secrets:
            words = words.replace(secret, "redacted")
        return SinkError(f"{self._target.shown}: {words[:WORDS_MAX]}")


def _secrets(
    target: WebhookTarget, headers: Mapping[str, str], authorization: str | None
) -> list[str]:
    """Texts that no message may hold, the longest first."""
    found = {*headers.values(), target.request_target.partition("?")[2]}
    found |= {part.partition("=")[2] for part in target.request_target.partition("?")[2].split("&")}
    if authorization is not None:
        found |= {authorization, *authorization.split()[1:]}
    return sorted(found - {""}, key=len, reverse=True)


async def _beginning(response: httpx2.Response) -> bytes:
    """The answer's body, as far as it matters."""
    found = b""
    async for chunk in response.aiter_raw():
        found += chunk
        if len(found) > ANSWER_BYTES_MAX:
            break
    return found
