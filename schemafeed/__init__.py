"""Schema feeds: which schema is canonical for a row at a timestamp.

A changefeed may not decode a row before it is *proven* which version of its table's descriptor is
canonical at the row's timestamp: the one newest as of that timestamp, whatever version the writer
had leased. A schema feed keeps a *frontier* for each table, up to which that is known, and answers
with the schema events up to a timestamp and the descriptor that holds after them.

What lives here: the protocol (`feed`), what a step between two versions means (`table_events`),
what is proven of one table (`table_history`), and three schema feeds. `PollingSchemaFeed` reads the
descriptors every interval, and rows wait for it. `RangeFeedSchemaFeed` follows the descriptors, and
rows wait for its resolved timestamp. `LeasingSchemaFeed` holds leases, answers at once for tables
that are locked, and delegates the rest to one of the other two.

They promise that no event at or below an answered timestamp is ever learned of later, and that a
lease is let go as soon as there is a newer version, whatever the changefeed above is doing. They
must never know rows, sinks or jobs.
"""

from .feed import SchemaAnswer, TableDropped, TableUnknown
from .leasing import LeasingSchemaFeed
from .polling import PollingSchemaFeed
from .rangefeed import RangeFeedSchemaFeed
from .table_events import LOCK_CHANGES, EventKind, TableEvent, classify, describe

__all__ = [
    "LOCK_CHANGES",
    "EventKind",
    "LeasingSchemaFeed",
    "PollingSchemaFeed",
    "RangeFeedSchemaFeed",
    "SchemaAnswer",
    "TableDropped",
    "TableEvent",
    "TableUnknown",
    "classify",
    "describe",
]
