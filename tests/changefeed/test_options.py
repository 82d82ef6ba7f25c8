"""Options are checked as a whole, and every refusal names what is wrong."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.message_form import Compression, Envelope, Format
from tailrace.changefeed.contract.options import (
    KNOWN_OPTIONS,
    PIPELINE_OPTIONS,
    ChangefeedOptions,
    ScanChoice,
    SchemaFeedKind,
    check_effective,
    parse_options,
)
from tailrace.changefeed.contract.unserved import UNSERVED
from tailrace.changefeed.sinks.duckdb import DuckDBKind
from tailrace.changefeed.sinks.files import FilesKind
from tailrace.changefeed.sinks.kafka import KafkaKind
from tailrace.changefeed.sinks.sinkless import OBEYED as SINKLESS
from tailrace.changefeed.sinks.webhook import WebhookKind
from tailrace.kvlayer.clock import timestamp_at


def refused(given: dict[str, str | None]) -> SQLError:
    with pytest.raises(SQLError) as caught:
        parse_options(given)
    return caught.value


def refusal(**given: str | None) -> SQLError:
    error = refused(given)
    assert error.sqlstate == "22023"
    return error


def test_no_options_are_the_defaults() -> None:
    options = parse_options({})
    assert options == ChangefeedOptions()
    assert options.initial_scan is ScanChoice.YES
    assert options.min_checkpoint_frequency == 0.2


def test_unknown_option_lists_the_known() -> None:
    error = refusal(differences=None)
    assert "'differences'" in error.message
    assert error.hint is not None
    assert all(name in error.hint for name in KNOWN_OPTIONS)


def test_cursor_turns_initial_scan_off() -> None:
    cursor = "1700000000000000000.0000000003"
    options = parse_options({"cursor": cursor})
    assert options.cursor == timestamp_at(unix_us=1_700_000_000_000_000, logical=3)
    assert options.initial_scan is ScanChoice.NO
    both = parse_options({"cursor": cursor, "initial_scan": "yes"})
    assert both.initial_scan is ScanChoice.YES


def test_names_and_values_ignore_case() -> None:
    options = parse_options({"Initial_Scan": "ONLY", "SCHEMA_FEED": "Polling"})
    assert options.initial_scan is ScanChoice.ONLY
    assert options.schema_feed is SchemaFeedKind.POLLING


@pytest.mark.parametrize(
    ("text", "seconds"), [(None, 0.0), ("10ms", 0.01), ("1m30s", 90.0), ("0s", 0.0)]
)
def test_resolved_is_flag_or_duration(text: str | None, seconds: float) -> None:
    options = parse_options({"resolved": text})
    assert options.resolved
    assert options.resolved_interval == seconds


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("resolved", "-1s", "negative"),
        ("min_checkpoint_frequency", "-200ms", "negative"),
        ("min_checkpoint_frequency", "soon", "not a duration"),
        ("min_checkpoint_frequency", None, "needs a value"),
        ("cursor", "yesterday", "not a timestamp"),
        ("cursor", "", "needs a value"),
        ("initial_scan", "maybe", "yes, no, only"),
        ("schema_feed", "guess", "leasing, polling, rangefeed"),
        ("updated", "yes", "takes no value"),
    ],
)
def test_wrong_value_is_named(name: str, text: str | None, words: str) -> None:
    error = refusal(**{name: text})
    assert name in error.message
    assert words in error.message


@pytest.mark.parametrize("excluded", ["resolved", "updated", "mvcc_timestamp"])
def test_scan_only_excludes_stream_options(excluded: str) -> None:
    error = refusal(**{"initial_scan": "only", excluded: None})
    assert excluded in error.message


def test_option_given_twice_is_refused() -> None:
    assert "twice" in refusal(updated=None, UPDATED=None).message


@pytest.mark.parametrize("name", UNSERVED)
def test_options_that_are_not_served_say_why(name: str) -> None:
    error = refused({name: "1"})
    assert (error.sqlstate, error.detail) == ("0A000", UNSERVED[name])


@pytest.mark.parametrize(
    "given",
    [{"format": "Protobuf"}],
    ids=["protobuf"],
)
def test_values_that_are_not_served_say_why(given: dict[str, str | None]) -> None:
    error = refused(given)
    assert error.sqlstate == "0A000"
    assert error.detail is not None
    assert error.detail.startswith("There is no ")


@pytest.mark.parametrize(
    "given",
    [
        {"envelope": "row", "key_in_value": None},
        {"envelope": "enriched", "topic_in_value": None},
        {"envelope": "enriched", "updated": None},
        {"envelope": "enriched", "enriched_properties": "sauce"},
        {"envelope": "enriched", "format": "parquet"},
        {"enriched_properties": "source"},
        {"envelope": "key_only", "topic_in_value": None},
        {"envelope": "key_only", "updated": None},
        {"envelope": "key_only", "mvcc_timestamp": None},
        {"envelope": "key_only", "encode_json_value_null_as_object": None},
        {"format": "parquet", "envelope": "wrapped"},
        {"format": "csv"},
        {"format": "csv", "initial_scan": "only", "envelope": "bare"},
        {"format": "csv", "initial_scan": "only", "key_in_value": None},
        {"format": "csv", "initial_scan": "only", "encode_json_value_null_as_object": None},
        {"initial_scan": "yes", "no_initial_scan": None},
        {"initial_scan_only": None, "updated": None},
        {"initial_scan_only": None, "diff": None},
        {"envelope": "bare", "diff": None},
        {"format": "parquet", "diff": None},
        {"headers_json_column_name": "name", "envelope": "enriched"},
        {"key_column": "name"},
        {"unordered": None},
        {"key_column": None, "unordered": None},
        {"key_column": "name", "unordered": None, "resolved": None},
        {"key_column": "name", "unordered": None, "envelope": "enriched"},
        {"envelope": "boxed"},
        {"compression": "lz4"},
        {"full_table_name": "yes"},
    ],
)
def test_options_that_do_not_go_together(given: dict[str, str | None]) -> None:
    assert refused(given).sqlstate == "22023"


def test_values_ignore_case() -> None:
    options = parse_options({"FORMAT": "JSON", "Envelope": "Deprecated_Row", "compression": "GZIP"})
    assert (options.format, options.envelope) == (Format.JSON, Envelope.ROW)
    assert options.compression is Compression.GZIP


def test_old_flags_of_the_initial_scan() -> None:
    cursor = "1700000000000000000.0000000000"
    assert parse_options({"no_initial_scan": None}).initial_scan is ScanChoice.NO
    assert parse_options({"initial_scan_only": None}).initial_scan is ScanChoice.ONLY
    assert parse_options({"initial_scan": None, "cursor": cursor}).initial_scan is ScanChoice.YES


def test_an_option_without_effect_is_refused() -> None:
    check_effective(["Cursor", "initial_scan"], PIPELINE_OPTIONS, "duckdb")
    with pytest.raises(SQLError) as caught:
        check_effective(["cursor", "updated"], PIPELINE_OPTIONS, "duckdb")
    assert caught.value.sqlstate == "22023"
    assert caught.value.message == (
        "changefeed option updated has no effect on a duckdb changefeed"
    )


def test_every_option_is_obeyed_by_somebody_or_refused() -> None:
    served = FilesKind.obeys | KafkaKind.obeys | WebhookKind.obeys | DuckDBKind.obeys | SINKLESS
    assert set(KNOWN_OPTIONS) == served
    assert not set(KNOWN_OPTIONS) & set(UNSERVED)
