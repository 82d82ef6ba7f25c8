"""What messages look like: the values of the options that say so, by CockroachDB's names."""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """How the values of a message are written."""

    JSON = "json"
    AVRO = "avro"  # records whose schemas a registry holds
    CSV = "csv"  # a line for each row of an initial scan
    PARQUET = "parquet"  # files with a column for each column of the table


class Envelope(Enum):
    """Which fields a message has around its row."""

    WRAPPED = "wrapped"  # the row under `after`, metadata beside it
    BARE = "bare"  # the row's columns, metadata under `__crdb__`
    KEY_ONLY = "key_only"  # no value
    ROW = "row"  # the row's columns; a deletion has no value
    ENRICHED = "enriched"  # the row under `after`, what happened to it, and whence it comes


class EnrichedProperty(Enum):
    """What the messages of the enriched envelope have besides."""

    SOURCE = "source"  # whence a change comes
    SCHEMA = "schema"  # the types of the message's fields


class Compression(Enum):
    """How files are compressed. The value is what their names end in."""

    GZIP = "gzip"
    ZSTD = "zstd"


METADATA_ENVELOPES = frozenset({Envelope.WRAPPED, Envelope.BARE})
"""Envelopes with a place for `key` and `topic`: an enriched message has none for `topic`."""

TRANSACTION_ENVELOPES = METADATA_ENVELOPES | {Envelope.ROW}
"""Envelopes with a place for the transaction's id."""

WHOLE_ENVELOPES = METADATA_ENVELOPES | {Envelope.ENRICHED}
"""Envelopes in which every message has a value, also that of a deletion."""
