"""Statements about subscriptions, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from .names import ObjectName, Option


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateSubscription:
    name: str
    tables: tuple[ObjectName, ...]
    options: tuple[Option, ...]
    if_not_exists: bool
    text: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DropSubscription:
    name: str
    if_exists: bool
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AcknowledgeSubscription:
    """`upto` is the timestamp as it was written."""

    name: str
    upto: str
    position: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchSubscription:
    """The next `count` rows, or all that are there where it is None; `timeout` is a duration."""

    name: str
    count: int | None
    timeout: Option | None
    position: int


@dataclass(frozen=True, slots=True)
class ShowSubscriptions:
    """SHOW SUBSCRIPTIONS."""


SubscriptionChange = CreateSubscription | DropSubscription | AcknowledgeSubscription
