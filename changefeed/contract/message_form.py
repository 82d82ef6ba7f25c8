"""The form of messages: the values of its options, by CockroachDB's names."""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """The encodings of a message's value."""

    JSON = "json"
    AVRO = "avro"  # records whose schemas a registry holds
    CSV = "csv"  # a line for each row of an initial scan
    PARQUET = "parquet"  # files with a column for each column of the table


class Envelope(Enum):
    """The fields of a message around its row."""

    WRAPPED = "wrapped"  # the row under `after`, metadata beside it
    BARE = "bare"  # the row's columns, metadata under `__crdb__`
    KEY_ONLY = "key_only"  # no value
    ROW = "row"  # the row's columns; a deletion has no value
    ENRICHED = "enriched"  # the row under `after`, what happened to it, and whence it comes


class EnrichedProperty(Enum):
    """The additional parts of messages in the enriched envelope."""

    SOURCE = "source"  # whence a change comes
    SCHEMA = "schema"  # the types of the message's fields


class Compression(Enum):
    """The compressions of files. The value is the end of their names."""

    GZIP = "gzip"
    ZSTD = "zstd"


TRANSACTION_ENVELOPES = frozenset({Envelope.WRAPPED, Envelope.BARE, Envelope.ROW})
"""Envelopes with a place for the transaction's id."""

WHOLE_ENVELOPES = frozenset({Envelope.WRAPPED, Envelope.BARE, Envelope.ENRICHED})
"""Envelopes in which every message has a value, also that of a deletion."""
