"""Sends batches to a webhook."""

from __future__ import annotations

from ....kvlayer.settings import Settings
from ...contract.options import ChangefeedOptions
from ..delivery import BatchRefused, Messages
from ..http.client import CONTENT_TYPE, PinnedClient
from ..http.target import WebhookTarget

BAD_REQUEST, TOO_LARGE, UNPROCESSABLE = 400, 413, 422
CONTENT_STATUSES = frozenset({BAD_REQUEST, TOO_LARGE, UNPROCESSABLE})
"""Statuses that refuse the content of a request. Any other refusal is of the receiver itself, which
may take the same request later: when its password is told, or it is back where it was."""


class WebhookSender:
    """Requests of one attempt of one feed."""

    resolved_by_topic = False

    def __init__(
        self, target: WebhookTarget, options: ChangefeedOptions, settings: Settings
    ) -> None:
        self._path = target.request_target
        self._client = PinnedClient(
            target,
            settings,
            {**options.extra_headers, CONTENT_TYPE: "application/json"},
            authorization=options.webhook_auth_header or target.authorization,
            seconds=options.webhook_client_timeout,
        )

    async def open(self) -> None:
        await self._client.open()

    async def send(self, messages: Messages) -> None:
        values = [value for value in messages.values if value is not None]
        await self._post(b'{"payload":[%b],"length":%d}' % (b",".join(values), len(values)))

    async def send_resolved(self, topic: str | None, value: bytes) -> None:
        await self._post(value)

    async def close(self) -> None:
        await self._client.close()

    async def _post(self, body: bytes) -> None:
        answer = await self._client.post(self._path, body)
        if answer.good:
            return
        error = self._client.error(answer.words, answer.retry_after)
        if answer.status in CONTENT_STATUSES:
            raise BatchRefused(str(error), too_large=answer.status == TOO_LARGE)
        raise error
