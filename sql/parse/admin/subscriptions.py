"""The grammar of subscriptions."""

from __future__ import annotations

from ...syntax.changefeed_statements import (
    AcknowledgeSubscription,
    CreateSubscription,
    DropSubscription,
    FetchSubscription,
    ShowSubscriptions,
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
    cursor.expect_end()
    return CreateSubscription(
        name=name,
        tables=tables,
        options=options,
        if_not_exists=if_not_exists,
        position=position,
    )


def drop_subscription(cursor: Cursor) -> DropSubscription:
    """`[IF EXISTS] name`"""
    if_exists = cursor.accept_words("if", "exists")
    position = cursor.position
    name = cursor.identifier("a subscription's name")
    cursor.expect_end()
    return DropSubscription(name=name, if_exists=if_exists, position=position)


def acknowledge_subscription(cursor: Cursor) -> AcknowledgeSubscription:
    """`name UP TO timestamp`"""
    position = cursor.position
    name = cursor.identifier("a subscription's name")
    cursor.expect_words("up", "to")
    upto = cursor.option_value()
    cursor.expect_end()
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
    cursor.expect_end()
    return FetchSubscription(name=name, count=count, timeout=timeout, position=position)


def show_subscriptions(cursor: Cursor) -> ShowSubscriptions:
    cursor.expect_end()
    return ShowSubscriptions()
