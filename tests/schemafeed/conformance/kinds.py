"""The schema feeds that one suite holds to one contract, each by the name of its kind."""

from __future__ import annotations

from collections.abc import Callable

from tailrace.schemafeed import LeasingSchemaFeed, PollingSchemaFeed, RangeFeedSchemaFeed
from tailrace.schemafeed.feed import SchemaFeed
from tests.harness.nodes import CatalogFixture, Node

MakeFeed = Callable[[CatalogFixture, Node], SchemaFeed]


def polling(catalog: CatalogFixture, node: Node) -> PollingSchemaFeed:
    return PollingSchemaFeed(node.store, catalog.descriptors, node.leases)


def rangefeed(catalog: CatalogFixture, node: Node) -> RangeFeedSchemaFeed:
    return RangeFeedSchemaFeed(node.store, catalog.descriptors, node.leases)


def leasing(catalog: CatalogFixture, node: Node) -> LeasingSchemaFeed:
    return LeasingSchemaFeed(node.leases, rangefeed(catalog, node))


def leasing_over_polling(catalog: CatalogFixture, node: Node) -> LeasingSchemaFeed:
    return LeasingSchemaFeed(node.leases, polling(catalog, node))


KINDS: dict[str, MakeFeed] = {
    "polling": polling,
    "rangefeed": rangefeed,
    "leasing": leasing,
    "leasing over polling": leasing_over_polling,
}
