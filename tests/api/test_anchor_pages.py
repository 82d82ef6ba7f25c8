"""Messages that the anchor's pages print come out equal: JSON values, with their keys in order.

An `Example` names the page and the heading, and has its table, rows and options. What changes from
run to run (timestamps, ids of the cluster and of the job) has a name in its place. Of messages that
a page prints in rows of one shape there is one. `docs/sinks.md` says which messages of these pages
differ, and why. The bodies of webhooks are in `tests/api/test_webhook_sink.py`, the schemas of
enriched messages in `tests/changefeed/encode/test_anchor_messages.py`.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen

MESSAGES = "Changefeed Messages"
ENVELOPES = "Changefeed Message Envelope"
QUERIES = "Change Data Capture Queries"


@dataclass(frozen=True, kw_only=True)
class Example:
    page: str
    heading: str
    sql: Sequence[str]
    """Statements on the page's tables; the feed shows what they change."""
    feed: str
    """What stands behind WITH, and the query; `T` is where the feed begins."""
    printed: Sequence[str]
    """Values, in the order of their commits. One of a deletion is told with its key."""


TABLES = (
    "CREATE TABLE employees (id INT PRIMARY KEY, name STRING, office STRING)",
    "CREATE TABLE foo (a INT PRIMARY KEY, b STRING)",
    "CREATE TABLE test (id INT PRIMARY KEY, data JSONB)",
    "CREATE TABLE orders (id INT PRIMARY KEY, customer_id INT, total DECIMAL(10,2), status STRING)",
    """CREATE TABLE products (id UUID NOT NULL DEFAULT gen_random_uuid(), name STRING NOT NULL,
    description STRING NULL, price DECIMAL(10,2) NOT NULL, in_stock BOOL NULL DEFAULT true,
    category STRING NULL, created_at TIMESTAMP NULL DEFAULT current_timestamp()::TIMESTAMP,
    CONSTRAINT products_pkey PRIMARY KEY (id))""",
    """CREATE TABLE vehicles (id UUID NOT NULL, city VARCHAR NOT NULL, type VARCHAR, owner_id UUID,
    creation_time TIMESTAMP, status VARCHAR, current_location VARCHAR, ext JSONB,
    PRIMARY KEY (city, id))""",
    """CREATE TABLE users (id UUID NOT NULL, city VARCHAR NOT NULL, name VARCHAR, address VARCHAR,
    credit_card VARCHAR, PRIMARY KEY (city, id))""",
    """CREATE TABLE vehicle_location_histories (city VARCHAR NOT NULL, ride_id UUID NOT NULL,
    "timestamp" TIMESTAMP NOT NULL, lat DECIMAL, long DECIMAL,
    PRIMARY KEY (city, ride_id, "timestamp"))""",
    "CREATE TABLE dogs (id INT PRIMARY KEY, good_boy BOOL)",
)

LAMP = "32856ed8-34d3-45a3-a449-412bdeaa277c"
LAMP_ROW = (
    '{"category": "Home & Kitchen", "created_at": "2025-04-01T17:55:46.812942", "description": '
    f'"Adjustable LED desk lamp with touch controls", "id": "{LAMP}", "in_stock": true, '
    '"name": "LED Desk Lamp", "price": 2%s.30}'
)
MAKE_LAMP = (
    f"INSERT INTO products VALUES ('{LAMP}', 'LED Desk Lamp', 'Adjustable LED desk lamp with touch "
    "controls', 22.30, true, 'Home & Kitchen', '2025-04-01 17:55:46.812942')"
)
SCOOTER = "68ee1f95-3137-48e2-8ce3-34ac2d18c7c8"
MAKE_SCOOTER = (
    f"INSERT INTO vehicles VALUES ('{SCOOTER}', 'seattle', 'scooter', "
    "'570a3d70-a3d7-4c00-8000-000000000011', '2019-01-02 03:04:05', 'in_use', "
    """'86359 Jeffrey Ranch', '{"color": "yellow"}')"""
)
SCOOTER_ROW = (
    '"city": "seattle", "creation_time": "2019-01-02T03:04:05", "current_location": '
    f'"86359 Jeffrey Ranch", "ext": {{"color": "yellow"}}, "id": "{SCOOTER}", "owner_id": '
    '"570a3d70-a3d7-4c00-8000-000000000011", "status": "in_use"'
)
SOURCE = (
    '{"changefeed_sink": "sinkless buffer", "cluster_id": "CLUSTER", "cluster_name": "", '
    '"database_name": "defaultdb", "db_version": "VERSION", "job_id": "0"%s, "node_id": "1", '
    '"node_name": "", "origin": "tailrace", "primary_keys": ["id"], "schema_name": "public", '
    '"source_node_locality": "", "table_name": "products"%s}'
)

EXAMPLES = [
    Example(
        page=MESSAGES, heading="Per-key ordering",
        sql=["INSERT INTO employees VALUES (1, 'Terry', 'new york city')",
             "UPDATE employees SET name = 'Terri' WHERE id = 1"],
        feed="FOR TABLE employees WITH updated, key_in_value",
        printed=[
            '{"after": {"id": 1, "name": "Terry", '
            '"office": "new york city"}, "key": [1], "updated": "TS"}',
            '{"after": {"id": 1, "name": "Terri", '
            '"office": "new york city"}, "key": [1], "updated": "TS"}',
        ],
    ),
    Example(
        page=MESSAGES, heading="Delete messages",
        sql=["INSERT INTO employees VALUES (5, 'Robbie', 'london')",
             "DELETE FROM employees WHERE id = 5"],
        feed="FOR TABLE employees",
        printed=['{"after": {"id": 5, "name": "Robbie", "office": "london"}}',
                 '[5] {"after": null}'],
    ),
    Example(
        page=MESSAGES, heading="JSON, without the option",
        sql=["INSERT INTO test VALUES (1, NULL), (2, 'null'::JSONB)"],
        feed="FOR TABLE test WITH key_in_value",
        printed=['{"after": {"data": null, "id": 1}, "key": [1]}',
                 '{"after": {"data": null, "id": 2}, "key": [2]}'],
    ),
    Example(
        page=MESSAGES, heading="JSON, with encode_json_value_null_as_object",
        sql=["INSERT INTO test VALUES (1, NULL), (2, 'null'::JSONB)"],
        feed="FOR TABLE test WITH key_in_value, encode_json_value_null_as_object",
        printed=['{"after": {"data": null, "id": 1}, "key": [1]}',
                 '{"after": {"data": {"__crdb_json_null__": true}, "id": 2}, "key": [2]}'],
    ),
    Example(
        page=ENVELOPES, heading="Audit changes in data",
        sql=[MAKE_LAMP, f"UPDATE products SET price = 26.30 WHERE id = '{LAMP}'"],
        feed="FOR TABLE products WITH diff",
        printed=[f'{{"after": {LAMP_ROW % 2}, "before": null}}',
                 f'{{"after": {LAMP_ROW % 6}, "before": {LAMP_ROW % 2}}}'],
    ),
    Example(
        page=ENVELOPES, heading="Route events based on operation type; enriched",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", "ts_ns": "NS"}}'],
    ),
    Example(
        page=ENVELOPES, heading="Preserve the origin of data",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = source",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", "source": {SOURCE % ("", "")}, '
                 '"ts_ns": "NS"}'],
    ),
    Example(
        page=ENVELOPES, heading="enriched, with source and updated",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = source, updated",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", '
                 f'''"source": {SOURCE % ("", ', "ts_hlc": "TS", '
                 '"ts_ns": "NS"')}, "ts_ns": "NS"}}'''],
    ),
    Example(
        page=ENVELOPES, heading="Enable full-fidelity message envelopes (its payload)",
        sql=[MAKE_LAMP, f"UPDATE products SET price = 26.30 WHERE id = '{LAMP}'"],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = source, diff, "
             "mvcc_timestamp, updated, key_in_value",
        printed=[
            f'{{"after": {LAMP_ROW % now}, "before": {before}, "key": {{"id": "{LAMP}"}}, '
            f'"op": "{op}", "source": '
            f'''{SOURCE % (', "mvcc_timestamp": "TS"', ', "ts_hlc": "TS", "ts_ns": "NS"')}, '''
            '"ts_ns": "NS"}'
            for now, before, op in ((2, "null", "c"), (6, LAMP_ROW % 2, "u"))
        ],
    ),
    Example(
        page=ENVELOPES, heading="wrapped, into cloud storage, and Kafka with key_in_value",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH key_in_value",
        printed=[f'{{"after": {{{SCOOTER_ROW}, "type": "scooter"}}, '
                 f'"key": ["seattle", "{SCOOTER}"]}}'],
    ),
    Example(
        page=ENVELOPES, heading="wrapped, into Kafka",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles",
        printed=[f'{{"after": {{{SCOOTER_ROW}, "type": "scooter"}}}}'],
    ),
    Example(
        page=ENVELOPES, heading="bare, into cloud storage",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH envelope = bare, key_in_value",
        printed=[f'{{"__crdb__": {{"key": ["seattle", "{SCOOTER}"]}}, '
                 f'{SCOOTER_ROW}, "type": "scooter"}}'],
    ),
    Example(
        page=ENVELOPES, heading="bare, of a CDC query",
        sql=[MAKE_SCOOTER],
        feed="AS SELECT city, type FROM vehicles",
        printed=['{"city": "seattle", "type": "scooter"}'],
    ),
    Example(
        page=ENVELOPES, heading="bare, of a CDC query with topic_in_value",
        sql=[MAKE_SCOOTER],
        feed="WITH topic_in_value AS SELECT city, type FROM vehicles",
        printed=['{"__crdb__": {"topic": "vehicles"}, "city": "seattle", "type": "scooter"}'],
    ),
    Example(
        page=ENVELOPES, heading="key_only, without a sink",
        sql=["INSERT INTO users VALUES ('fff726cc-13b3-475f-ad92-a21cafee5d3f', 'seattle')"],
        feed="FOR TABLE users WITH envelope = key_only",
        printed=['["seattle", "fff726cc-13b3-475f-ad92-a21cafee5d3f"] '],
    ),
    Example(
        page=ENVELOPES, heading="row",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH envelope = row",
        printed=[f'{{{SCOOTER_ROW}, "type": "scooter"}}'],
    ),
    Example(
        page=ENVELOPES, heading="payload: the messages in it",
        sql=["INSERT INTO foo VALUES (1, 'a')", "UPDATE foo SET b = 'b'"],
        feed="FOR TABLE foo WITH key_in_value, topic_in_value",
        printed=['{"after": {"a": 1, "b": "a"}, "key": [1], "topic": "foo"}',
                 '{"after": {"a": 1, "b": "b"}, "key": [1], "topic": "foo"}'],
    ),
    Example(
        page=ENVELOPES, heading="__crdb__ (whose fields the page prints in another order)",
        sql=["INSERT INTO orders VALUES (101, 1, 50.00, 'new')"],
        feed="FOR TABLE orders WITH envelope = bare, key_in_value",
        printed=['{"__crdb__": {"key": [101]}, "customer_id": 1, "id": 101, "status": "new", '
                 '"total": 50.00}'],
    ),
    Example(
        page=QUERIES, heading="Filter columns",
        sql=["INSERT INTO users VALUES ('49a8c43d-8ed8-4d50-ad99-fb314cbe20a1', 'amsterdam', "
             "'Thomas Harris')"],
        feed="WITH updated AS SELECT name, city FROM users",
        printed=['{"__crdb__": {"updated": "TS"}, "city": "amsterdam", "name": "Thomas Harris"}'],
    ),
    Example(
        page=QUERIES, heading="Capture delete messages",
        sql=["INSERT INTO users VALUES ('49a8c43d-8ed8-4d50-ad99-fb314cbe20a1', 'washington dc', "
             "'Tina Jones', '95913 Thomas Key Apt. 99', '2702281601')",
             "DELETE FROM users WHERE city = 'washington dc'"],
        feed="WITH envelope = 'wrapped', format = 'json', diff AS "
             "SELECT * FROM users WHERE event_op() = 'delete'",
        printed=['["washington dc", "49a8c43d-8ed8-4d50-ad99-fb314cbe20a1"] {"after": null, '
                 '"before": {"address": "95913 Thomas Key Apt. 99", '
                 '"city": "washington dc", "credit_card": "2702281601", '
                 '"id": "49a8c43d-8ed8-4d50-ad99-fb314cbe20a1", "name": "Tina Jones"}}'],
    ),
    Example(
        page=QUERIES, heading="Recover lost messages",
        sql=["INSERT INTO vehicle_location_histories VALUES ('washington dc', "
             "'efe6468e-f443-463f-a21c-4cb0f6ecf235', '2023-06-02 15:11:30.316547', 128, 11), "
             "('washington dc', 'efe6468e-f443-463f-a21c-4cb0f6ecf235', "
             "'2023-06-02 15:11:36.408561', 10, -27)"],
        feed="AS SELECT * FROM vehicle_location_histories "
             "WHERE ride_id = 'efe6468e-f443-463f-a21c-4cb0f6ecf235'",
        printed=['{"city": "washington dc", "lat": 128, "long": 11, '
                 '"ride_id": "efe6468e-f443-463f-a21c-4cb0f6ecf235", '
                 '"timestamp": "2023-06-02T15:11:30.316547"}',
                 '{"city": "washington dc", "lat": 1E+1, "long": -27, '
                 '"ride_id": "efe6468e-f443-463f-a21c-4cb0f6ecf235", '
                 '"timestamp": "2023-06-02T15:11:36.408561"}'],
    ),
    Example(
        page=QUERIES, heading="Customize changefeed messages",
        sql=[MAKE_SCOOTER],
        feed="AS SELECT *, owner_id::string || ' takes passengers by ' || type || "
             "'. They are currently ' || status AS summary FROM vehicles",
        printed=[f'{{{SCOOTER_ROW}, '
                 f'"summary": "570a3d70-a3d7-4c00-8000-000000000011 takes passengers '
                 'by scooter. They are currently in_use", "type": "scooter"}'],
    ),
    Example(
        page=QUERIES, heading="Queries and the outbox pattern",
        sql=["INSERT INTO dogs VALUES (1, true)"],
        feed="AS SELECT event_schema_timestamp()::int AS event_timestamp, 'dogs' AS table, "
             "event_op() AS type, jsonb_build_object('good_boy', good_boy) AS data FROM dogs",
        printed=['{"data": {"good_boy": true}, "event_timestamp": "NS", "table": "dogs", '
                 '"type": "upsert"}'],
    ),
]  # fmt: skip


def run(path: Path, scenario: Callable[[AsyncDatabase], Coroutine[Any, Any, None]]) -> None:
    async def whole() -> None:
        async with await aopen(path / "data") as database:
            for statement in TABLES:
                await database.sql(statement)
            await scenario(database)

    asyncio.run(whole())


def values(text: str) -> object:
    """The message with its objects as lists of fields, in order, and numbers with their value."""
    text = re.sub(r'"\d{19}\.\d{10}"', '"TS"', text)
    text = re.sub(r'"(ts_ns|event_timestamp)": ?\d{19}', r'"\1": "NS"', text)
    text = re.sub(r'"(cluster_id|db_version)": ?"[^"]+"', _name, text)
    return json.loads(text, object_pairs_hook=list, parse_float=Decimal, parse_int=Decimal)


def _name(match: re.Match[str]) -> str:
    named = {"cluster_id": "CLUSTER", "db_version": "VERSION"}
    return f'"{match[1]}": "{named[match[1]]}"'


async def shown(database: AsyncDatabase, example: Example) -> list[tuple[str, str]]:
    """Keys and values of what the feed shows of the statements' changes."""
    ((began,),) = (await database.sql("SELECT cluster_logical_timestamp()::STRING")).fetchall()
    assert isinstance(began, str), began
    for statement in example.sql:
        await database.sql(statement)
    options = f"WITH cursor = '{began}', sample = 10"
    feed = example.feed
    if " WITH " in f" {feed}":
        feed = feed.replace("WITH ", f"{options}, ", 1)
    elif feed.startswith("AS "):
        feed = f"{options} {feed}"
    else:
        feed = f"{feed} {options}"
    found = await database.sql(f"EXPLAIN CHANGEFEED {feed}")
    return [(bytes(key).decode(), bytes(value).decode()) for _, key, value in found.fetchall()]  # type: ignore[arg-type]


def test_messages_of_the_pages(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for example in EXAMPLES:
            told = await shown(database, example)
            where = f"{example.page}: {example.heading}"
            assert len(told) == len(example.printed), (where, told)
            for (key, value), printed in zip(told, example.printed, strict=True):
                printed_key, space, printed_value = printed.rpartition("] ")
                if space and printed_key.startswith("["):
                    assert values(key) == values(printed_key + "]"), where
                    printed = printed_value
                if printed:
                    assert values(value) == values(printed), where
                else:
                    assert value == "", where
            for table in ("employees", "test", "products", "vehicles", "users", "foo"):
                await database.sql(f"DELETE FROM {table}")

    run(tmp_path, scenario)


@pytest.mark.parametrize("policy", ["backfill", "nobackfill"])
def test_schema_changes_with_column_backfill(tmp_path: Path, policy: str) -> None:
    """Changefeed Messages: Schema changes with column backfill."""
    rows = [(1, "Petee H"), (2, "Carl"), (3, "Ernie")]

    async def scenario(database: AsyncDatabase) -> None:
        await database.sql("CREATE TABLE office_dogs (id INT PRIMARY KEY, name STRING)")
        await database.sql(f"INSERT INTO office_dogs VALUES {', '.join(map(str, rows))}")
        found: list[tuple[object, object]] = []
        feed = database.changefeed("office_dogs", envelope="row", schema_change_policy=policy)
        async with asyncio.timeout(30):
            async for _, key, value in feed:
                found.append((values(bytes(key).decode()), values(bytes(value).decode())))  # type: ignore[arg-type]
                if len(found) == 3:
                    await database.sql(
                        "ALTER TABLE office_dogs ADD COLUMN likes_treats BOOL DEFAULT TRUE"
                    )
                    await database.sql("INSERT INTO office_dogs VALUES (4, 'Last', false)")
                if len(found) == (7 if policy == "backfill" else 4):
                    break
        printed = [
            (values(f"[{id}]"), values(f'{{"id": {id}, {treats}"name": "{name}"}}'))
            for treats in ("", '"likes_treats": true, ')[: 2 if policy == "backfill" else 1]
            for id, name in rows
        ]
        assert sorted(found[:3], key=str) == printed[:3]
        # Rows that are written meanwhile are shown beside the backfill.
        last = [(values("[4]"), values('{"id": 4, "likes_treats": false, "name": "Last"}'))]
        assert sorted(found[3:], key=str) == [*printed[3:], *last]

    run(tmp_path, scenario)
