"""RESTORE KEYSPACE of folders that somebody has made, whose digests are right."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tailrace.changefeed.backup import BackupFile
from tailrace.changefeed.backup.folder import READ_BYTES, read_part
from tailrace.changefeed.backup.keyspace_backup import SCHEMA
from tests.api.test_keyspace_backups import Bench, bench

Manifest = dict[str, Any]
AT = 700_000_000_000_000_000
ROW: dict[str, object] = {"key": b"k", "value": b"v", "expires_at": None, "timestamp": AT}


def parquet(*rows: dict[str, object], schema: pa.Schema = SCHEMA) -> bytes:
    written = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=schema), written)
    return written.getvalue()


def named(name: str) -> Callable[[Manifest], None]:
    return lambda manifest: manifest["files"][0].update(name=name)


MANIFESTS = {
    "NUL in a name": named("a\0b"),
    "a name that leads out": named("../0001.parquet"),
    "the folder around it": named(".."),
    "no name": named(""),
    "a table's descriptor": lambda manifest: manifest.update(descriptor="AAAA"),
    "a store that cannot be": lambda manifest: manifest.update(store_id="x" * 1000),
    "before all time": lambda manifest: manifest.update(upto=-5),
    "after all time": lambda manifest: manifest.update(upto=10**30),
    "other counts": lambda manifest: manifest["files"][0].update(rows=10**30),
}
FILES = {
    "no Parquet": b"hello",
    "other columns": parquet({"a": 1}, schema=pa.schema([("a", pa.int64())])),
    "other types": parquet(
        ROW | {"timestamp": "x"}, schema=SCHEMA.set(3, pa.field("timestamp", pa.string()))
    ),
    "nulls": parquet(ROW | {"key": None}, schema=pa.schema([(f.name, f.type) for f in SCHEMA])),
    "a time before all": parquet(ROW | {"timestamp": -1}),
    "a time above the backup's": parquet(ROW | {"timestamp": 1 << 62}),
    "an end before all": parquet(ROW | {"expires_at": -1}),
}


async def craft(on: Bench, change: Callable[[Manifest], None], part: bytes | None) -> None:
    """Makes the folder `b` of the bench another backup."""
    await on.keyspace.put(b"a", b"1")
    await on.back_up()
    manifest = json.loads((on.folder / "BACKUP.json").read_text())["manifest"]
    if part is not None:
        (on.folder / "0001.parquet").write_bytes(part)
        digest = hashlib.sha256(part).hexdigest()
        manifest["files"][0].update(size=len(part), sha256=digest, rows=1)
    change(manifest)
    body = json.dumps(manifest, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    (on.folder / "BACKUP.json").write_text(f'{{"manifest":{body},"sha256":"{digest}"}}')


async def refused_and_gone(on: Bench) -> None:
    refused = await on.refused("RESTORE KEYSPACE got FROM 'file:///b'")
    assert refused.sqlstate == "58030", refused
    async with asyncio.timeout(20):
        while "got" in str(await on.rows("SHOW KEYSPACES")):
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("change", MANIFESTS.values(), ids=MANIFESTS)
def test_a_manifest_is_not_believed(tmp_path: Path, change: Callable[[Manifest], None]) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await craft(on, change, None)
            await refused_and_gone(on)

    asyncio.run(main())


@pytest.mark.parametrize("part", FILES.values(), ids=FILES)
def test_a_file_is_not_believed(tmp_path: Path, part: bytes) -> None:
    async def main() -> None:
        async with bench(tmp_path) as on:
            await craft(on, lambda manifest: None, part)
            await refused_and_gone(on)

    asyncio.run(main())


@pytest.mark.parametrize("name", ["BACKUP.json", "0001.parquet"])
@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_a_backups_files_are_its_own(tmp_path: Path, name: str, kind: str) -> None:
    """A link leads to what others have, and a pipe has no end."""

    async def main() -> None:
        async with bench(tmp_path) as on:
            await craft(on, lambda manifest: None, None)
            file = on.folder / name
            file.rename(tmp_path / "elsewhere")
            if kind == "link":
                file.symlink_to(tmp_path / "elsewhere")
            else:
                os.mkfifo(file)
            await refused_and_gone(on)

    asyncio.run(main())


def test_what_a_dictionary_repeats_is_not_unpacked_at_once(tmp_path: Path) -> None:
    """Of a thousand rows that share a value of 8 MB, one is in memory at a time."""
    value, count = b"\0" * (8 << 20), 1000
    columns = [
        pa.array([b"%04d" % number for number in range(count)]),
        pa.DictionaryArray.from_arrays(pa.array([0] * count, pa.int32()), pa.array([value])),
        pa.array([None] * count, pa.int64()),
        pa.array([AT] * count, pa.int64()),
    ]
    fields = [field.with_type(column.type) for field, column in zip(SCHEMA, columns, strict=True)]
    with pq.ParquetWriter(
        tmp_path / "0001.parquet",
        pa.schema(fields),
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=1 << 30,
    ) as writer:
        writer.write_table(pa.Table.from_arrays(columns, schema=pa.schema(fields)))
    assert (tmp_path / "0001.parquet").stat().st_size < 20_000
    file = BackupFile(name="0001.parquet", start=b"", end=b"", rows=count, size=0, sha256="")
    sizes = [rows.num_rows for rows in read_part(tmp_path, file, SCHEMA)]
    assert sizes == [1] * count
    assert len(value) > READ_BYTES
