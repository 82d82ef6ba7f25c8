"""An image that was brought up to date holds the rows as they are then, in key order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest

from tailrace.catalog.descriptors.descriptor import Column
from tailrace.catalog.rows.row_codec import codec_for
from tailrace.catalog.values.column_types import ColumnType, Datum
from tailrace.catalog.values.type_kinds import TypeKind
from tailrace.kvlayer.clock import Timestamp
from tailrace.sql.execute.columnar_cache import image as images
from tailrace.sql.execute.columnar_cache.image import Image, ImageBuilder
from tests.harness.descriptors import KEY, VALUE, table

KINDS = (TypeKind.UUID, TypeKind.TIMESTAMPTZ, TypeKind.INT4, TypeKind.BOOL)
EXTRA = tuple(
    Column(id=number, name=kind.value, type=ColumnType(kind))
    for number, kind in enumerate(KINDS, start=3)
)
WIDE = table(columns=(KEY, VALUE, *EXTRA))


def row(key: int, note: str) -> tuple[Datum, ...]:
    return (key, note, UUID(int=key), None, key % 7, None)


def built(keys: list[int]) -> Image:
    async def build() -> Image:
        builder = ImageBuilder(WIDE)
        encode = codec_for(WIDE).encode_row
        for start in range(0, len(keys), 10):
            await builder.add([encode(row(key, "old")) for key in keys[start : start + 10]])
        return await builder.finish(Timestamp(100))

    return asyncio.run(build())


def notes(image: Image) -> list[tuple[Datum, ...]]:
    columns = image.table((0, 1, 2)).columns
    return list(zip(*[column.to_pylist() for column in columns], strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_changes_are_merged_in_key_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "CHUNK_ROWS", 40)
    monkeypatch.setattr(images, "_CHUNK_ROWS_MAX", 80)
    random = Random(seed)
    encode = codec_for(WIDE).encode_row
    model = dict.fromkeys(sorted(random.sample(range(500), random.randrange(200))), "old")
    image = built(list(model))
    for step in range(15):
        changes: dict[bytes, bytes | None] = {}
        for key in random.sample(range(500), random.choice((1, 3, 20, 200))):
            encoded, body = encode(row(key, f"step {step}"))
            kept = random.random() < (0.2 if step > 7 else 0.7)
            changes[encoded] = body if kept else None
            if kept:
                model[key] = f"step {step}"
            else:
                model.pop(key, None)
        image = asyncio.run(image.changed(changes, Timestamp(101 + step)))
        assert notes(image) == [(k, model[k], UUID(int=k)) for k in sorted(model)], (seed, step)
        assert all(0 < chunk.rows.num_rows <= 80 for chunk in image.chunks)
        assert image.row_count == len(model)


def test_chunks_without_changes_are_shared() -> None:
    image = built(list(range(40_000)))
    key, body = codec_for(WIDE).encode_row(row(20_000, "new"))
    later = asyncio.run(image.changed({key: body}, Timestamp(101)))
    shared = [chunk for chunk in later.chunks if chunk in image.chunks]
    assert len(shared) == len(image.chunks) - 1 > 0
    assert notes(image)[20_000][1] == "old", "an image never changes"


def test_only_readers_of_its_version_are_served() -> None:
    image = built([1])
    assert image.serves(WIDE)
    assert not image.serves(replace(WIDE, version=WIDE.version + 1))
    assert not image.serves(replace(WIDE, id=105))
