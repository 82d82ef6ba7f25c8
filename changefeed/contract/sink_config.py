"""The batching and resending of messages: the values of `webhook_sink_config` and
`kafka_sink_config`.

    {"Flush": {"Messages": 100, "Bytes": 1048576, "Frequency": "1s"},
     "Retry": {"Max": 3, "Backoff": "500ms"}}

Names are CockroachDB's, and their case does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Any, TypeVar

from ...kvlayer.settings import SettingError, parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushConfig:
    """When a batch of messages is sent: as soon as the request before it was answered, or, where
    `messages` or `bytes` is not zero, when so many have gathered or `frequency` seconds passed.

    A batch never holds more than `messages_max` (`messages` where that is zero), nor more `bytes`
    unless it is one message.
    """

    messages: int = 0
    bytes: int = 0
    frequency: float = 0.0
    messages_max: int = 0

    @property
    def gathers(self) -> bool:
        """Whether a batch waits for more messages."""
        return bool(self.messages or self.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig:
    """The number of times for which a batch is sent again (`max`, infinite for ever), and the
    seconds before the first; each further pause is twice as long, up to a bound."""

    max: float = 3
    backoff: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    flush: FlushConfig = FlushConfig()
    retry: RetryConfig = RetryConfig()


class Acks(Enum):
    """The brokers that have a message when it counts as delivered. The value is Kafka's."""

    NONE = "0"  # nobody, for all that is known
    ONE = "1"  # the partition's leader
    ALL = "all"  # every replica that is in sync


class KafkaCompression(Enum):
    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaConfig:
    """A `compression_level` of None is the codec's own."""

    flush: FlushConfig = FlushConfig()
    acks: Acks = Acks.ALL
    client_id: str = "tailrace"
    compression: KafkaCompression = KafkaCompression.NONE
    compression_level: int | None = None


def parse_kafka_config(text: str) -> KafkaConfig:
    """Raises ValueError, which says what is wrong with the text."""
    given = _object(text)
    names = {"clientid", "compression", "compressionlevel", "flush", "requiredacks"}
    if "version" in given:
        raise ValueError("Version is found out by asking the brokers: leave it out")
    _check_names(given, names, "")
    default = KafkaConfig()
    return KafkaConfig(
        flush=_flush(_section(given, "flush", {"messages", "bytes", "frequency", "maxmessages"})),
        acks=_read(given, "requiredacks", lambda value: _member(Acks, value), default.acks),
        client_id=_read(given, "clientid", _text, default.client_id),
        compression=_read(
            given,
            "compression",
            lambda value: _member(KafkaCompression, value),
            default.compression,
        ),
        compression_level=_read(given, "compressionlevel", _count, None),
    )


def parse_webhook_config(text: str) -> WebhookConfig:
    """Raises ValueError, which says what is wrong with the text."""
    given = _object(text)
    _check_names(given, {"flush", "retry"}, "")
    return WebhookConfig(
        flush=_flush(_section(given, "flush", {"messages", "bytes", "frequency"})),
        retry=_retry(_section(given, "retry", {"max", "backoff"})),
    )


def _flush(given: Mapping[str, Any]) -> FlushConfig:
    config = FlushConfig(
        messages=_read(given, "messages", _count, 0),
        bytes=_read(given, "bytes", _count, 0),
        frequency=_read(given, "frequency", _seconds, 0.0),
        messages_max=_read(given, "maxmessages", _count, 0),
    )
    if config.gathers and not config.frequency:
        raise ValueError("Flush.Messages and Flush.Bytes need a Flush.Frequency above zero")
    if config.frequency and not config.gathers:
        raise ValueError("Flush.Frequency needs Flush.Messages or Flush.Bytes")
    return config


def _retry(given: Mapping[str, Any]) -> RetryConfig:
    default = RetryConfig()
    config = RetryConfig(
        max=_read(given, "max", _retries, default.max),
        backoff=_read(given, "backoff", _seconds, default.backoff),
    )
    if not config.max or not config.backoff:
        raise ValueError("Retry.Max and Retry.Backoff are above zero")
    return config


_SHOWN = {
    each.lower(): each for each in ("ClientID", "CompressionLevel", "MaxMessages", "RequiredAcks")
}
"""The fields whose names are more than one word."""


def _shown(name: str) -> str:
    """The name of a field as CockroachDB writes it."""
    return _SHOWN.get(name, name.title())


def _object(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        raise ValueError("it is not JSON") from None
    return _lower(found, "it")


def _section(given: Mapping[str, Any], name: str, known: Collection[str]) -> Mapping[str, Any]:
    section = _lower(given.get(name, {}), name.title())
    _check_names(section, known, f"{name.title()}.")
    return section


def _lower(found: object, what: str) -> Mapping[str, Any]:
    if not isinstance(found, dict):
        raise ValueError(f"{what} is not a JSON object")
    fields = {name.lower(): value for name, value in found.items()}
    if len(fields) < len(found):
        raise ValueError(f"{what} has a field twice")
    return fields


def _check_names(given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    for name in given:
        if name not in known:
            names = ", ".join(f"{prefix}{_shown(each)}" for each in sorted(known))
            raise ValueError(f"unknown field {prefix}{name}; known fields: {names}")


def _read(given: Mapping[str, Any], name: str, read: Callable[[object], Any], default: Any) -> Any:
    if name not in given:
        return default
    try:
        return read(given[name])
    except ValueError as error:
        raise ValueError(f"{_shown(name)} is {error}, not {given[name]!r}") from None


E = TypeVar("E", bound=Enum)


def _member(kind: type[E], value: object) -> E:
    for member in kind:
        if isinstance(value, str) and value.upper() == member.name:
            return member
    raise ValueError(f"one of {', '.join(member.name for member in kind)}")


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or not value:
        raise ValueError("a text")
    return value


def _count(value: object) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("a count")
    return value


def _retries(value: object) -> float:
    return inf if value == "inf" else _count(value)


def _seconds(value: object) -> float:
    if not isinstance(value, str) or value.strip().startswith("-"):
        raise ValueError("a duration such as '500ms'")
    try:
        return parse_duration(value)
    except SettingError:
        raise ValueError("a duration such as '500ms'") from None
