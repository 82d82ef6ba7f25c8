"""The kind of sink behind `kafka://` and its relatives: checks URIs and opens sinks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload
from ...contract.message_form import Format
from ...contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ...contract.sink_config import Acks, FlushConfig, KafkaCompression, KafkaConfig, RetryConfig
from ...encode import Encoder, Topics, encoder_for
from ...encode.topics import topic_name
from ..delivery import MessageSink
from ..extras import KAFKA
from ..kind import SinkKind
from ..protocol import (
    NoteTrouble,
    Sink,
    SinkContext,
    SinkError,
    SinkRefused,
    cannot_connect,
    untold,
)
from .target import KafkaTarget, parse_target, shown_uri, topic_parameters

if TYPE_CHECKING:
    from .sender import KafkaSender

ONCE = RetryConfig(max=0)
"""librdkafka sends again by itself."""

LEVELS_MAX = {KafkaCompression.GZIP: 9, KafkaCompression.LZ4: 12, KafkaCompression.ZSTD: 12}
"""The greatest CompressionLevel of what has levels, as librdkafka takes them."""


class KafkaKind(SinkKind):
    """The kind of sink that produces changes into topics, into one of them from several feeds."""

    obeys = (
        PIPELINE_OPTIONS
        | MESSAGE_OPTIONS
        | {"exactly_once", "extra_headers", "headers_json_column_name", "kafka_sink_config"}
        | {"key_column", "on_bad_row", "partition_alg", "unordered"}
    )

    extra = KAFKA

    def __init__(self, offload: Offload) -> None:
        self._offload = offload

    def check_options(self, options: ChangefeedOptions) -> None:
        if options.format not in (Format.JSON, Format.AVRO):
            raise SQLError("0A000", f"Kafka in format {options.format.value} is not supported")
        config = options.kafka_sink_config
        _check_compression(config)
        if options.exactly_once and config.acks is not Acks.ALL:
            raise SQLError(
                "22023",
                f"exactly_once does not go with RequiredAcks {config.acks.name}",
                detail="Transactions of Kafka are acknowledged by all replicas that are in sync.",
            )
        if options.exactly_once and config.flush != FlushConfig():
            raise SQLError(
                "22023",
                "exactly_once does not go with Flush",
                detail="Each checkpoint is one transaction, with all that is due.",
                hint="min_checkpoint_frequency says how often.",
            )
        if options.exactly_once and options.format is Format.AVRO:
            raise SQLError(
                "0A000",
                "exactly_once in format avro is not supported",
                hint="Leave out exactly_once, or take format = 'json'.",
            )
        if options.exactly_once and options.headers_column is not None:
            raise SQLError(
                "0A000",
                "exactly_once with headers_json_column_name is not supported",
                hint="Leave out one of the two.",
            )
        if options.exactly_once and options.on_bad_row is not None:
            raise SQLError(
                "22023",
                "exactly_once does not go with on_bad_row",
                detail="A transaction is taken as a whole, or not at all.",
            )

    def keeps_progress(self, options: ChangefeedOptions) -> bool:
        return options.exactly_once

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError also where no broker answers. Makes no topic."""
        target = parse_target(uri)
        await KAFKA.load(self._offload)
        sender = _sender(target, ChangefeedOptions(), self._offload)
        try:
            await sender.open()
        except SinkRefused as error:
            raise cannot_connect(SinkError(str(error))) from error
        except SinkError as error:
            raise cannot_connect(error) from error
        finally:
            await sender.close()

    def create(self, uri: str, context: SinkContext) -> Sink:
        target, options = parse_target(uri), context.options
        topics = _topics(uri, context.names, options)
        encoder = encoder_for(options, topics, context.origin("kafka"))
        if options.exactly_once:
            return _transactional(target, context, encoder, topics)
        return MessageSink(
            _sender(target, options, context.offload, context.note_trouble),
            context,
            encoder,
            topics,
            flush=options.kafka_sink_config.flush,
            retry=ONCE,
        )

    def topic_names(
        self, uri: str, full_names: Mapping[int, str], options: ChangefeedOptions
    ) -> tuple[str, ...]:
        return tuple(map(topic_name, _topics(uri, full_names, options).names))

    def hosts(self, uri: str) -> Sequence[str]:
        return parse_target(uri).hosts

    def redacted(self, uri: str) -> str:
        return shown_uri(uri)


def _topics(uri: str, full_names: Mapping[int, str], options: ChangefeedOptions) -> Topics:
    return Topics(
        full_names=full_names, full_table_name=options.full_table_name, **topic_parameters(uri)
    )


def _check_compression(config: KafkaConfig) -> None:
    if config.compression_level is None:
        return
    name, most = config.compression.name, LEVELS_MAX.get(config.compression)
    if most is None:
        raise SQLError(
            "22023",
            f"kafka_sink_config: Compression {name} has no CompressionLevel",
            hint="GZIP, LZ4 and ZSTD have one.",
        )
    if config.compression_level > most:
        raise SQLError("22023", f"kafka_sink_config: CompressionLevel of {name} is at most {most}")


def _sender(
    target: KafkaTarget,
    options: ChangefeedOptions,
    offload: Offload,
    note_trouble: NoteTrouble = untold,
) -> KafkaSender:
    from .sender import KafkaSender  # an extra

    return KafkaSender(target, options, offload, note_trouble)


def _transactional(
    target: KafkaTarget, context: SinkContext, encoder: Encoder, topics: Topics
) -> Sink:
    from .progress_topic import ProgressTopic, feed_name
    from .sender import client_configuration
    from .sink import TransactionalSink
    from .transactions import TransactionalSender

    options, identity, offload = context.options, context.identity, context.offload
    return TransactionalSink(
        TransactionalSender(target, options, offload, feed_name(identity), context.note_trouble),
        ProgressTopic(target, client_configuration(target, options), identity, offload),
        context,
        encoder,
        topics,
    )
