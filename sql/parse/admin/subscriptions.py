"""The grammar of subscriptions."""

from __future__ import annotations

from ...syntax.changefeed_statements import (
    AcknowledgeSubscription,
    CreateSubscription,
    FetchSubscription,
)
from ...syntax.names import Option
from ..cursor import Cursor
from .feeds import feed_tables, with_options


def create_subscription(cursor: Cursor) -> CreateSubscription:
    """`[IF NOT EXISTS] name FOR [TABLE] table, … [WITH option [= value], …]`"""
    if_not_exists = cursor.accept_words("if", "not", "exists")
    position = cursor.position
    name = cursor.identifier("a subscription's name")
    cursor.expect_words("for")
    tables = feed_tables(cursor)
    options = with_options(cursor)
    return CreateSubscription(
        name=name,
        tables=tables,
        options=options,
        if_not_exists=if_not_exists,
        position=position,
    )


def acknowledge_subscription(cursor: Cursor) -> AcknowledgeSubscription:
    """`name UP TO timestamp`"""
    position = cursor.position
    name = cursor.identifier("a subscription's name")
    cursor.expect_words("up", "to")
    upto = cursor.option_value()
    return AcknowledgeSubscription(name=name, upto=upto, position=position)


def fetch_subscription(cursor: Cursor, count: int | None) -> FetchSubscription:
    """`name [WITH [(] timeout = duration [)]]`"""
    position = cursor.position
    name = cursor.identifier("a subscription's name")
    timeout: Option | None = None
    for option in with_options(cursor):
        if option.name != "timeout" or timeout is not None:
            cursor.fail(expected="one option, timeout")
        timeout = option
    return FetchSubscription(name=name, count=count, timeout=timeout, position=position)
