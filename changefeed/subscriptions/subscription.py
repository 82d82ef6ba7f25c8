"""Subscriptions as rows: created, acknowledged and dropped in transactions of SQL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import msgspec

from ...catalog.descriptors.system_tables import SUBSCRIPTIONS
from ...catalog.rights.quotas import owned_rows
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.errors import SQLError
from ...kvlayer.access import Transaction
from ...kvlayer.clock import Timestamp, format_timestamp
from ...kvlayer.protected_timestamp import ProtectionRefused
from ...kvlayer.settings import declare_duration
from ...kvlayer.span import Span
from ..contract.options import ChangefeedOptions, ScanChoice, parse_options
from ..jobs.create import FeedRequest, check_start, targets_of
from ..jobs.services import ChangefeedServices
from ..streams.stream import stream_options

MAX_AGE = declare_duration(
    "changefeed.subscription.max_age",
    24 * 3600.0,
    "how far behind a subscription may be before it fails and its rows are collected (0: any)",
)

PROTECTION_OWNER = "subscription"

_rows = codec_for(SUBSCRIPTIONS)

SUBSCRIPTION_QUOTA = owned_rows(
    "subscriptions",
    "changefeed.subscriptions",
    500,
    2_000,
    remedy="DROP SUBSCRIPTION",
    table=SUBSCRIPTIONS,
)


class Reader(Protocol):
    """A transaction or a snapshot, as far as subscriptions are read."""

    async def get(self, key: bytes) -> bytes | None: ...
    async def scan(self, span: Span) -> Sequence[tuple[bytes, bytes]]: ...


class Definition(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """The definition of a subscription: its tables by id, with their full names as of CREATE."""

    tables: dict[int, str]
    options: dict[str, str | None]
    start_at: Timestamp
    protection_id: bytes


_decoder = msgspec.msgpack.Decoder(Definition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """`acknowledged` is None until its client has acknowledged anything; `error` tells why the
    subscription failed, if it did."""

    name: str
    owner: str
    definition: Definition
    acknowledged: Timestamp | None = None
    error: str | None = None

    @property
    def position(self) -> Timestamp:
        """The timestamp above which commits are still to be read."""
        start_at = self.definition.start_at
        return start_at if self.acknowledged is None else self.acknowledged

    @property
    def options(self) -> ChangefeedOptions:
        """The options of a feed that reads on from the position. A client acknowledges its resolved
        messages, so they are never missing."""
        options = replace(parse_options(self.definition.options), resolved=True)
        if self.acknowledged is None:
            return options
        return replace(options, initial_scan=ScanChoice.NO, cursor=self.acknowledged)

    def check_live(self) -> None:
        """Raises SQLError 55000 where it has failed."""
        if self.error is not None:
            raise SQLError(
                "55000",
                f'subscription "{self.name}" has failed: {self.error}',
                hint=f"DROP SUBSCRIPTION {self.name}, and create it again with an initial scan.",
            )


async def find_subscription(reader: Reader, name: str) -> Subscription:
    """Raises SQLError 42704."""
    key = _rows.encode_key((name,))
    body = await reader.get(key)
    if body is None:
        raise SQLError("42704", f'subscription "{name}" does not exist')
    return _decode(key, body)


async def list_subscriptions(reader: Reader) -> list[Subscription]:
    """All subscriptions, by name."""
    rows = await reader.scan(SUBSCRIPTIONS.primary_span)
    return [_decode(key, body) for key, body in rows]


async def create_subscription(
    services: ChangefeedServices, transaction: Transaction, request: FeedRequest, name: str
) -> Subscription:
    """Writes a subscription of the request's tables and user, at the request's time or at its
    cursor. Raises SQLError: 42710 where there is one of that name, 22023 for options that do not
    fit, and what `check_start` raises."""
    if await transaction.get(_rows.encode_key((name,))) is not None:
        raise SQLError("42710", f'subscription "{name}" already exists')
    options = stream_options(request.options)
    if options.initial_scan is ScanChoice.ONLY or options.end_time is not None:
        raise SQLError(
            "22023",
            "a subscription does not end, with its initial scan or at an end_time",
            hint="CREATE CHANGEFEED … WITH initial_scan = 'only' streams the rows once.",
        )
    await check_start(services, request, options.cursor)
    start_at = request.at if options.cursor is None else options.cursor
    try:
        protection_id = await services.protections.protect(
            transaction,
            owner=PROTECTION_OWNER,
            spans=[target.span for target in targets_of(services, request.tables)],
            timestamp=start_at,
            max_age_seconds=services.store.settings.get(MAX_AGE),
        )
    except ProtectionRefused as refused:
        raise SQLError("22023", f"subscription cannot start: {refused}") from refused
    definition = Definition(
        tables={table.id: name for table, name in zip(request.tables, request.names, strict=True)},
        options=dict(request.options),
        start_at=start_at,
        protection_id=protection_id,
    )
    made = Subscription(name=name, owner=request.user, definition=definition)
    await _put(transaction, made)
    return made


async def acknowledge(
    services: ChangefeedServices,
    transaction: Transaction,
    subscription: Subscription,
    upto: Timestamp,
) -> None:
    """Moves the position up to a resolved timestamp that its client has processed: nothing at or
    below is sent again. To acknowledge the position itself changes nothing.

    Raises SQLError: 22023 for a timestamp below the position or in the future, 55000 where the
    subscription has failed.
    """
    subscription.check_live()
    shown = format_timestamp(upto)
    if upto < subscription.position:
        raise SQLError(
            "22023",
            f'subscription "{subscription.name}" cannot go back to {shown}',
            detail=f"It is acknowledged up to {format_timestamp(subscription.position)}.",
        )
    if upto > await services.store.now():
        raise SQLError("22023", f"timestamp {shown} is in the future, and nothing is resolved yet")
    if upto == subscription.acknowledged:
        return
    try:
        await services.protections.renew(transaction, subscription.definition.protection_id, upto)
    except (ProtectionRefused, KeyError) as refused:
        raise SQLError(
            "55000",
            f'what subscription "{subscription.name}" has still to read was collected',
            hint="It was not acknowledged for too long: drop it, and create it again.",
        ) from refused
    await _put(transaction, replace(subscription, acknowledged=upto))


async def fail_subscription(
    services: ChangefeedServices, transaction: Transaction, subscription: Subscription, error: str
) -> None:
    """Ends the protection, and says why to whoever reads on."""
    await services.protections.release(transaction, subscription.definition.protection_id)
    await _put(transaction, replace(subscription, error=error))


async def drop_subscription(
    services: ChangefeedServices, transaction: Transaction, subscription: Subscription
) -> None:
    """Forgets the position; what it protected may be collected."""
    await services.protections.release(transaction, subscription.definition.protection_id)
    await transaction.delete([_rows.encode_key((subscription.name,))])


async def give_subscriptions(transaction: Transaction, owner: str, to: str) -> None:
    """Gives the subscriptions of a role to another one."""
    for subscription in await list_subscriptions(transaction):
        if subscription.owner == owner:
            await _put(transaction, replace(subscription, owner=to))


async def _put(transaction: Transaction, subscription: Subscription) -> None:
    key, body = _rows.encode_row(
        (
            subscription.name,
            subscription.owner,
            msgspec.msgpack.encode(subscription.definition),
            subscription.acknowledged,
            subscription.error,
        )
    )
    await transaction.put([key], [body])


def _decode(key: bytes, body: bytes) -> Subscription:
    name, owner, definition, acknowledged, error = _rows.decode_row(key, body)
    assert isinstance(name, str) and isinstance(owner, str) and isinstance(definition, bytes), name
    assert acknowledged is None or isinstance(acknowledged, int), name
    assert error is None or isinstance(error, str), name
    return Subscription(
        name=name,
        owner=owner,
        definition=_decoder.decode(definition),
        acknowledged=None if acknowledged is None else Timestamp(acknowledged),
        error=error,
    )
