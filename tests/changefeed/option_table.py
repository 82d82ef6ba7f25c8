"""The table of CockroachDB's statements and options in `docs/changefeeds.md`.

`python -m tests.changefeed.option_table` writes the document; `test_option_table` holds it to what
the software does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tailrace.changefeed.contract.unserved import (
    UNSERVED,
    UNSERVED_FORMATS,
)

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "changefeeds.md"

OPTIONS_TESTS = "tests/api/test_changefeed_options.py"
ENDS_TESTS = "tests/api/test_feed_ends.py"
METRICS_TEST = (
    "tests/api/test_dashboard.py::test_metrics_bear_a_feeds_label_and_count_its_lagging_ranges"
)
FILES_TESTS = "tests/api/test_files_sink.py"
KAFKA_TESTS = "tests/api/test_kafka_sink.py"
AVRO_TESTS = "tests/system/test_schema_registry.py"
WEBHOOK_TESTS = "tests/api/test_webhook_sink.py"
QUERY_TESTS = "tests/api/test_cdc_queries.py"
LETTER_TESTS = "tests/api/test_dead_letters.py"
SCHEDULE_TESTS = "tests/api/test_schedules.py"
ALTER_TESTS = "tests/api/test_alter_changefeed.py"


@dataclass(frozen=True, slots=True)
class Served:
    """What works. `test` runs it through SQL."""

    test: str
    values: str = ""
    """What may stand behind it, and what is otherwise than CockroachDB's."""


OPTIONS: dict[str, Served] = {
    "avro_schema_prefix": Served(
        f"{AVRO_TESTS}::test_rows_and_schemas_are_read_back",
        "letters, digits and `_`; stands before the table's name in subjects and records",
    ),
    "compression": Served(f"{FILES_TESTS}::test_compressed_files", "`gzip`, `zstd`; files only"),
    "confluent_schema_registry": Served(
        f"{AVRO_TESTS}::test_rows_and_schemas_are_read_back",
        "a URI; it is shown nowhere. [sinks.md](sinks.md#avro)",
    ),
    "cursor": Served(
        f"{ENDS_TESTS}::test_times_are_written_as_of_system_time",
        "an HLC decimal, or what AS OF SYSTEM TIME takes: a date and time, `-10s`",
    ),
    "diff": Served(
        f"{OPTIONS_TESTS}::test_messages_tell_the_row_before",
        "a flag; JSON in the envelopes `wrapped` and `enriched`, or a CDC query that calls "
        "event_op()",
    ),
    "encode_json_value_null_as_object": Served(
        f"{OPTIONS_TESTS}::test_messages_have_the_shape_that_was_asked_for", "a flag"
    ),
    "end_time": Served(
        f"{ENDS_TESTS}::test_a_feed_ends_at_its_end_time",
        "as `cursor`; what was committed at it is shown, and the job has succeeded",
    ),
    "enriched_properties": Served(
        "tests/api/test_enriched_messages.py::test_enriched_messages_tell_what_happened",
        "`source`, `schema`, or both, with the envelope `enriched`; `source.origin` is `tailrace`",
    ),
    "envelope": Served(
        f"{OPTIONS_TESTS}::test_messages_have_the_shape_that_was_asked_for",
        "`wrapped` (default), `bare`, `row`, `key_only`, `enriched`; files and webhooks: "
        "`wrapped`, `bare`, `enriched`",
    ),
    "exactly_once": Served(
        "tests/system/test_kafka_broker.py"
        "::test_no_record_is_lost_nor_doubled_by_kill_9_of_either_side",
        "a flag; Kafka, by transactions that hold the feed's progress: not CockroachDB's",
    ),
    "extra_headers": Served(
        f"{WEBHOOK_TESTS}::test_a_request_is_a_batch_of_messages",
        "a JSON object of names and texts; webhooks and Kafka",
    ),
    "format": Served(
        f"{FILES_TESTS}::test_parquet_is_read_by_duckdb",
        "`json` (default); `avro` for Kafka; `parquet` for files; `csv` with "
        "`initial_scan = 'only'`",
    ),
    "full_table_name": Served(f"{OPTIONS_TESTS}::test_full_table_names_are_topics", "a flag"),
    "gc_protect_expires_after": Served(
        f"{ENDS_TESTS}::test_what_a_feed_protects_expires",
        "a duration; otherwise the cluster setting `changefeed.protect_timestamp.max_age`",
    ),
    "headers_json_column_name": Served(
        f"{KAFKA_TESTS}::test_a_columns_fields_are_headers",
        "a column of JSONB that each table has; Kafka. Messages do not show it, and deletions "
        "have the headers that the row had",
    ),
    "initial_scan": Served(
        f"{OPTIONS_TESTS}::test_a_feed_without_a_scan_shows_changes_alone", "`yes`, `no`, `only`"
    ),
    "initial_scan_only": Served(f"{OPTIONS_TESTS}::test_a_scan_alone_ends", "a flag"),
    "kafka_sink_config": Served(
        f"{KAFKA_TESTS}::test_resolved_goes_to_every_partition",
        "`ClientID`, `Compression`, `CompressionLevel`, `RequiredAcks` (`ALL` here), `Flush` "
        "(Messages, MaxMessages, Bytes, Frequency); no `Version`: it is found out",
    ),
    "key_column": Served(
        f"{KAFKA_TESTS}::test_a_column_is_the_key_of_messages",
        "a column that each table has; Kafka, with `unordered`. Deletions have the value that the "
        "row had",
    ),
    "key_in_value": Served(
        f"{OPTIONS_TESTS}::test_messages_have_the_shape_that_was_asked_for",
        "a flag; always on for files and webhooks",
    ),
    "lagging_ranges_polling_interval": Served(
        METRICS_TEST, "a duration, 1 minute where nothing is said: at most so often it is counted"
    ),
    "lagging_ranges_threshold": Served(
        METRICS_TEST,
        "a duration, 3 minutes where nothing is said; the metric `changefeed_lagging_ranges`",
    ),
    "metrics_label": Served(
        METRICS_TEST, "the label `scope` of the feed's metrics, of at most 128 bytes"
    ),
    "min_checkpoint_frequency": Served(
        f"{FILES_TESTS}::test_a_mark_follows_what_it_speaks_for",
        "a duration; 200 ms where nothing is said, 5 s for files",
    ),
    "mvcc_timestamp": Served(f"{OPTIONS_TESTS}::test_messages_tell_their_timestamps", "a flag"),
    "no_initial_scan": Served(
        f"{OPTIONS_TESTS}::test_a_feed_without_a_scan_shows_changes_alone", "a flag"
    ),
    "on_bad_row": Served(
        f"{LETTER_TESTS}::test_a_refused_row_is_a_dead_letter_until_it_is_sent",
        "`fail`, `pause`, `dead_letter`, where the receiver refuses one row for ever; otherwise "
        "`on_error` says. Webhooks: [sinks.md](sinks.md#dead-letters). Not CockroachDB's",
    ),
    "on_error": Served(
        f"{ENDS_TESTS}::test_an_error_pauses_a_feed_that_was_told_so", "`fail` (default), `pause`"
    ),
    "on_table_dropped": Served(
        f"{ALTER_TESTS}::test_a_feed_goes_on_when_a_table_of_it_is_dropped",
        "`stop` (default), `leave`: not CockroachDB's",
    ),
    "partition_alg": Served(
        f"{KAFKA_TESTS}::test_resolved_goes_to_every_partition", "`fnv-1a` (default), `murmur2`"
    ),
    "paused": Served(
        "tests/api/test_changefeed_jobs.py::test_a_paused_feed_is_made_and_does_not_begin",
        "a flag: not CockroachDB's",
    ),
    "publish": Served(
        "tests/api/test_published_mirrors.py::test_a_mirror_has_a_copy_that_others_open",
        "a duration of a second or more; DuckDB mirrors: not CockroachDB's",
    ),
    "resolved": Served(
        f"{FILES_TESTS}::test_a_mark_follows_what_it_speaks_for", "a flag or a duration"
    ),
    "schema": Served(
        "tests/api/test_mirror_schemas.py::test_feeds_share_a_file_under_schemas",
        "the schema of a DuckDB mirror's tables, `main` by default: not CockroachDB's. "
        "[mirror.md](mirror.md#several-feeds-in-one-file)",
    ),
    "schema_change_events": Served(
        f"{OPTIONS_TESTS}::test_a_feed_stops_at_the_schema_changes_that_count",
        "`default`, `column_changes`",
    ),
    "schema_change_policy": Served(
        f"{OPTIONS_TESTS}::test_a_feed_stops_at_the_schema_changes_that_count",
        "`backfill` (default), `nobackfill`, `stop`",
    ),
    "schema_events": Served(
        "tests/api/test_sinkless_schema_changes.py::test_schema_changes_are_messages_of_their_own",
        "a flag, of feeds without a sink: schema changes are messages, with the schema before and "
        "after; not CockroachDB's",
    ),
    "schema_feed": Served(
        "tests/api/test_sinkless_schema_changes.py::test_dropped_column_shows_the_rows_again",
        "`leasing`, `rangefeed`, `polling`: not CockroachDB's",
    ),
    "slo_p99": Served(
        "tests/api/test_feed_reports.py::test_a_breach_of_an_objective_names_its_stage",
        "a duration from commit until durable in the sink: not CockroachDB's. A breach is a row of "
        "`system.feed_breaches` and counts in `tailrace_changefeed_slo_breaches`",
    ),
    "topic_in_value": Served(
        f"{OPTIONS_TESTS}::test_messages_have_the_shape_that_was_asked_for",
        "a flag: the table's name, without `topic_prefix` or `topic_name`; always on for webhooks",
    ),
    "transactions": Served(
        "tests/api/test_transaction_messages.py::test_a_stream_tells_whole_transactions",
        "a flag, of feeds without a sink and of webhooks, in the envelopes `wrapped`, `bare` and "
        "`row`: messages come transaction by transaction, with begin and end. "
        "[sql.md](sql.md#transactions-of-a-changefeed); not CockroachDB's",
    ),
    "unordered": Served(
        f"{KAFKA_TESTS}::test_a_column_is_the_key_of_messages",
        "a flag, with `key_column` alone: messages of a row whose key column changes come in no "
        "order. Excludes `resolved`",
    ),
    "updated": Served(f"{OPTIONS_TESTS}::test_messages_tell_their_timestamps", "a flag"),
    "webhook_auth_header": Served(
        f"{WEBHOOK_TESTS}::test_a_request_is_a_batch_of_messages", "a text; stored encrypted"
    ),
    "webhook_client_timeout": Served(
        f"{WEBHOOK_TESTS}::test_no_row_is_lost_whatever_the_receiver_does", "a duration (3 s)"
    ),
    "webhook_sink_config": Served(
        f"{WEBHOOK_TESTS}::test_requests_gather_as_they_are_told",
        "`Flush` (Messages, Bytes, Frequency), `Retry` (Max, Backoff)",
    ),
}

STATEMENTS: dict[str, Served] = {
    "CREATE CHANGEFEED FOR TABLE t, … INTO 'uri' WITH …": Served(
        f"{FILES_TESTS}::test_lines_of_json_are_read_by_anybody"
    ),
    "CREATE CHANGEFEED FOR t (sinkless)": Served(
        f"{OPTIONS_TESTS}::test_messages_have_the_shape_that_was_asked_for"
    ),
    "CREATE CHANGEFEED [INTO 'uri'] [WITH …] AS SELECT … FROM t WHERE …": Served(
        f"{QUERY_TESTS}::test_rows_are_filtered_and_projected",
        "[cdc-queries.md](cdc-queries.md)",
    ),
    "CREATE CHANGEFEED FOR DATABASE d INCLUDE TABLES t, … INTO 'uri'": Served(
        "tests/api/test_database_feeds.py::test_tables_join_at_their_creation_and_leave_when_dropped",
        "or EXCLUDE TABLES, or all tables; also later ones. It needs CHANGEFEED on the "
        "database, takes no `cursor` and no `initial_scan = 'only'`, and outlives its tables "
        "unless `on_table_dropped = 'stop'` is given",
    ),
    "ALTER CHANGEFEED j ADD t, DROP t, SET opt, UNSET opt": Served(
        f"{ALTER_TESTS}::test_a_table_joins_and_leaves_a_running_feed",
        "the feed need not be paused",
    ),
    "PAUSE JOB j, RESUME JOB j, CANCEL JOB j": Served(
        f"{ALTER_TESTS}::test_a_paused_feed_is_altered_all_the_same"
    ),
    "SHOW CHANGEFEED JOBS WITH WATCHED_TABLES": Served(
        "tests/api/test_changefeed_jobs.py::test_watched_tables_tell_what_each_is_doing"
    ),
    "CREATE EXTERNAL CONNECTION c AS 'uri', INTO 'external://c'": Served(
        "tests/api/test_external_connections.py::test_a_changed_connection_moves_its_feeds"
    ),
    "SHOW | RETRY | SKIP DEAD LETTERS FOR CHANGEFEED j [TABLE t] [KEY 'k']": Served(
        f"{LETTER_TESTS}::test_a_refused_row_is_a_dead_letter_until_it_is_sent",
        "[sinks.md](sinks.md#dead-letters); not CockroachDB's",
    ),
    "CREATE SCHEDULE [IF NOT EXISTS] [label] FOR CHANGEFEED t, … INTO 'uri' [WITH …] RECURRING "
    "'crontab' [WITH SCHEDULE OPTIONS …]": Served(
        f"{SCHEDULE_TESTS}::test_a_schedule_writes_a_scan_and_survives_a_restart",
        "`first_run`, `on_execution_failure`, `on_previous_running`: [sql.md](sql.md#schedules). "
        "No CDC queries",
    ),
    "SHOW [RUNNING | PAUSED] SCHEDULES, SHOW | PAUSE | RESUME | DROP SCHEDULE id": Served(
        f"{SCHEDULE_TESTS}::test_a_schedule_writes_a_scan_and_survives_a_restart"
    ),
    "SHOW CHANGEFEED JOB j": Served(f"{FILES_TESTS}::test_a_scan_alone_ends_with_whole_files"),
    "EXPERIMENTAL CHANGEFEED FOR t": Served(
        "tests/api/pgwire/test_changefeed_clients.py"
        "::test_redpanda_connect_reads_from_its_stored_cursor",
        "the old form of one without a sink",
    ),
    "ALTER EXTERNAL CONNECTION c AS 'uri'": Served(
        "tests/api/test_external_connections.py::test_a_changed_connection_moves_its_feeds"
    ),
    "SHOW EXTERNAL CONNECTIONS, DROP EXTERNAL CONNECTION c": Served(
        "tests/api/test_external_connections.py::test_a_connection_is_made_shown_and_dropped"
    ),
    "ALTER CHANGEFEED j PAUSE | RESUME | RESCAN TABLE t": Served(
        f"{ALTER_TESTS}::test_a_target_is_paused_resumed_and_rescanned", "not CockroachDB's"
    ),
    "EXPLAIN CHANGEFEED FOR t … WITH sample = n": Served(
        "tests/api/test_explain_changefeed.py::test_a_sample_is_what_the_feed_would_send",
        "not CockroachDB's",
    ),
    "SHOW CHANGEFEED LATENCY j": Served(
        "tests/api/test_feed_reports.py::test_every_stage_is_measured", "not CockroachDB's"
    ),
    "SELECT wait_for_changefeed(j)": Served(
        "tests/api/test_wait_for_changefeed.py::test_a_program_reads_its_own_writes",
        "not CockroachDB's",
    ),
    "VERIFY CHANGEFEED j [REPAIR]": Served(
        "tests/api/test_verify_changefeed.py::test_it_finds_and_mends_what_was_changed_by_hand",
        "of DuckDB mirrors, also of CDC queries, and of logs; not CockroachDB's",
    ),
}

REFUSED_STATEMENTS: dict[str, tuple[str, str]] = {
    "CREATE CHANGEFEED FOR TABLE orders FAMILY f": (
        "0A000",
        "Rows are stored whole: a changefeed tells of all columns.",
    ),
}
"""Statements of CockroachDB, each with its SQLSTATE here and the reason."""

NOT_APPLICABLE: dict[str, str] = {
    "sink": "An option of ALTER CHANGEFEED alone; it refuses a change of sink. Create another "
    "changefeed, with a cursor where the first one is resolved.",
}

HEAD = """\
# Changefeeds: CockroachDB's statements and options

Messages, options and statements are those of CockroachDB, so that its consumers work unchanged.
What is not served is refused, never ignored: an option with SQLSTATE 0A000 and the reason, an
unknown one with 22023, and so one that the sink would not obey. The hint of that error lists what
the sink obeys. Sinks: [sinks.md](sinks.md).

"""


def lines() -> Iterator[str]:
    yield "## Statements\n\n| statement | | |\n| --- | --- | --- |\n"
    for statement, served in STATEMENTS.items():
        yield f"| `{statement}` | works: `{served.test}` | {served.values} |\n"
    for statement, (sqlstate, reason) in REFUSED_STATEMENTS.items():
        yield f"| `{statement}` | refused, {sqlstate} | {reason} |\n"
    yield "\n## Options\n\n| option | | |\n| --- | --- | --- |\n"
    rows: dict[str, tuple[str, str]] = {
        option: (f"works: `{served.test}`", served.values) for option, served in OPTIONS.items()
    }
    rows |= {option: ("refused, 0A000", reason) for option, reason in UNSERVED.items()}
    for value, reason in UNSERVED_FORMATS.items():
        rows[f"format = '{value}'"] = ("refused, 0A000", reason)
    rows |= {option: ("not applicable", reason) for option, reason in NOT_APPLICABLE.items()}
    for option, (what, how) in sorted(rows.items()):
        yield f"| `{option}` | {what} | {how} |\n"


def document() -> str:
    return HEAD + "".join(lines())


if __name__ == "__main__":
    DOCUMENT.write_text(document())
