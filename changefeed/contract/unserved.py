"""The anchor's options that Tailrace does not serve, each with its reason.

CREATE CHANGEFEED and ALTER CHANGEFEED refuse them with SQLSTATE 0A000, and the table of options in
`docs/changefeeds.md` prints the same reasons.
"""

from __future__ import annotations

from collections.abc import Mapping

UNSERVED: Mapping[str, str] = {
    "execution_locality": "A store is served by one process: there are no localities.",
    "ignore_disable_changefeed_replication": "Sessions cannot keep writes from changefeeds.",
    "protect_data_from_gc_on_pause": "What a paused changefeed has not read is always protected.",
    "pubsub_sink_config": "There is no Pub/Sub sink.",
    "range_distribution_strategy": "One node runs a changefeed whole.",
    "split_column_families": "Tables have no column families.",
    "virtual_columns": "Computed columns are stored, and shown as any other column.",
}

UNSERVED_FORMATS: Mapping[str, str] = {
    "protobuf": "There is no Protocol Buffers encoder.",
}
