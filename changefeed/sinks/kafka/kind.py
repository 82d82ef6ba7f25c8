"""What stands behind `kafka://` and its relatives: judges a URI, and opens sinks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.offload import Offload
from ...contract.message_form import Format
from ...contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ...contract.sink_config import RetryConfig
from ...encode import Topics, encoder_for
from ..delivery import MessageSink
from ..protocol import FeedIdentity, Sink, SinkContext, SinkError, SinkRefused
from .target import KafkaTarget, parse_target, shown_uri

if TYPE_CHECKING:
    from .sender import KafkaSender

CANNOT_CONNECT = "08001"
ONCE = RetryConfig(max=0)
"""librdkafka sends again by itself."""


class KafkaKind:
    """The kind of sink that produces changes into topics."""

    transactional = False
    local = False
    columnar = True
    follows_schema = False
    obeys = (
        PIPELINE_OPTIONS | MESSAGE_OPTIONS | {"extra_headers", "kafka_sink_config", "partition_alg"}
    )

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    def check_options(self, options: ChangefeedOptions) -> None:
        if options.format is not Format.JSON:
            raise SQLError("0A000", f"Kafka in format {options.format.value} is not supported")

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError also where no broker answers. Makes no topic."""
        target = parse_target(uri)
        sender = _sender(target, ChangefeedOptions(), self._offload)
        try:
            await sender.open()
        except (SinkError, SinkRefused) as error:
            raise SQLError(
                CANNOT_CONNECT,
                str(error),
                hint="A changefeed is created when its sink can be reached.",
            ) from error
        finally:
            await sender.close()

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """Nothing: several feeds may produce into one topic."""
        return frozenset()

    def create(self, uri: str, context: SinkContext) -> Sink:
        target, options = parse_target(uri), context.options
        topics = Topics(
            full_names=context.names,
            full_table_name=options.full_table_name,
            topic_name=target.topic_name,
            topic_prefix=target.topic_prefix,
        )
        return MessageSink(
            _sender(target, options, context.offload),
            context,
            encoder_for(options, topics, context.origin("kafka")),
            topics,
            flush=options.kafka_sink_config.flush,
            retry=ONCE,
        )

    async def release(self, uri: str, identity: FeedIdentity) -> None:
        """Nothing was held."""

    def redacted(self, uri: str) -> str:
        return shown_uri(uri)


def _sender(target: KafkaTarget, options: ChangefeedOptions, offload: Offload) -> KafkaSender:
    """Raises SQLError where confluent-kafka is not installed."""
    try:
        from .sender import KafkaSender
    except ImportError:
        raise SQLError(
            "0A000",
            "this node cannot feed Kafka: confluent-kafka is not installed",
            hint="pip install 'tailrace[kafka]'",
        ) from None
    return KafkaSender(target, options, offload)
