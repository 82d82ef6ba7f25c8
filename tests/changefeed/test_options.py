"""Options are checked as a whole, and every refusal names what is wrong."""

from __future__ import annotations

import pytest

from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.options import (
    KNOWN_OPTIONS,
    ChangefeedOptions,
    ScanChoice,
    SchemaFeedKind,
    parse_options,
)
from tailrace.kvlayer.clock import timestamp_at


def refusal(**given: str | None) -> SQLError:
    with pytest.raises(SQLError) as caught:
        parse_options(given)
    assert caught.value.sqlstate == "22023"
    return caught.value


def test_no_options_are_the_defaults() -> None:
    options = parse_options({})
    assert options == ChangefeedOptions()
    assert options.initial_scan is ScanChoice.YES
    assert options.min_checkpoint_frequency == 0.2


def test_unknown_option_lists_the_known() -> None:
    error = refusal(diff=None)
    assert "'diff'" in error.message
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
