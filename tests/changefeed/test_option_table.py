"""The document of options says what the software does, and names tests that are there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tailrace.api.embedded import aopen
from tailrace.catalog.values.errors import SQLError
from tailrace.changefeed.contract.options import KNOWN_OPTIONS
from tailrace.changefeed.contract.unserved import UNSERVED
from tests.changefeed.option_table import (
    DOCUMENT,
    NOT_APPLICABLE,
    OPTIONS,
    REFUSED_STATEMENTS,
    STATEMENTS,
    document,
)

ROOT = Path(__file__).parents[2]

ANCHOR_OPTIONS = {
    "format",
    "envelope",
    "enriched_properties",
    "key_in_value",
    "topic_in_value",
    "updated",
    "mvcc_timestamp",
    "diff",
    "resolved",
    "min_checkpoint_frequency",
    "cursor",
    "end_time",
    "initial_scan",
    "no_initial_scan",
    "initial_scan_only",
    "schema_change_events",
    "schema_change_policy",
    "on_error",
    "split_column_families",
    "full_table_name",
    "virtual_columns",
    "key_column",
    "unordered",
    "headers_json_column_name",
    "extra_headers",
    "avro_schema_prefix",
    "confluent_schema_registry",
    "encode_json_value_null_as_object",
    "compression",
    "gc_protect_expires_after",
    "protect_data_from_gc_on_pause",
    "execution_locality",
    "range_distribution_strategy",
    "lagging_ranges_threshold",
    "lagging_ranges_polling_interval",
    "metrics_label",
    "ignore_disable_changefeed_replication",
    "kafka_sink_config",
    "webhook_sink_config",
    "pubsub_sink_config",
    "partition_alg",
    "webhook_auth_header",
    "webhook_client_timeout",
    "sink",
}
"""Of CREATE and ALTER CHANGEFEED, as of version 26.2."""


def test_the_document_is_the_one_that_is_generated() -> None:
    assert DOCUMENT.read_text() == document(), "run python -m tests.changefeed.option_table"


def test_every_option_stands_in_the_table_once() -> None:
    assert set(OPTIONS) == set(KNOWN_OPTIONS)
    tables = [*OPTIONS, *UNSERVED, *NOT_APPLICABLE]
    assert len(tables) == len(set(tables))
    assert set(tables) >= ANCHOR_OPTIONS


@pytest.mark.parametrize("name", [*OPTIONS, *STATEMENTS])
def test_the_named_test_is_there(name: str) -> None:
    served = OPTIONS.get(name) or STATEMENTS[name]
    path, _, test = served.test.partition("::")
    text = (ROOT / path).read_text()
    assert re.search(rf"^(async )?def {test}\(", text, re.MULTILINE), served.test
    words = [word for word in re.split(r"\W+", name) if word]
    assert any(word in text for word in words), f"{path} does not mention {name}"


def test_what_is_refused_is_refused_through_sql(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with await aopen(tmp_path / "data") as database:
            await database.sql("CREATE TABLE orders (k INT PRIMARY KEY)")
            into = "CREATE CHANGEFEED FOR orders INTO 'null://' WITH"
            refused = [(f"{into} {option} = '1'", "0A000") for option in UNSERVED]
            refused += [(f"{into} {option} = '1'", "22023") for option in NOT_APPLICABLE]
            refused += [(text, sqlstate) for text, (sqlstate, _) in REFUSED_STATEMENTS.items()]
            for statement, sqlstate in refused:
                with pytest.raises(SQLError) as caught:
                    await database.sql(statement)
                assert caught.value.sqlstate == sqlstate, statement

    asyncio.run(scenario())
