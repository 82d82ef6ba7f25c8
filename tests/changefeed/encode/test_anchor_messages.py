"""Messages have the shape of those that CockroachDB's pages print, of one table and its changes.

From "Changefeed Message Envelope" (v25.2): the messages of `diff`, `envelope=enriched` and of
`enriched_properties`. The values are our own, and `source.origin` is tailrace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.encode import FeedOrigin, Topics, encoder_for
from tailrace.kvlayer.clock import timestamp_at

TYPES = {
    "id": ColumnType(TypeKind.UUID),
    "name": ColumnType(TypeKind.STRING),
    "description": ColumnType(TypeKind.STRING),
    "price": ColumnType(TypeKind.DECIMAL, 10, 2),
    "in_stock": ColumnType(TypeKind.BOOL),
    "created_at": ColumnType(TypeKind.TIMESTAMP),
}
REQUIRED = ("id", "name", "price")
PRODUCTS = TableDescriptor(
    id=104,
    name="products",
    database_id=2,
    schema_id=3,
    columns=tuple(
        Column(id=number, name=name, type=type, nullable=name not in REQUIRED)
        for number, (name, type) in enumerate(TYPES.items(), 1)
    ),
    primary_key=(1,),
    next_column_id=len(TYPES) + 1,
)
ID = "8320b051-3ff7-4aa8-9708-78142fde7e31"
AT = timestamp_at(unix_us=1_747_243_394_200_039)


def row(price: str) -> tuple[Datum, ...]:
    created = datetime(2025, 4, 1, 17, 55, 46, 812_900)
    return (UUID(ID), "Mug", "Of clay", Decimal(price), True, created)


def shown(price: float) -> dict[str, Any]:
    return {
        "created_at": "2025-04-01T17:55:46.8129",
        "description": "Of clay",
        "id": ID,
        "in_stock": True,
        "name": "Mug",
        "price": price,
    }


def message(
    after: tuple[Datum, ...] | None, before: tuple[Datum, ...] | None, **options: str | None
) -> tuple[Any, Any]:
    """Key and value of one change, as JSON."""
    origin = FeedOrigin(
        sink="kafka",
        cluster_id="c",
        job_id=7,
        node_id=1,
        version="v1",
        unix_us=lambda: 1_747_243_394_886_231,
    )
    topics = Topics(full_names={104: "test.public.products"})
    key = codec_for(PRODUCTS).encode_key((UUID(ID),))
    batch = ChangeBatch(
        descriptor=PRODUCTS,
        kind=ChangeKind.LIVE,
        keys=[key],
        timestamps=[AT],
        rows=[after],
        previous=[before],
    )
    encoded = encoder_for(parse_options(options), topics, origin).encode(batch)
    assert encoded.values[0] is not None
    return json.loads(encoded.keys[0]), json.loads(encoded.values[0])


def fields(field: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    return [(each["field"], each["type"], each["optional"]) for each in field["fields"]]


def test_diff() -> None:
    assert message(row("26.30"), row("22.30"), diff=None) == (
        [ID],
        {"after": shown(26.3), "before": shown(22.3)},
    )
    assert message(row("26.30"), None, diff=None)[1] == {"after": shown(26.3), "before": None}


def test_operations() -> None:
    now = 1_747_243_394_886_231_000
    key, inserted = message(row("1.50"), None, envelope="enriched")
    assert key == {"id": ID}
    assert inserted == {"after": shown(1.5), "op": "c", "ts_ns": now}
    _, updated = message(row("1.50"), row("1.00"), envelope="enriched")
    assert updated == {"after": shown(1.5), "op": "u", "ts_ns": now}
    _, deleted = message(None, row("1.00"), envelope="enriched", diff=None)
    assert deleted == {"after": None, "before": shown(1.0), "op": "d", "ts_ns": now}
    assert list(deleted) == ["after", "before", "op", "ts_ns"]


def test_source() -> None:
    _, value = message(row("1.50"), None, envelope="enriched", enriched_properties="source")
    assert value["source"] == {
        "changefeed_sink": "kafka",
        "cluster_id": "c",
        "cluster_name": "",
        "database_name": "test",
        "db_version": "v1",
        "job_id": "7",
        "node_id": "1",
        "node_name": "",
        "origin": "tailrace",
        "primary_keys": ["id"],
        "schema_name": "public",
        "source_node_locality": "",
        "table_name": "products",
    }


def test_schema() -> None:
    key, value = message(row("1.50"), None, envelope="enriched", enriched_properties="schema")
    assert value["payload"]["after"] == shown(1.5)
    schema = value["schema"]
    assert (schema["name"], schema["optional"], schema["type"]) == (
        "cockroachdb.envelope",
        False,
        "struct",
    )
    after, *rest = schema["fields"]
    assert after["name"] == "products.after.value"
    assert fields(after) == [
        ("id", "string", False),
        ("name", "string", False),
        ("description", "string", True),
        ("price", "float64", False),
        ("in_stock", "boolean", True),
        ("created_at", "string", True),
    ]
    assert after["fields"][3] == {
        "field": "price",
        "name": "decimal",
        "optional": False,
        "parameters": {"precision": "10", "scale": "2"},
        "type": "float64",
    }
    assert after["fields"][5]["name"] == "timestamp"
    assert rest == [
        {"field": "ts_ns", "optional": False, "type": "int64"},
        {"field": "op", "optional": False, "type": "string"},
    ]
    assert key == {
        "payload": {"id": ID},
        "schema": {
            "fields": [{"field": "id", "optional": False, "type": "string"}],
            "name": "products.key",
            "optional": False,
            "type": "struct",
        },
    }


def test_full_fidelity() -> None:
    _, value = message(
        row("1.50"),
        row("1.00"),
        envelope="enriched",
        enriched_properties="source,schema",
        diff=None,
        mvcc_timestamp=None,
        updated=None,
        key_in_value=None,
    )
    payload = value["payload"]
    assert list(payload) == ["after", "before", "key", "op", "source", "ts_ns"]
    assert payload["key"] == {"id": ID}
    assert payload["source"]["ts_ns"] == 1_747_243_394_200_039_000
    assert payload["source"]["ts_hlc"] == "1747243394200039000.0000000000"
    assert payload["source"]["mvcc_timestamp"] == payload["source"]["ts_hlc"]
    names = [field["field"] for field in value["schema"]["fields"]]
    assert names == ["before", "after", "source", "key", "ts_ns", "op"]
    told = {field for field, _, _ in fields(value["schema"]["fields"][2])}
    assert told == set(payload["source"])
