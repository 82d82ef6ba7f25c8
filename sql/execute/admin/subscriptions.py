"""Subscriptions, as statements ask for them: see `changefeed.subscriptions`."""

from __future__ import annotations

from collections.abc import Sequence

from .... import changefeed
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import format_timestamp, seconds_between
from ....kvlayer.settings import SettingError, parse_duration
from ...results.as_of import timestamp_of_text
from ...results.results import Result, listing
from ...runtime.authorization import Actor
from ...runtime.services import Services, sees
from ...syntax import changefeed_statements as s
from ...syntax.statement import Option, refuse_twice
from ...syntax.statements import CreateChangefeed
from ..changer import Changer, Skipped
from ..query.result_shape import CHANGEFEED_COLUMNS
from .feeds import requested


class SubscriptionReaders:
    """The subscriptions that one session reads: each from where the session's last FETCH left it,
    the first from what was acknowledged."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._readers: dict[str, changefeed.SubscriptionReader] = {}

    async def fetch(self, actor: Actor, statement: s.FetchSubscription) -> Result:
        """FETCH … FROM SUBSCRIPTION: the columns of a changefeed without a sink. Raises SQLError:
        behind an error the next FETCH begins at what was acknowledged."""
        subscription = await _own(actor, statement.name)
        subscription.check_live()
        seconds = _timeout(statement.options)
        reader = self._readers.get(statement.name)
        if reader is not None and not reader.reads(subscription, actor.user):
            await self._forget(statement.name)
            reader = None
        if reader is None:
            changefeeds = self._services.changefeeds
            reader = await changefeeds.read_subscription(subscription, actor.user)
            self._readers[statement.name] = reader
        try:
            rows = await reader.take(statement.count, seconds)
        except BaseException:
            await self._forget(statement.name)
            raise
        return listing(f"FETCH {len(rows)}", CHANGEFEED_COLUMNS, list(rows))

    async def close(self) -> None:
        """Ends all readers."""
        for name in list(self._readers):
            await self._forget(name)

    async def _forget(self, name: str) -> None:
        await self._readers.pop(name).close()


async def show_subscriptions(actor: Actor, statement: s.ShowSubscriptions) -> Result:
    """Lists the user's own subscriptions; all of them with VIEWJOB or CONTROLJOB."""
    rights, now = await actor.rights(), await actor.services.store.now()
    rows = [
        (
            each.name, each.owner, ", ".join(each.definition.tables.values()),
            None if each.acknowledged is None else format_timestamp(each.acknowledged),
            seconds_between(each.position, now),
            "standing" if each.error is None else f"failed: {each.error}",
        )
        for each in await changefeed.list_subscriptions(actor.reader)
        if sees(rights, actor.user, each.owner)
    ]  # fmt: skip
    columns = "subscription_name owner_name table_names acknowledged behind_seconds:f status"
    return listing("SHOW SUBSCRIPTIONS", columns, rows)


async def create(changer: Changer, statement: s.CreateSubscription) -> None:
    """CREATE SUBSCRIPTION."""
    refuse_twice(statement.options)
    if statement.if_not_exists and await _exists(changer, statement.name):
        raise Skipped(f'subscription "{statement.name}" already exists')
    feed = CreateChangefeed(tables=statement.tables, sink=None, options=statement.options)
    _, request = await requested(changer, feed, "CREATE SUBSCRIPTION")
    await changer.services.changefeeds.subscribe(changer.transaction, request, statement.name)
    await changer.need_room(changefeed.SUBSCRIPTION_QUOTA)


async def drop(actor: Actor, statement: s.DropSubscription) -> None:
    """DROP SUBSCRIPTION."""
    if statement.if_exists and not await _exists(actor, statement.name):
        raise Skipped(f'subscription "{statement.name}" does not exist')
    subscription = await _own(actor, statement.name)
    await actor.services.changefeeds.unsubscribe(actor.reader, subscription)


async def acknowledge(actor: Actor, statement: s.AcknowledgeSubscription) -> None:
    """ACKNOWLEDGE SUBSCRIPTION."""
    subscription = await _own(actor, statement.name)
    now = await actor.services.store.now()
    try:
        upto = timestamp_of_text(statement.upto, statement.position, now)
    except SQLError as error:
        raise SQLError(
            "22023",
            f"{statement.upto!r} is no timestamp",
            hint="Acknowledge the timestamp of a resolved message, as it stands there.",
        ) from error
    await actor.services.changefeeds.acknowledge(actor.reader, subscription, upto)


async def _own(actor: Actor, name: str) -> changefeed.Subscription:
    """The user's own subscription. Raises SQLError 42704, for another user's subscription too."""
    subscription = await changefeed.find_subscription(actor.reader, name)
    rights = await actor.rights()
    if not await actor.admin() and subscription.owner not in rights.roles_of(actor.user):
        raise SQLError("42704", f'subscription "{name}" does not exist')
    return subscription


async def _exists(actor: Actor, name: str) -> bool:
    try:
        await changefeed.find_subscription(actor.reader, name)
    except SQLError:
        return False
    return True


def _timeout(options: Sequence[Option]) -> float | None:
    """The seconds that FETCH waits, None for no end. Raises SQLError 42601 and 22023."""
    refuse_twice(options)
    seconds = None
    for option in options:
        if option.name != "timeout":
            message = f'option "{option.name}" of FETCH is not known'
            raise SQLError("42601", message, hint="timeout is.", position=option.position)
        try:
            seconds = parse_duration(option.value or "")
        except SettingError as error:
            raise SQLError("22023", f"timeout: {error}", position=option.position) from None
    return seconds
