"""How messages are batched and sent again: the values of `webhook_sink_config` and
`kafka_sink_config`.

    {"Flush": {"Messages": 100, "Bytes": 1048576, "Frequency": "1s"},
     "Retry": {"Max": 3, "Backoff": "500ms"}}

Names are CockroachDB's, and their case does not matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any

from ...kvlayer.settings import SettingError, parse_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushConfig:
    """When a batch of messages is sent: as soon as the request before it was answered, or, where
    `messages` or `bytes` is not zero, when so many have gathered or `frequency` seconds passed.

    A batch never holds more than `messages`, nor more `bytes` unless it is one message.
    """

    messages: int = 0
    bytes: int = 0
    frequency: float = 0.0

    @property
    def gathers(self) -> bool:
        """Whether a batch waits for more messages."""
        return bool(self.messages or self.bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryConfig:
    """How often a batch is sent again (`max`, infinite for ever), and the seconds before the first
    time; each further pause is twice as long, up to a bound."""

    max: float = 3
    backoff: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    flush: FlushConfig = FlushConfig()
    retry: RetryConfig = RetryConfig()


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
    return {name.lower(): value for name, value in found.items()}


def _check_names(given: Mapping[str, Any], known: Collection[str], prefix: str) -> None:
    for name in given:
        if name not in known:
            names = ", ".join(f"{prefix}{each.title()}" for each in sorted(known))
            raise ValueError(f"unknown field {prefix}{name.title()}; known fields: {names}")


def _read(given: Mapping[str, Any], name: str, read: Callable[[object], Any], default: Any) -> Any:
    if name not in given:
        return default
    try:
        return read(given[name])
    except ValueError as error:
        raise ValueError(f"{name.title()} is {error}, not {given[name]!r}") from None


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
