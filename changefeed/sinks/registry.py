"""Registries of schemas: what gives the schemas of messages in Avro their ids.

POST /subjects/orders-value/versions {"schema": "…"}     {"id": 7}

As Confluent's registry has it, and others do. A registry that does not answer is asked again; one
that takes a schema for wrong, or for incompatible with those before it, refuses the feed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from urllib.parse import parse_qs, quote, urlsplit

import msgspec

from ...catalog.values.errors import SQLError
from ...kvlayer.settings import SettingError, Settings, parse_duration
from ..contract.message_form import Format
from ..contract.options import ChangefeedOptions
from ..encode import RegisteredSchema
from .http.address import check_address
from .http.client import CONTENT_TYPE, PinnedClient
from .http.target import OWN_PARAMETERS, WebhookTarget, parse_target
from .protocol import SinkRefused

SCHEMES = ("https", "http")
TIMEOUT_SECONDS = 3.0
REFUSALS = frozenset({409, 422})
"""Statuses that speak of a schema: not compatible, not valid. Any other is the registry's own
state, such as a password that was changed there first."""

_MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


MISSING = "changefeed option format = 'avro' needs confluent_schema_registry"
MISSING_DETAIL = "Messages name the schemas of their records, which a registry holds."


class _Registered(msgspec.Struct):
    id: int


class SchemaRegistry:
    """One registry, for one attempt of one feed. It is opened when it is first asked."""

    def __init__(self, uri: str, settings: Settings) -> None:
        target, seconds = parse_registry(uri)
        self._base = target.request_target.partition("?")[0].rstrip("/")
        self._client = PinnedClient(
            target,
            settings,
            {CONTENT_TYPE: _MEDIA_TYPE},
            authorization=target.authorization,
            seconds=seconds,
        )
        self._opened = False
        self._one_at_a_time = asyncio.Lock()

    @classmethod
    def of(cls, options: ChangefeedOptions, settings: Settings) -> SchemaRegistry:
        """The registry of a feed whose messages need one. Raises SinkRefused where the option was
        taken away."""
        if options.confluent_schema_registry is None:
            raise SinkRefused(MISSING)
        try:
            return cls(options.confluent_schema_registry, settings)
        except SQLError as error:
            raise SinkRefused(str(error)) from error

    async def give_ids(self, schemas: Sequence[RegisteredSchema]) -> None:
        """Registers those of the schemas that have no id yet. Raises SinkError where trying again
        may help, and SinkRefused where the registry does not take a schema."""
        async with self._one_at_a_time:
            for schema in schemas:
                if schema.id is None:
                    if not self._opened:
                        await self._client.open()
                        self._opened = True
                    schema.id = await self._register(schema)

    async def close(self) -> None:
        await self._client.close()

    async def _register(self, schema: RegisteredSchema) -> int:
        path = f"{self._base}/subjects/{quote(schema.subject, safe='')}/versions"
        answer = await self._client.post(path, msgspec.json.encode({"schema": schema.text}))
        words = f"subject {schema.subject}: {answer.words}"
        if not answer.good:
            error = self._client.error(words, answer.retry_after)
            raise SinkRefused(str(error)) if answer.status in REFUSALS else error
        try:
            return msgspec.json.decode(answer.body, type=_Registered).id
        except msgspec.MsgspecError:
            raise self._client.error(f"{words} tells no id") from None


def parse_registry(text: str) -> tuple[WebhookTarget, float]:
    """The registry of a URI, and how many seconds an answer may take. Raises SQLError 22023."""
    if text.partition("://")[0].lower() not in SCHEMES:
        raise SQLError(
            "22023",
            "changefeed option confluent_schema_registry is no URI of a registry",
            hint="Write https://user:password@host:port/path.",
        )
    target = parse_target(
        text,
        what="schema registry",
        secure_scheme="https",
        known=OWN_PARAMETERS | {"timeout"},
    )
    given = parse_qs(urlsplit(text).query).get("timeout")
    if given is None:
        return target, TIMEOUT_SECONDS
    try:
        return target, parse_duration(given[0])
    except SettingError as error:
        raise SQLError("22023", f"timeout of the {target.shown}: {error}") from None


async def check_registry(options: ChangefeedOptions, settings: Settings) -> None:
    """Raises SQLError where a feed with these options needs a registry and has none, or one that
    takes no connections."""
    if options.format is not Format.AVRO:
        return
    if options.confluent_schema_registry is None:
        raise SQLError("22023", MISSING, detail=MISSING_DETAIL)
    target, _ = parse_registry(options.confluent_schema_registry)
    await check_address(target, settings)
