"""Messages that the anchor's pages print come out equal: JSON values, with their keys in order.

The pages are "Changefeed Messages" (v24.3 and v25.2), "Change Data Capture Queries" (v24.3) and
"Changefeed Message Envelope" (v25.2). An `Example` names the page and the heading, and has rows of
our own and the statement. What changes from run to run (timestamps, ids of the cluster and of the
job) has a name in its place. Of messages that a page prints in rows of one shape there is one. The
record of Avro is in `tests/changefeed/encode/test_avro.py`. `docs/sinks.md` says which messages of
these pages differ, and why. These do not apply, since nothing here makes them: the array of a BIT
column, the topics of column families, the headers that a column names, deletions by TTL.
"""

from __future__ import annotations

import asyncio
import csv
import json
import re
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tailrace.api.embedded import AsyncDatabase, aopen
from tests.harness.kafka_reader import MockCluster, read
from tests.harness.webhook_receiver import WebhookReceiver

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
    """What stands behind CREATE CHANGEFEED, without a sink and the times of begin and end."""
    printed: Sequence[str]
    """Values, in the order of their commits; a key and a blank before one where the page has it."""
    into: Sequence[str] = ("",)
    """Where the messages are read, "" is without a sink."""


TABLES = (
    "CREATE TABLE office_dogs (id INT PRIMARY KEY, name STRING)",
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
    """CREATE TABLE rides (id UUID NOT NULL, city VARCHAR NOT NULL, vehicle_city VARCHAR,
    rider_id UUID, vehicle_id UUID, start_address VARCHAR, end_address VARCHAR,
    start_time TIMESTAMP, end_time TIMESTAMP, revenue DECIMAL(10,2), PRIMARY KEY (city, id))""",
    """CREATE TABLE users (id UUID NOT NULL, city VARCHAR NOT NULL, name VARCHAR, address VARCHAR,
    credit_card VARCHAR, PRIMARY KEY (city, id))""",
    """CREATE TABLE vehicle_location_histories (city VARCHAR NOT NULL, ride_id UUID NOT NULL,
    "timestamp" TIMESTAMP NOT NULL, lat DECIMAL, long DECIMAL,
    PRIMARY KEY (city, ride_id, "timestamp"))""",
    "CREATE TABLE dogs (id INT PRIMARY KEY, good_boy BOOL)",
)

LAMP = "32856ed8-34d3-45a3-a449-412bdeaa277c"
LAMP_ROW = (
    '{"category": "Home & Garden", "created_at": "2025-04-01T17:55:46.812942", "description": '
    f'"Of brass", "id": "{LAMP}", "in_stock": true, '
    '"name": "Lamp", "price": 2%s.30}'
)
MAKE_LAMP = (
    f"INSERT INTO products VALUES ('{LAMP}', 'Lamp', 'Of brass', 22.30, true, 'Home & Garden', "
    "'2025-04-01 17:55:46.812942')"
)
RIDE = (
    '{"city": "seattle", "end_address": null, "end_time": null, '
    '"id": "f6c02fe0-a4e0-476d-a3b7-91934d15dce2", "revenue": 25.00, '
    '"rider_id": "14067022-6e9b-427b-bd74-5ef48e93da1f", "start_address": "%s Mill Lane", '
    '"start_time": "2023-06-02T15:14:20.790155", "vehicle_city": "seattle", '
    '"vehicle_id": "55555555-5555-4400-8000-000000000005"}'
)
SCOOTER = "68ee1f95-3137-48e2-8ce3-34ac2d18c7c8"
MAKE_SCOOTER = (
    f"INSERT INTO vehicles VALUES ('{SCOOTER}', 'seattle', 'scooter', "
    "'570a3d70-a3d7-4c00-8000-000000000011', '2019-01-02 03:04:05', 'in_use', "
    """'7 Mill Lane', '{"color": "yellow"}')"""
)
SCOOTER_ROW = (
    '"city": "seattle", "creation_time": "2019-01-02T03:04:05", "current_location": '
    f'"7 Mill Lane", "ext": {{"color": "yellow"}}, "id": "{SCOOTER}", "owner_id": '
    '"570a3d70-a3d7-4c00-8000-000000000011", "status": "in_use"'
)
SOURCE = (
    '{"changefeed_sink": "sinkless buffer", "cluster_id": "CLUSTER", "cluster_name": "", '
    '"database_name": "defaultdb", "db_version": "VERSION", "job_id": "0"%s, "node_id": "1", '
    '"node_name": "", "origin": "tailrace", "primary_keys": ["id"], "schema_name": "public", '
    '"source_node_locality": "", "table_name": "products"%s}'
)


def struct(name: str, fields: str, optional: str = "false", field: str = "") -> str:
    """A schema of fields; `field` is its name within another."""
    named = f'"field": "{field}", ' if field else ""
    return (
        f'{{{named}"fields": [{fields}], "name": "{name}", "optional": {optional}, '
        '"type": "struct"}'
    )


LAMP_FIELDS = """{"field": "id", "optional": false, "type": "string"},
    {"field": "name", "optional": false, "type": "string"},
    {"field": "description", "optional": true, "type": "string"},
    {"field": "price", "name": "decimal", "optional": false,
     "parameters": {"precision": "10", "scale": "2"}, "type": "float64"},
    {"field": "in_stock", "optional": true, "type": "boolean"},
    {"field": "category", "optional": true, "type": "string"},
    {"field": "created_at", "name": "timestamp", "optional": true, "type": "string"}"""
BEFORE = struct("products.before.value", LAMP_FIELDS, "true", "before")
AFTER = struct("products.after.value", LAMP_FIELDS, "false", "after")
KEY = struct("products.key", '{"field": "id", "optional": false, "type": "string"}', "false", "key")
OF_SOURCE = struct(
    "cockroachdb.source",
    """{"field": "changefeed_sink", "optional": false, "type": "string"},
    {"field": "cluster_id", "optional": false, "type": "string"},
    {"field": "cluster_name", "optional": false, "type": "string"},
    {"field": "database_name", "optional": false, "type": "string"},
    {"field": "db_version", "optional": false, "type": "string"},
    {"field": "job_id", "optional": false, "type": "string"},
    {"field": "mvcc_timestamp", "optional": true, "type": "string"},
    {"field": "node_id", "optional": false, "type": "string"},
    {"field": "node_name", "optional": false, "type": "string"},
    {"field": "origin", "optional": false, "type": "string"},
    {"field": "primary_keys", "items": {"optional": false, "type": "string"},
     "optional": false, "type": "array"},
    {"field": "schema_name", "optional": false, "type": "string"},
    {"field": "source_node_locality", "optional": false, "type": "string"},
    {"field": "table_name", "optional": false, "type": "string"},
    {"field": "ts_hlc", "optional": true, "type": "string"},
    {"field": "ts_ns", "optional": true, "type": "int64"}""",
    "true",
    "source",
)


def with_schema(payload: str, *structs: str) -> str:
    fields = (
        ", ".join(structs)
        + """, {"field": "ts_ns", "optional": false, "type": "int64"},
        {"field": "op", "optional": false, "type": "string"}"""
    )
    return f'{{"payload": {payload}, "schema": {struct("cockroachdb.envelope", fields)}}}'


FULL = [
    f'{{"after": {LAMP_ROW % now}, "before": {before}, "key": {{"id": "{LAMP}"}}, '
    f'"op": "{op}", "source": '
    f"""{SOURCE % (', "mvcc_timestamp": "TS"', ', "ts_hlc": "TS", "ts_ns": "NS"')}, """
    '"ts_ns": "NS"}'
    for now, before, op in ((2, "null", "c"), (6, LAMP_ROW % 2, "u"))
]

EXAMPLES = [
    Example(
        page=MESSAGES, heading="Responses",
        sql=["INSERT INTO office_dogs VALUES (1, 'Rex')",
             "DELETE FROM office_dogs WHERE name = 'Rex'"],
        feed="FOR TABLE office_dogs",
        printed=['[1] {"after": {"id": 1, "name": "Rex"}}', '[1] {"after": null}'],
        into=["", "kafka"],
    ),
    Example(
        page=MESSAGES, heading="wrapped and diff (Kafka; the page prints the key without asking)",
        sql=["INSERT INTO rides VALUES ('f6c02fe0-a4e0-476d-a3b7-91934d15dce2', 'seattle', "
             "'seattle', '14067022-6e9b-427b-bd74-5ef48e93da1f', "
             "'55555555-5555-4400-8000-000000000005', '5 Mill Lane', NULL, "
             "'2023-06-02 15:14:20.790155', NULL, 25.00)",
             "UPDATE rides SET start_address = '2 Mill Lane'"],
        feed="FOR TABLE rides WITH diff, envelope = wrapped, key_in_value",
        printed=[f'{{"after": {after}, "before": {before}, '
                 '"key": ["seattle", "f6c02fe0-a4e0-476d-a3b7-91934d15dce2"]}'
                 for after, before in ((RIDE % 5, "null"), (RIDE % 2, RIDE % 5))],
        into=["", "kafka"],
    ),
    Example(
        page=MESSAGES, heading="Per-key ordering",
        sql=["INSERT INTO employees VALUES (1, 'Ann', 'new york city')",
             "UPDATE employees SET name = 'Anne' WHERE id = 1"],
        feed="FOR TABLE employees WITH updated, key_in_value",
        printed=[
            '{"after": {"id": 1, "name": "Ann", '
            '"office": "new york city"}, "key": [1], "updated": "TS"}',
            '{"after": {"id": 1, "name": "Anne", '
            '"office": "new york city"}, "key": [1], "updated": "TS"}',
        ],
    ),
    Example(
        page=MESSAGES, heading="Delete messages",
        sql=["INSERT INTO employees VALUES (5, 'Bob', 'london')",
             "DELETE FROM employees WHERE id = 5"],
        feed="FOR TABLE employees",
        printed=['{"after": {"id": 5, "name": "Bob", "office": "london"}}',
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
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="Route events based on operation type; enriched",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", "ts_ns": "NS"}}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="Preserve the origin of data",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = source",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", "source": {SOURCE % ("", "")}, '
                 '"ts_ns": "NS"}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="enriched, with source and updated",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = source, updated",
        printed=[f'{{"after": {LAMP_ROW % 2}, "op": "c", '
                 f'''"source": {SOURCE % ("", ', "ts_hlc": "TS", '
                 '"ts_ns": "NS"')}, "ts_ns": "NS"}}'''],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="Add envelope schema fields",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = schema",
        printed=[with_schema(f'{{"after": {LAMP_ROW % 2}, "op": "c", "ts_ns": "NS"}}', AFTER)],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="enriched, with source and schema",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = 'source,schema'",
        printed=[with_schema(f'{{"after": {LAMP_ROW % 2}, "op": "c", '
                             f'"source": {SOURCE % ("", "")}, "ts_ns": "NS"}}', AFTER, OF_SOURCE)],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="Enable full-fidelity message envelopes; payload, enriched",
        sql=[MAKE_LAMP, f"UPDATE products SET price = 26.30 WHERE id = '{LAMP}'"],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = 'source,schema', "
             "diff, mvcc_timestamp, updated, key_in_value",
        printed=[with_schema(full, BEFORE, AFTER, OF_SOURCE, KEY) for full in FULL],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="payload with enriched envelope",
        sql=[MAKE_LAMP],
        feed="FOR TABLE products WITH envelope = enriched, enriched_properties = 'source,schema', "
             "diff, mvcc_timestamp, updated",
        printed=[with_schema(FULL[0], BEFORE, AFTER, OF_SOURCE, KEY)],
        into=["webhook"],
    ),
    Example(
        page=ENVELOPES, heading="wrapped, into cloud storage",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH envelope = wrapped",
        printed=[f'{{"after": {{{SCOOTER_ROW}, "type": "scooter"}}, '
                 f'"key": ["seattle", "{SCOOTER}"]}}'],
        into=["files"],
    ),
    Example(
        page=ENVELOPES, heading="wrapped, into Kafka with key_in_value",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH key_in_value",
        printed=[f'{{"after": {{{SCOOTER_ROW}, "type": "scooter"}}, '
                 f'"key": ["seattle", "{SCOOTER}"]}}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="wrapped, into Kafka",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles",
        printed=[f'{{"after": {{{SCOOTER_ROW}, "type": "scooter"}}}}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="bare, into cloud storage",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH envelope = bare",
        printed=[f'{{"__crdb__": {{"key": ["seattle", "{SCOOTER}"]}}, '
                 f'{SCOOTER_ROW}, "type": "scooter"}}'],
        into=["files"],
    ),
    Example(
        page=ENVELOPES, heading="bare, of a CDC query",
        sql=[MAKE_SCOOTER],
        feed="AS SELECT city, type FROM vehicles",
        printed=['{"city": "seattle", "type": "scooter"}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="bare, of a CDC query with topic_in_value",
        sql=[MAKE_SCOOTER],
        feed="WITH topic_in_value AS SELECT city, type FROM vehicles",
        printed=['{"__crdb__": {"topic": "vehicles"}, "city": "seattle", "type": "scooter"}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="key_only",
        sql=["INSERT INTO users VALUES ('fff726cc-13b3-475f-ad92-a21cafee5d3f', 'seattle')"],
        feed="FOR TABLE users WITH envelope = key_only",
        printed=['["seattle", "fff726cc-13b3-475f-ad92-a21cafee5d3f"] '],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="row",
        sql=[MAKE_SCOOTER],
        feed="FOR TABLE vehicles WITH envelope = row",
        printed=[f'{{{SCOOTER_ROW}, "type": "scooter"}}'],
        into=["", "kafka"],
    ),
    Example(
        page=ENVELOPES, heading="payload: the messages in it",
        sql=["INSERT INTO foo VALUES (1, 'a')", "UPDATE foo SET b = 'b'"],
        feed="FOR TABLE foo",
        printed=['{"after": {"a": 1, "b": "a"}, "key": [1], "topic": "foo"}',
                 '{"after": {"a": 1, "b": "b"}, "key": [1], "topic": "foo"}'],
        into=["webhook"],
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
             "'Ada')"],
        feed="WITH updated AS SELECT name, city FROM users",
        printed=['{"__crdb__": {"updated": "TS"}, "city": "amsterdam", "name": "Ada"}'],
        into=["", "kafka"],
    ),
    Example(
        page=QUERIES, heading="Capture delete messages",
        sql=["INSERT INTO users VALUES ('49a8c43d-8ed8-4d50-ad99-fb314cbe20a1', 'washington dc', "
             "'Grace', '9 Mill Lane', '1234')",
             "DELETE FROM users WHERE city = 'washington dc'"],
        feed="WITH envelope = 'wrapped', format = 'json', diff AS "
             "SELECT * FROM users WHERE event_op() = 'delete'",
        printed=['["washington dc", "49a8c43d-8ed8-4d50-ad99-fb314cbe20a1"] {"after": null, '
                 '"before": {"address": "9 Mill Lane", '
                 '"city": "washington dc", "credit_card": "1234", '
                 '"id": "49a8c43d-8ed8-4d50-ad99-fb314cbe20a1", "name": "Grace"}}'],
    ),
    Example(
        page=QUERIES, heading="Determine the age of a row (the timestamp that it is made of)",
        sql=["INSERT INTO dogs VALUES (1, true)"],
        feed="AS SELECT crdb_internal_mvcc_timestamp AS age FROM dogs",
        printed=['{"age": "TS"}'],
        into=["", "kafka"],
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
        feed="AS SELECT *, owner_id::string || ' goes by ' || type || "
             "', and is ' || status AS summary FROM vehicles",
        printed=[f'{{{SCOOTER_ROW}, '
                 f'"summary": "570a3d70-a3d7-4c00-8000-000000000011 goes '
                 'by scooter, and is in_use", "type": "scooter"}'],
    ),
    Example(
        page=QUERIES, heading="Queries and the outbox pattern",
        sql=["INSERT INTO dogs VALUES (1, true)"],
        feed="AS SELECT event_schema_timestamp()::int AS event_timestamp, 'dogs' AS table, "
             "event_op() AS type, jsonb_build_object('good_boy', good_boy) AS data FROM dogs",
        printed=['{"data": {"good_boy": true}, "event_timestamp": "NS", "table": "dogs", '
                 '"type": "upsert"}'],
        into=["", "kafka"],
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
    text = re.sub(r'("?)\b\d{19}\.\d{10}\1', '"TS"', text)
    text = re.sub(r'"(ts_ns|event_timestamp)": ?\d{19}', r'"\1": "NS"', text)
    text = re.sub(r'"(cluster_id|db_version)": ?"[^"]+"', _name, text)
    return json.loads(text, object_pairs_hook=_fields, parse_float=Decimal, parse_int=Decimal)


def _name(match: re.Match[str]) -> str:
    named = {"cluster_id": "CLUSTER", "db_version": "VERSION"}
    return f'"{match[1]}": "{named[match[1]]}"'


def _fields(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The fields in order; of the schema of a source, which the page prints in any, by name."""
    if ("name", "cockroachdb.source") in pairs:
        return [(name, sorted(value) if name == "fields" else value) for name, value in pairs]
    return pairs


FEED = re.compile(r"(FOR TABLE \w+)? ?(?:WITH (.*?))? ?(AS SELECT .*)?")


async def now(database: AsyncDatabase) -> str:
    ((at,),) = (await database.sql("SELECT cluster_logical_timestamp()::STRING")).fetchall()
    return str(at)


async def statement(database: AsyncDatabase, example: Example, uri: str) -> str:
    """Makes the changes: CREATE CHANGEFEED of these alone, which comes to its end."""
    began = await now(database)
    for sql in example.sql:
        await database.sql(sql)
    found = FEED.fullmatch(example.feed)
    assert found is not None, example.feed
    target, options, query = found.groups()
    into = f"INTO '{uri}'" if uri else ""
    times = f"cursor = '{began}', end_time = '{await now(database)}'"
    given = f"WITH {times}, {options}" if options else f"WITH {times}"
    return f"CREATE CHANGEFEED {target or ''} {into} {given} {query or ''}"


async def streamed(database: AsyncDatabase, feed: str) -> list[tuple[str, str, str]]:
    """Tables, keys and values of the rows of a feed without a sink."""
    session = database.node.session()
    result = (await session.execute(feed))[-1]
    assert result.stream is not None, feed
    async with asyncio.timeout(30):
        rows = [row async for row in result.stream]
    await session.close()
    return [(str(table), bytes(key).decode(), bytes(value).decode()) for table, key, value in rows]  # type: ignore[arg-type]


async def ended(database: AsyncDatabase, feed: str) -> int:
    """Runs a feed into a sink to its end: the id of its job."""
    ((job_id,),) = (await database.sql(feed)).fetchall()
    assert isinstance(job_id, int), job_id
    async with asyncio.timeout(60):
        await database.sql(f"SHOW JOB WHEN COMPLETE {job_id}")
    return job_id


def equal(example: Example, told: Sequence[tuple[str | None, str]], source: str = "") -> None:
    """Whether keys (where the page has them) and values are those of the page."""
    where = f"{example.page}: {example.heading}"
    assert len(told) == len(example.printed), (where, told)
    for (key, value), printed in zip(told, example.printed, strict=True):
        keyed = re.fullmatch(r"(\[[^{]*?\]) (.*)", printed, re.DOTALL)
        if keyed is not None:
            assert key is not None and values(key) == values(keyed[1]), where
        text = printed if keyed is None else keyed[2]
        text = text.replace('"sinkless buffer"', source) if source else text
        assert (values(value) if value else "") == (values(text) if text else ""), where


async def emptied(database: AsyncDatabase) -> None:
    for table in TABLES:
        await database.sql(f"DELETE FROM {table.split()[2]} WHERE true")


def test_messages_without_a_sink(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for example in EXAMPLES:
            if "" in example.into:
                rows = await streamed(database, await statement(database, example, ""))
                assert {table for table, _, _ in rows} == {table_of(example)}
                equal(example, [(key, value) for _, key, value in rows])
                await emptied(database)

    run(tmp_path, scenario)


def table_of(example: Example) -> str:
    found = re.search(r"(?:TABLE|FROM) (\w+)", example.feed)
    assert found is not None, example.feed
    return found[1]


def test_messages_into_kafka(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for example in EXAMPLES:
            if "kafka" in example.into:
                with MockCluster(brokers=1) as cluster:
                    told = await _records(database, example, cluster.addresses)
                equal(example, told, source='"kafka"')
                await emptied(database)

    run(tmp_path, scenario)


async def _records(
    database: AsyncDatabase, example: Example, brokers: str
) -> list[tuple[str | None, str]]:
    feed = await statement(database, example, f"kafka://{brokers}")
    job_id = await ended(database, feed)
    count = len(example.printed)
    records = await asyncio.to_thread(
        read, brokers, table_of(example), lambda found: len(found) >= count
    )
    told = [((each.key or b"").decode(), (each.raw or b"").decode()) for each in records]
    return [(key, value.replace(f'"{job_id}"', '"0"')) for key, value in told]


def test_messages_into_files(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for number, example in enumerate(EXAMPLES):
            if "files" in example.into:
                uri = f"nodelocal://self/e{number}"
                await ended(database, await statement(database, example, uri))
                folder = tmp_path / "data" / "mirrors" / f"e{number}"
                paths = sorted(folder.rglob("*.ndjson"))
                lines = [line for path in paths for line in path.read_text().splitlines()]
                equal(example, [(None, line) for line in lines])
                await emptied(database)

    run(tmp_path, scenario)


def test_messages_into_webhooks(tmp_path: Path) -> None:
    async def scenario(database: AsyncDatabase) -> None:
        for setting in ("private_addresses", "insecure_http"):
            await database.sql(f"SET CLUSTER SETTING changefeed.webhook.{setting}.enabled = true")
        for example in EXAMPLES:
            if "webhook" in example.into:
                with WebhookReceiver() as receiver:
                    uri = f"webhook-http://{receiver.address}"
                    job_id = await ended(database, await statement(database, example, uri))
                told: list[tuple[None, str]] = []
                for body in receiver.bodies:
                    document = json.loads(body)
                    assert list(document) == ["payload", "length"]
                    assert document["length"] == len(document["payload"])
                    told += [(None, json.dumps(each)) for each in document["payload"]]
                texts = [(key, value.replace(f'"{job_id}"', '"0"')) for key, value in told]
                equal(example, texts, source='"webhook"')
                await emptied(database)

    run(tmp_path, scenario)


def test_lines_of_csv(tmp_path: Path) -> None:
    """Changefeed Messages: CSV, the columns in the order of the table."""

    async def scenario(database: AsyncDatabase) -> None:
        row = ["4ccccccc-cccc-4c00-8000-00000000000f", "washington dc", "Ada", "9 Mill Lane", "1"]
        await database.sql(f"INSERT INTO users VALUES ({', '.join(map(repr, row))})")
        feed = "CREATE CHANGEFEED FOR TABLE users WITH format = csv, initial_scan = 'only'"
        assert list(csv.reader(value for _, _, value in await streamed(database, feed))) == [row]

    run(tmp_path, scenario)


@pytest.mark.parametrize("policy", ["backfill", "nobackfill"])
def test_schema_changes_with_column_backfill(tmp_path: Path, policy: str) -> None:
    """Changefeed Messages: Schema changes with column backfill."""
    rows = [(1, "Rex"), (2, "Ben"), (3, "Max")]

    async def scenario(database: AsyncDatabase) -> None:
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
