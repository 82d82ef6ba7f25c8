"""Subscriptions: named positions in tables, from which a client reads on whenever it comes back.

    CREATE SUBSCRIPTION s FOR TABLE t      position 100, and the rows of t as of then
    FETCH ALL FROM SUBSCRIPTION s          those rows, a b, resolved 150, c, resolved 200, d
    ACKNOWLEDGE SUBSCRIPTION s UP TO 200   position 200
    (the client dies, and comes back)
    FETCH ALL FROM SUBSCRIPTION s          d e, resolved 250

A subscription is a row of `system.subscriptions` and a protected timestamp at its position: what
its client has still to read is not collected, for as long as that is little enough (`bounds`).
Nothing runs for it while nobody reads; each reader is a sinkless feed of its own.
"""

from .bounds import SubscriptionBounds
from .reader import SubscriptionReader
from .subscription import (
    SUBSCRIPTION_QUOTA,
    Subscription,
    acknowledge,
    create_subscription,
    drop_subscription,
    find_subscription,
    give_subscriptions,
    list_subscriptions,
)

__all__ = [
    "SUBSCRIPTION_QUOTA",
    "Subscription",
    "SubscriptionBounds",
    "SubscriptionReader",
    "acknowledge",
    "create_subscription",
    "drop_subscription",
    "find_subscription",
    "give_subscriptions",
    "list_subscriptions",
]
