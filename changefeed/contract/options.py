"""Options of CREATE CHANGEFEED: what stands behind WITH, checked as a whole.

Names and values are those of CockroachDB, and so are the defaults but one: checkpoints are written
each 200 ms here, since a mirror's progress costs a row in a transaction that is written anyway.

    >>> parse_options({"resolved": "1s", "updated": None}).resolved_interval
    1.0
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import Enum
from typing import Any

from ...catalog.values.errors import SQLError
from ...kvlayer.clock import Timestamp, parse_timestamp
from ...kvlayer.settings import SettingError, parse_duration
from .message_form import (
    TRANSACTION_ENVELOPES,
    Compression,
    EnrichedProperty,
    Envelope,
    Format,
)
from .queries import FeedQuery
from .sink_config import KafkaConfig, WebhookConfig, parse_kafka_config, parse_webhook_config
from .unserved import UNSERVED, UNSERVED_FORMATS

MIN_CHECKPOINT_FREQUENCY_SECONDS = 0.2
INVALID_PARAMETER_VALUE = "22023"
NOT_SUPPORTED = "0A000"

DEFAULT_LABEL = "default"
LABEL_BYTES_MAX = 128

PIPELINE_OPTIONS = frozenset(
    {
        "cursor",
        "end_time",
        "gc_protect_expires_after",
        "initial_scan",
        "initial_scan_only",
        "lagging_ranges_polling_interval",
        "lagging_ranges_threshold",
        "metrics_label",
        "min_checkpoint_frequency",
        "no_initial_scan",
        "on_error",
        "on_table_dropped",
        "paused",
        "schema_change_events",
        "schema_change_policy",
        "schema_feed",
        "slo_p99",
    }
)
"""Options of when a feed begins, what it follows and how it ends: obeyed by every pipeline."""

JOB_OPTIONS = frozenset(
    {
        "gc_protect_expires_after",
        "lagging_ranges_polling_interval",
        "lagging_ranges_threshold",
        "metrics_label",
        "on_bad_row",
        "on_error",
        "on_table_dropped",
        "slo_p99",
    }
)
"""Options that only a feed that is a job can obey."""

MESSAGE_OPTIONS = frozenset(
    {
        "avro_schema_prefix",
        "confluent_schema_registry",
        "diff",
        "encode_json_value_null_as_object",
        "enriched_properties",
        "envelope",
        "format",
        "full_table_name",
        "key_in_value",
        "mvcc_timestamp",
        "resolved",
        "topic_in_value",
        "updated",
    }
)
"""Options of what messages look like: every sink of messages obeys them."""


SECRET_OPTIONS = frozenset({"confluent_schema_registry", "extra_headers", "webhook_auth_header"})
"""Options whose values are shown nowhere, and stored sealed."""

WEBHOOK_TIMEOUT_SECONDS = 3.0

MIN_PUBLISH_SECONDS = 1.0
"""Each time the file is checkpointed, and copied whole."""


class ScanChoice(Enum):
    YES = "yes"  # the table as of the start, then its changes
    NO = "no"  # changes only
    ONLY = "only"  # the table as of the start, and the feed has done its work


class SchemaFeedKind(Enum):
    """The kinds of schema feeds, which prove the schema that is canonical for a row."""

    LEASING = "leasing"  # a lease on a locked version; a delegate where there is none
    POLLING = "polling"  # polling alone: what the leasing feed is compared with
    RANGEFEED = "rangefeed"  # a range feed over the descriptors alone


class SchemaChangeEvents(Enum):
    """The schema changes that are events."""

    DEFAULT = "default"  # those by which old rows read otherwise than before
    COLUMN_CHANGES = "column_changes"  # also a column that is added and NULL in all of them


class SchemaChangePolicy(Enum):
    """The actions at a schema change that is an event."""

    BACKFILL = "backfill"  # the table's rows are shown again, where their consumer needs it
    NOBACKFILL = "nobackfill"  # rows go on under the new schema
    STOP = "stop"  # the feed ends with everything before it


class PartitionAlgorithm(Enum):
    """The hash of a message's key that, modulo their number, chooses its partition of the topic."""

    FNV_1A = "fnv-1a"  # as Sarama, Go's client
    MURMUR2 = "murmur2"  # as Java's client


class DropPolicy(Enum):
    """The actions of a feed of several tables when one was dropped."""

    STOP = "stop"  # the feed ends with everything before it
    LEAVE = "leave"  # the others go on


class ErrorPolicy(Enum):
    """The end of a feed behind an error which no further attempt would mend."""

    FAIL = "fail"  # it ends, and what it held is released
    PAUSE = "pause"  # it is paused with all that it holds, until somebody resumes or cancels it


class BadRowPolicy(Enum):
    """The actions of a feed whose sink will never take one row."""

    FAIL = "fail"  # it ends
    PAUSE = "pause"  # it is paused, and tries that row again when it is resumed
    DEAD_LETTER = "dead_letter"  # the row is kept as a dead letter, and the feed goes on


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangefeedOptions:
    """The options of one changefeed. Durations are seconds.

    `resolved` asks for resolved messages, at most one each `resolved_interval` (zero: as often as
    progress is saved). `cursor` is exclusive: the first change is above it. Without a `schema_feed`
    the cluster setting `changefeed.schema_feed` chooses, at each start of the feed. Where the
    statement says no `min_checkpoint_frequency`, that of an idle feed is the node's (`idle_pace`).
    One that is `paused` is made and does not begin before RESUME JOB. With an `end_time` the feed
    shows what was committed up to then, and has done its work. What it protects and has not read is
    given up after `gc_protect_expires_after` without progress, zero meaning what the cluster's
    setting says. Its metrics bear its `metrics_label`, and one of them counts the ranges that are
    further behind than `lagging_ranges_threshold`. A mirror that is to `publish` has a copy beside
    it, which is at most so many seconds older.
    """

    format: Format = Format.JSON
    envelope: Envelope = Envelope.WRAPPED
    enriched_properties: frozenset[EnrichedProperty] = frozenset()
    compression: Compression | None = None
    avro_schema_prefix: str = ""
    confluent_schema_registry: str | None = field(default=None, repr=False)
    """The URI of the registry that holds the schemas of messages."""
    key_in_value: bool = False
    key_column: str | None = None
    """The column whose values are the keys of messages; None: the primary key's columns."""
    headers_column: str | None = None
    """The option `headers_json_column_name`: the column whose fields are the headers of messages,
    which do not show it."""
    unordered: bool = False
    """Whether messages of one row may come out of order. It is what `key_column` costs."""
    topic_in_value: bool = False
    full_table_name: bool = False
    diff: bool = False
    encode_json_value_null_as_object: bool = False
    updated: bool = False
    mvcc_timestamp: bool = False
    schema_events: bool = False
    transactions: bool = False
    """Whether messages are told transaction by transaction, in the order of commits."""
    resolved: bool = False
    resolved_interval: float = 0.0
    cursor: Timestamp | None = None
    end_time: Timestamp | None = None
    initial_scan: ScanChoice = ScanChoice.YES
    min_checkpoint_frequency: float = MIN_CHECKPOINT_FREQUENCY_SECONDS
    paced_when_idle: bool = True
    schema_feed: SchemaFeedKind | None = None
    schema_change_events: SchemaChangeEvents = SchemaChangeEvents.DEFAULT
    schema_change_policy: SchemaChangePolicy = SchemaChangePolicy.BACKFILL
    on_table_dropped: DropPolicy = DropPolicy.STOP
    on_error: ErrorPolicy = ErrorPolicy.FAIL
    on_bad_row: BadRowPolicy | None = None
    """None: a row that the sink refuses is an error as any other, and `on_error` decides."""
    gc_protect_expires_after: float = 0.0
    metrics_label: str = DEFAULT_LABEL
    slo_p99: float = 0.0
    """From commit until durable in the sink, of 99 commits in a hundred; zero: nobody watches."""
    lagging_ranges_threshold: float = 180.0
    lagging_ranges_polling_interval: float = 60.0
    paused: bool = False
    exactly_once: bool = False
    """Whether a sink that can do either keeps progress in one transaction with the rows."""
    kafka_sink_config: KafkaConfig = field(default_factory=KafkaConfig)
    partition_alg: PartitionAlgorithm = PartitionAlgorithm.FNV_1A
    publish: float | None = None
    mirror_schema: str | None = None
    """The option `schema`: that of the mirror's tables in its file."""
    extra_headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    webhook_auth_header: str | None = field(default=None, repr=False)
    webhook_client_timeout: float = WEBHOOK_TIMEOUT_SECONDS
    webhook_sink_config: WebhookConfig = field(default_factory=WebhookConfig)

    @property
    def previous(self) -> bool:
        """Whether changes are to tell the row that they replaced: an enriched message says by it
        whether a row is new, and columns of that row are the key and the headers of a
        deletion."""
        named = self.key_column is not None or self.headers_column is not None
        return self.diff or self.envelope is Envelope.ENRICHED or named

    @property
    def source(self) -> bool:
        """Whether messages say whence they come."""
        return EnrichedProperty.SOURCE in self.enriched_properties

    @property
    def schema(self) -> bool:
        """Whether messages have their schema."""
        return EnrichedProperty.SCHEMA in self.enriched_properties


def parse_options(
    given: Mapping[str, str | None], query: FeedQuery | None = None
) -> ChangefeedOptions:
    """Reads what stood behind WITH: option names, each with its text or None where it had none.
    Messages of a feed with a `query` are bare where no envelope is named.

    Raises SQLError 22023 on an unknown option, a value that does not fit, or options that exclude
    each other, and 0A000 on an option of CockroachDB that Tailrace does not serve.
    """
    texts: dict[str, str | None] = {}
    for name, text in given.items():
        option = name.lower()
        if option in UNSERVED:
            raise SQLError(
                NOT_SUPPORTED,
                f"changefeed option {option} is not supported",
                detail=UNSERVED[option],
            )
        if option not in _READERS:
            near = get_close_matches(option, _READERS, n=1)
            known = f"Known options: {', '.join(_READERS)}."
            raise _invalid(
                f"unknown changefeed option {name!r}",
                hint=f"Did you mean {near[0]}? {known}" if near else known,
            )
        if option in texts:
            raise _invalid(f"changefeed option {option!r} is given twice")
        texts[option] = text
    fields: dict[str, Any] = {
        "envelope": Envelope.WRAPPED if query is None else Envelope.BARE,
        "resolved": "resolved" in texts,
        "paced_when_idle": "min_checkpoint_frequency" not in texts,
    }
    for option, text in texts.items():
        fields[_FIELDS.get(option, option)] = _READERS[option](option, text)
    scan_choices = [name for name in texts if name in SCAN_OPTIONS]
    if len(scan_choices) > 1:
        raise _invalid(f"changefeed options {' and '.join(scan_choices)} exclude each other")
    if "cursor" in texts and not scan_choices:
        fields["initial_scan"] = ScanChoice.NO
    options = ChangefeedOptions(**fields)
    _check_combinations(options, texts, query)
    return options


def check_effective(given: Iterable[str], obeyed: frozenset[str], sink: str) -> None:
    """Refuses each option of `given`, valid by itself, that `sink` would not obey.

    Raises SQLError 22023.
    """
    for name in given:
        if name.lower() not in obeyed:
            raise _invalid(
                f"changefeed option {name.lower()} has no effect on a {sink} changefeed",
                hint=f"Options of a {sink} changefeed: {', '.join(sorted(obeyed))}.",
            )


def _check_combinations(
    options: ChangefeedOptions, texts: Mapping[str, str | None], query: FeedQuery | None
) -> None:
    if options.initial_scan is ScanChoice.ONLY:
        times = ("resolved", "updated", "mvcc_timestamp", "transactions")
        for excluded in ("diff", "end_time", *times):
            if excluded in texts:
                raise _invalid(
                    f"changefeed options initial_scan = 'only' and {excluded} exclude each other",
                    detail="A feed that ends with its initial scan has one timestamp.",
                )
    for what, form in (("envelope", options.envelope), ("format", options.format)):
        names, detail = _NO_PLACE.get(form, ((), None))
        for excluded in names:
            if excluded in texts:
                raise _invalid(
                    f"changefeed option {excluded} does not go with {what} = '{form.value}'",
                    detail=detail,
                )
    _check_enriched(options, texts, query)
    _check_transactions(options)
    _check_named_columns(options, texts, query)
    if query is not None and options.diff and not query.tells_op:
        raise _invalid(
            "changefeed option diff has no effect on a CDC query that does not call event_op()",
            hint="The query reads the row before a change as cdc_prev.",
        )
    told = options.envelope in (Envelope.WRAPPED, Envelope.ENRICHED)
    with_before = (Format.JSON, Format.AVRO)
    if query is None and options.diff and not (told and options.format in with_before):
        raise _invalid(
            "changefeed option diff goes with envelope = 'wrapped' or 'enriched', and format = "
            "'json' or 'avro'",
            detail="Other messages have no place for the row before a change.",
        )
    if options.format is not Format.JSON and options.encode_json_value_null_as_object:
        raise _invalid("changefeed option encode_json_value_null_as_object goes with format json")
    if options.format is Format.CSV and options.initial_scan is not ScanChoice.ONLY:
        raise _invalid(
            "changefeed option format = 'csv' goes with initial_scan = 'only'",
            detail="A line of CSV cannot say that a row was deleted.",
        )
    _check_avro(options, texts)


def _check_transactions(options: ChangefeedOptions) -> None:
    if not options.transactions:
        return
    if options.format is not Format.JSON or options.envelope not in TRANSACTION_ENVELOPES:
        raise _invalid(
            "changefeed option transactions goes with format = 'json' and envelope = 'wrapped', "
            "'bare' or 'row'",
            detail="Other messages have no place for the transaction's id.",
        )
    if options.schema_events:
        raise _invalid(
            "changefeed options transactions and schema_events exclude each other",
            detail="A message of a schema change stands between the rows as they come.",
        )


def _check_named_columns(
    options: ChangefeedOptions, texts: Mapping[str, str | None], query: FeedQuery | None
) -> None:
    for named in ("headers_json_column_name", "key_column"):
        if named in texts and (query is not None or options.envelope is Envelope.ENRICHED):
            raise _invalid(
                f"changefeed option {named} goes neither with a CDC query nor with envelope = "
                "'enriched'"
            )
    if options.unordered and options.key_column is None:
        raise _invalid(
            "changefeed option unordered has no effect without key_column",
            detail="Messages whose key is the primary key come in order.",
        )
    if options.key_column is None:
        return
    if not options.unordered:
        raise _invalid(
            "changefeed option key_column goes with unordered alone",
            detail="A row whose key column changes goes on in another partition, and nobody is "
            "told in which order.",
            hint="Add unordered.",
        )
    if options.resolved:
        raise _invalid(
            "changefeed options unordered and resolved exclude each other",
            detail="A resolved message could overtake one that it speaks for.",
        )


def _check_avro(options: ChangefeedOptions, texts: Mapping[str, str | None]) -> None:
    if options.format is not Format.AVRO:
        for excluded in ("avro_schema_prefix", "confluent_schema_registry"):
            if excluded in texts:
                raise _invalid(f"changefeed option {excluded} goes with format = 'avro'")
        return
    if options.envelope is Envelope.ROW:
        raise _invalid("format = 'avro' has no envelope row", hint="Name envelope = 'bare'.")


def _check_enriched(
    options: ChangefeedOptions, texts: Mapping[str, str | None], query: FeedQuery | None
) -> None:
    if options.envelope is not Envelope.ENRICHED:
        if "enriched_properties" in texts:
            raise _invalid("changefeed option enriched_properties goes with envelope = 'enriched'")
        return
    if query is not None:
        raise _invalid("a CDC query has no messages with envelope = 'enriched'")
    if options.format is not Format.JSON:
        raise _invalid("changefeed option envelope = 'enriched' goes with format = 'json'")
    for excluded in ("updated", "mvcc_timestamp"):
        if excluded in texts and not options.source:
            raise _invalid(
                f"changefeed option {excluded} does not go with envelope = 'enriched' alone",
                detail="An enriched message has timestamps of commits in its field source.",
                hint="Add enriched_properties = 'source'.",
            )


Reader = Callable[[str, str | None], object]
"""Reads the text of an option, None where it has none; the first argument is the option's name."""


def _invalid(message: str, *, detail: str | None = None, hint: str | None = None) -> SQLError:
    return SQLError(INVALID_PARAMETER_VALUE, message, detail=detail, hint=hint)


def _required(name: str, text: str | None) -> str:
    if text is None or not text.strip():
        raise _invalid(f"changefeed option {name} needs a value")
    return text


def _trimmed(name: str, text: str | None) -> str:
    return _required(name, text).strip()


def _flag(name: str, text: str | None) -> bool:
    if text is not None:
        raise _invalid(f"changefeed option {name} takes no value, not {text!r}")
    return True


def _flag_for(scan: ScanChoice) -> Reader:
    """Reads a flag that stands for a choice of the initial scan."""
    return lambda name, text: _flag(name, text) and scan


def _one_of(kind: type[Enum], otherwise: Enum | None = None) -> Reader:
    """Reads a member of `kind` by its value; `otherwise`, if there is one, is the bare option."""

    def read(name: str, text: str | None) -> Enum:
        if text is None and otherwise is not None:
            return otherwise
        return _choice(kind, name, _required(name, text))

    return read


def _choice(kind: type[Enum], name: str, text: str) -> Enum:
    try:
        return kind(text.strip().lower())
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise _invalid(f"changefeed option {name} is one of {known}, not {text!r}") from None


def _duration(name: str, text: str | None) -> float:
    required = _required(name, text)
    if required.strip().startswith("-"):
        raise _invalid(f"changefeed option {name}: negative durations are not accepted: {text!r}")
    try:
        return parse_duration(required)
    except SettingError as error:
        raise _invalid(f"changefeed option {name}: {error}") from None


def _seconds(name: str, text: str | None) -> float:
    seconds = _duration(name, text)
    if not seconds:
        raise _invalid(f"changefeed option {name} is a duration above zero, not {text!r}")
    return seconds


def _parsed_by(parse: Callable[[str], object]) -> Reader:
    """Reads what `parse` makes of a text, or says why in a ValueError."""

    def read(name: str, text: str | None) -> object:
        try:
            return parse(_required(name, text))
        except ValueError as error:
            raise _invalid(f"changefeed option {name}: {error}") from None

    return read


def _format(name: str, text: str | None) -> Enum:
    required = _required(name, text)
    word = required.strip().lower()
    if word in UNSERVED_FORMATS:
        raise SQLError(
            NOT_SUPPORTED,
            f"changefeed format {required} is not supported",
            detail=UNSERVED_FORMATS[word],
        )
    return Format.AVRO if word == "experimental_avro" else _choice(Format, name, required)


def _envelope(name: str, text: str | None) -> Enum:
    required = _required(name, text)
    if required.strip().lower() == "deprecated_row":
        return Envelope.ROW
    return _choice(Envelope, name, required)


def _properties(name: str, text: str | None) -> frozenset[Enum]:
    parts = _required(name, text).split(",")
    return frozenset(_choice(EnrichedProperty, name, part) for part in parts)


def _schema_prefix(name: str, text: str | None) -> str:
    prefix = _required(name, text)
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", prefix):
        raise _invalid(f"changefeed option {name} is letters, digits and '_', not {prefix!r}")
    return prefix


def _metrics_label(name: str, text: str | None) -> str:
    label = _required(name, text)
    if len(label.encode()) > LABEL_BYTES_MAX:
        raise _invalid(f"changefeed option {name} is of at most {LABEL_BYTES_MAX} bytes")
    return label


def _extra_headers(name: str, text: str | None) -> Mapping[str, str]:
    try:
        headers = json.loads(_required(name, text))
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not all(
        _header_text(header) and isinstance(value, str) and _header_text(value)
        for header, value in headers.items()
    ):
        raise _invalid(
            f"changefeed option {name} is a JSON object of names and texts",
            hint='For example: \'{"X-Tenant": "eu"}\'.',
        )
    return headers


def _auth_header(name: str, text: str | None) -> str:
    header = _trimmed(name, text)
    if not _header_text(header):
        raise _invalid(f"changefeed option {name} holds what no header can: a control character")
    return header


def _header_text(text: str) -> bool:
    """Whether a header can carry it."""
    return bool(text) and text.isascii() and text.isprintable()


def _publish(name: str, text: str | None) -> float:
    seconds = _duration(name, text)
    if seconds < MIN_PUBLISH_SECONDS:
        raise _invalid(f"changefeed option {name} is at least {MIN_PUBLISH_SECONDS:g} s")
    return seconds


def _resolved(name: str, text: str | None) -> float:
    return 0.0 if text is None else _duration(name, text)


_READERS: dict[str, Reader] = {
    "avro_schema_prefix": _schema_prefix,
    "compression": _one_of(Compression),
    "confluent_schema_registry": _trimmed,
    "cursor": _parsed_by(parse_timestamp),
    "diff": _flag,
    "end_time": _parsed_by(parse_timestamp),
    "encode_json_value_null_as_object": _flag,
    "enriched_properties": _properties,
    "envelope": _envelope,
    "exactly_once": _flag,
    "extra_headers": _extra_headers,
    "format": _format,
    "full_table_name": _flag,
    "gc_protect_expires_after": _seconds,
    "headers_json_column_name": _required,
    "initial_scan": _one_of(ScanChoice, ScanChoice.YES),  # without a value: the anchor's old flag
    "initial_scan_only": _flag_for(ScanChoice.ONLY),
    "kafka_sink_config": _parsed_by(parse_kafka_config),
    "key_column": _required,
    "key_in_value": _flag,
    "lagging_ranges_polling_interval": _seconds,
    "lagging_ranges_threshold": _seconds,
    "metrics_label": _metrics_label,
    "min_checkpoint_frequency": _duration,
    "mvcc_timestamp": _flag,
    "no_initial_scan": _flag_for(ScanChoice.NO),
    "on_bad_row": _one_of(BadRowPolicy),
    "on_error": _one_of(ErrorPolicy),
    "on_table_dropped": _one_of(DropPolicy),
    "partition_alg": _one_of(PartitionAlgorithm),
    "paused": _flag,
    "publish": _publish,
    "resolved": _resolved,
    "schema": _required,
    "schema_change_events": _one_of(SchemaChangeEvents),
    "schema_change_policy": _one_of(SchemaChangePolicy),
    "schema_events": _flag,
    "schema_feed": _one_of(SchemaFeedKind),
    "slo_p99": _seconds,
    "topic_in_value": _flag,
    "transactions": _flag,
    "unordered": _flag,
    "updated": _flag,
    "webhook_auth_header": _auth_header,
    "webhook_client_timeout": _seconds,
    "webhook_sink_config": _parsed_by(parse_webhook_config),
}

SCAN_OPTIONS = ("initial_scan", "initial_scan_only", "no_initial_scan")
"""Ways to say one thing; the last two are the anchor's old flags."""

_FIELDS = {
    "headers_json_column_name": "headers_column",
    "resolved": "resolved_interval",
    "schema": "mirror_schema",
    **dict.fromkeys(SCAN_OPTIONS, "initial_scan"),
}
"""The field of `ChangefeedOptions` that has an option's value, where that is not of its name."""

_ENVELOPE_HAS_NONE = "The messages of that envelope have no place for it."

_NO_PLACE: Mapping[Enum, tuple[tuple[str, ...], str | None]] = {
    Envelope.ENRICHED: (("topic_in_value",), _ENVELOPE_HAS_NONE),
    Envelope.KEY_ONLY: (
        (
            "encode_json_value_null_as_object",
            "key_in_value",
            "mvcc_timestamp",
            "topic_in_value",
            "updated",
        ),
        _ENVELOPE_HAS_NONE,
    ),
    Envelope.ROW: (("key_in_value", "topic_in_value"), _ENVELOPE_HAS_NONE),
    Format.AVRO: (("key_in_value", "topic_in_value"), None),
    Format.CSV: (
        ("envelope", "key_in_value", "topic_in_value"),
        "A line of CSV has the values of a row and nothing beside them.",
    ),
    Format.PARQUET: (
        ("envelope", "topic_in_value"),
        "A file of it has the columns of one table, whose name is the file's.",
    ),
}
"""The options of messages that an envelope or a format has no place for, and why."""

KNOWN_OPTIONS = tuple(_READERS)
