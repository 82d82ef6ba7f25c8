"""The kind of sink behind `webhook-https://`: checks URIs and opens sinks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.settings import Settings
from ...contract.message_form import WHOLE_ENVELOPES, Format
from ...contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ...encode import Topics, encoder_for
from ..delivery import MessageSink
from ..http.address import check_address
from ..http.target import INSECURE_SCHEME, SECURE_SCHEME, parse_target, shown_uri
from ..kind import SinkKind
from ..protocol import Sink, SinkContext
from .sender import WebhookSender

SCHEMES = (SECURE_SCHEME, INSECURE_SCHEME)

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
OWN_HEADERS = frozenset(
    {"connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent"}
)
"""Names of headers that a request has already: two of a name would break it."""


class WebhookKind(SinkKind):
    """The kind of sink that posts changes to a receiver over HTTPS, which tells feeds apart by what
    they send."""

    obeys = (
        PIPELINE_OPTIONS
        | MESSAGE_OPTIONS
        | {
            "extra_headers",
            "on_bad_row",
            "transactions",
            "webhook_auth_header",
            "webhook_client_timeout",
            "webhook_sink_config",
        }
    )

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def check_options(self, options: ChangefeedOptions) -> None:
        if options.format is not Format.JSON:
            raise SQLError("0A000", f"webhooks in format {options.format.value} are not supported")
        if options.envelope not in WHOLE_ENVELOPES:
            raise SQLError(
                "22023",
                f"webhooks have no envelope {options.envelope.value}",
                detail="A request holds whole messages, and that envelope has messages without a "
                "value.",
                hint="Envelopes of webhooks: wrapped, bare, enriched.",
            )
        _check_headers(options)
        if options.transactions and options.on_bad_row is not None:
            raise SQLError(
                "22023",
                "changefeed options transactions and on_bad_row exclude each other",
                detail="A transaction is told whole, or not at all.",
            )

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError also where nothing takes connections there. Makes no request."""
        await check_address(parse_target(uri), self._settings)

    def create(self, uri: str, context: SinkContext) -> Sink:
        options = replace(context.options, key_in_value=True, topic_in_value=True)
        topics = Topics(full_names=context.names, full_table_name=options.full_table_name)
        config = options.webhook_sink_config
        return MessageSink(
            WebhookSender(parse_target(uri), options, context.settings),
            context,
            encoder_for(options, topics, context.origin("webhook")),
            topics,
            flush=config.flush,
            retry=config.retry,
            requests=1 if options.transactions else None,
        )

    def redacted(self, uri: str) -> str:
        return shown_uri(uri)


def _check_headers(options: ChangefeedOptions) -> None:
    for name in options.extra_headers:
        if HEADER_NAME.fullmatch(name) is None:
            raise SQLError(
                "22023",
                f'"{name}" in the changefeed option extra_headers is no name of a header',
                hint="Names of headers have letters, digits, '-', '_' and no blanks.",
            )
        if name.lower() in OWN_HEADERS:
            raise SQLError(
                "22023",
                f"extra_headers cannot set {name}: each request has its own",
                hint="Leave it out.",
            )
        if name.lower() == "authorization" and options.webhook_auth_header is not None:
            raise SQLError(
                "22023",
                f"extra_headers and webhook_auth_header both set {name}",
                hint="Leave one of them out.",
            )
