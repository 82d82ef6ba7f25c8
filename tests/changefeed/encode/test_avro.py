"""Messages in Avro are those of the golden files, read back by fastavro with the schema alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from io import BytesIO, StringIO
from typing import Any

import fastavro
import pytest

from tailrace.catalog.descriptors.descriptor import Column, TableDescriptor
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import ColumnType
from tailrace.catalog.values.errors import SQLError
from tailrace.catalog.values.interval import Interval
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.changefeed.contract.changes import ChangeBatch, ChangeKind
from tailrace.changefeed.contract.options import parse_options
from tailrace.changefeed.encode import RegisteringEncoder, encoder_for
from tailrace.changefeed.encode.avro_types import avro_name, writer_of
from tests.changefeed.encode.test_json import GOLDEN, TABLE, TOPICS, TS, batch

AVRO = {"format": "avro", "confluent_schema_registry": "https://registry"}
CASES: dict[str, dict[str, str | None]] = {
    "wrapped": {},
    "wrapped-full": {
        "diff": None,
        "updated": None,
        "mvcc_timestamp": None,
        "avro_schema_prefix": "shop_",
    },
    "bare": {"envelope": "bare", "updated": None},
    "key_only": {"envelope": "key_only"},
}


class Registry:
    """Gives ids, and reads messages by them."""

    def __init__(self, **options: str | None) -> None:
        encoder = encoder_for(parse_options({**AVRO, **options}), TOPICS)
        assert isinstance(encoder, RegisteringEncoder)
        self.encoder = encoder
        self.schemas: dict[int, Any] = {}
        self.lines: list[str] = []

    def encoded(self, changes: ChangeBatch) -> list[tuple[Any, Any]]:
        self._give(self.encoder.schemas(changes))
        found = self.encoder.encode(changes)
        return [
            (self.read(key), None if value is None else self.read(value))
            for key, value in zip(found.keys, found.values, strict=True)
        ]

    def resolved(self, topic: str) -> Any:
        self._give(self.encoder.resolved_schemas(topic))
        return self.read(self.encoder.encode_resolved(topic, TS[1]))

    def read(self, message: bytes) -> Any:
        assert message[0] == 0
        schema = self.schemas[int.from_bytes(message[1:5], "big")]
        body = BytesIO(message[5:])
        found = fastavro.schemaless_reader(body, schema, None)
        assert not body.read()
        return found

    def _give(self, schemas: Any) -> None:
        for schema in schemas:
            if schema.id is None:
                schema.id = len(self.schemas) + 1
                self.schemas[schema.id] = fastavro.parse_schema(json.loads(schema.text))
                self.lines.append(f"{schema.subject} {schema.text}")


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
@pytest.mark.parametrize("name", CASES)
def test_records_equal_the_golden_file(name: str, columnar: bool) -> None:
    registry = Registry(**CASES[name])
    messages = registry.encoded(batch(columnar=columnar))[-5:]
    resolved = registry.resolved("eu_every thing")
    lines = [*registry.lines, *(f"{key} {value}" for key, value in messages), f"{resolved}"]
    path = GOLDEN / f"avro-{name}.txt"
    text = "\n".join(lines) + "\n"
    if os.environ.get("TAILRACE_REWRITE"):
        path.write_text(text)
    assert text == path.read_text()


def dogs_changes() -> ChangeBatch:
    """A row, and its deletion."""
    types = {"id": TypeKind.INT8, "name": TypeKind.STRING}
    dogs = TableDescriptor(
        id=1,
        name="office_dogs",
        database_id=2,
        schema_id=3,
        columns=tuple(
            Column(id=number, name=name, type=ColumnType(kind), nullable=name != "id")
            for number, (name, kind) in enumerate(types.items(), 1)
        ),
        primary_key=(1,),
        next_column_id=3,
    )
    return ChangeBatch(
        descriptor=dogs,
        kind=ChangeKind.LIVE,
        keys=[codec_for(dogs).encode_key((1,))] * 2,
        timestamps=[TS[0], TS[1]],
        rows=[(1, "Rex"), None],
        previous=[None, (1, "Rex")],
    )


def test_records_of_the_anchors_page() -> None:
    """Changefeed Messages (v24.3), Responses: as Avro's own JSON, with each union's branch."""
    registry = Registry()
    (key, made), (same, gone) = registry.encoded(dogs_changes())
    of_key, of_value = registry.schemas.values()
    assert in_json(of_key, key) == in_json(of_key, same) == '{"id": {"long": 1}}'
    record = '{"id": {"long": 1}, "name": {"string": "Rex"}}'
    assert in_json(of_value, made) == f'{{"after": {{"office_dogs": {record}}}}}'
    assert in_json(of_value, gone) == '{"after": null}'


def test_a_column_is_the_record_of_the_key() -> None:
    registry = Registry(key_column="name", unordered=None)
    (key, _), (of_deletion, _) = registry.encoded(dogs_changes())
    of_key, _ = registry.schemas.values()
    assert in_json(of_key, key) == in_json(of_key, of_deletion) == '{"name": {"string": "Rex"}}'


def in_json(schema: Any, record: Any) -> str:
    found = StringIO()
    fastavro.json_writer(found, schema, [record])
    return found.getvalue()


def test_schemas_are_registered_once_for_a_version() -> None:
    registry = Registry()
    changes = batch(columnar=False)
    registry.encoded(changes)
    known = len(registry.schemas)
    registry.encoded(changes)
    assert len(registry.schemas) == known == 2
    registry.encoded(replace(changes, descriptor=replace(TABLE, version=TABLE.version + 1)))
    assert len(registry.schemas) == 4


@pytest.mark.parametrize(
    ("months", "days", "microseconds", "text"),
    [
        (0, 0, 0, "PT0S"),
        (14, 3, 4 * 3_600_000_000 + 5 * 60_000_000 + 6_500_000, "P1Y2M3DT4H5M6.5S"),
        (-1, 2, -500_000, "P-1M2DT-0.5S"),
        (0, 0, -3_661_000_000, "PT-1H-1M-1S"),
    ],
)
def test_intervals_are_of_iso_8601(months: int, days: int, microseconds: int, text: str) -> None:
    write = writer_of(ColumnType(TypeKind.INTERVAL))
    assert write is not None
    assert write(Interval(months=months, days=days, microseconds=microseconds)) == text


def test_names_are_avros() -> None:
    assert avro_name("1 a-ü") == "_u0031__u0020_a_u002d__u00fc_"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"confluent_schema_registry": "https://h"}, "goes with format = 'avro'"),
        ({**AVRO, "envelope": "row"}, "no envelope row"),
        ({**AVRO, "envelope": "enriched"}, "goes with format = 'json'"),
        ({**AVRO, "key_in_value": None}, "does not go with format = 'avro'"),
        ({**AVRO, "avro_schema_prefix": "a-b"}, "letters, digits"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, str | None], words: str) -> None:
    with pytest.raises(SQLError, match=words):
        parse_options(options)
