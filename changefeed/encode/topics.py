"""Topics: what the messages of each table are called.

A topic keeps the table's name as of the time when the table joined the feed, whatever the table is
called later: a consumer follows one name. With `topic_prefix` 'eu_':

    full_table_name      table shop.public.orders
    no                   eu_orders
    yes                  eu_shop.public.orders

A feed with a `topic_name` has that one topic for all of its tables.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...catalog.descriptors.descriptor import TableDescriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class Topics:
    """Names topics. `full_names` are those of the feed's tables, `database.schema.table`, by id; a
    table that is not among them is called as its descriptor says."""

    full_names: Mapping[int, str] = field(default_factory=dict)
    full_table_name: bool = False
    topic_name: str | None = None
    topic_prefix: str = ""

    def of(self, table: TableDescriptor) -> str:
        return self._topic(self.unprefixed(table))

    def unprefixed(self, table: TableDescriptor) -> str:
        """The table's name in messages, whatever its topic is called besides."""
        name = self.full_names.get(table.id)
        return table.name if name is None else self._shown(name)

    @property
    def names(self) -> tuple[str, ...]:
        """The topics of all tables of the feed."""
        shown = map(self._shown, self.full_names.values())
        return tuple(dict.fromkeys(map(self._topic, shown)))

    def _shown(self, full_name: str) -> str:
        return full_name if self.full_table_name else _last_name(full_name)

    def _topic(self, shown: str) -> str:
        return self.topic_prefix + (shown if self.topic_name is None else self.topic_name)


TOPIC_BYTES_MAX = 249


def topic_name(name: str) -> str:
    """A name of a table as Kafka takes it, as CockroachDB writes it: `a b` is `a_u0020_b`."""
    if name in (".", ".."):
        return "".join(f"_u{ord(each):04x}_" for each in name)
    return _NOT_OF_TOPICS.sub(lambda found: f"_u{ord(found[0]):04x}_", name)[:TOPIC_BYTES_MAX]


def name_parts(full_name: str) -> tuple[str, str, str]:
    """Database, schema and table of a full name, without the quotes that SQL needs around them."""
    found = [quoted.replace('""', '"') or plain for quoted, plain in _NAMES.findall(full_name)]
    database, schema, table = found
    return database, schema, table


_NOT_OF_TOPICS = re.compile(r"[^a-zA-Z0-9._-]")
_NAMES = re.compile(r'(?:"((?:[^"]|"")+)"|([^."]+))(?:\.|$)')
_LAST_NAME = re.compile(r'(?:"((?:[^"]|"")+)"|([^."]+))$')


def _last_name(full_name: str) -> str:
    """The table's own name, without the quotes that SQL needs around it."""
    found = _LAST_NAME.search(full_name)
    assert found is not None, full_name
    quoted, plain = found.groups()
    return plain if quoted is None else quoted.replace('""', '"')
