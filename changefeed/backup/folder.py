"""The folder of a backup: Parquet files that are there whole, and the manifest behind them.

Every call blocks, and belongs in a lane.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...kvlayer.files.disk import NEW_SUFFIX, replace_file, sync_folder
from .manifest import BackupFile, Manifest, ManifestUnreadable, decode_manifest, encode_manifest

MANIFEST_FILE = "BACKUP.json"

_PART = re.compile(r"[0-9]{4,}\.parquet")
_UNFINISHED = re.compile(rf"{_PART.pattern}|{re.escape(MANIFEST_FILE + NEW_SUFFIX)}")
"""Names of what a backup that was not finished leaves."""

READ_ROWS = 1_000
READ_BYTES = 1024 * 1024
"""Rows that are handed out at once: what is made of them is one step of the loop. A row above it is
handed out alone."""

GROUP_BYTES_MAX = 256 * 1024 * 1024
"""The size of an unpacked row group, a dictionary's values counted once: more than any that was
written."""

MANIFEST_BYTES_MAX = 64 * 1024 * 1024


class BackupRefused(Exception):
    """A folder that cannot take a backup, or holds none that can be restored, and why."""


def begin_backup(path: Path) -> None:
    """Makes the folder, or one that was begun and not finished anew. Raises BackupRefused for one
    that has anything else in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        found = list(path.iterdir())
        if any(_UNFINISHED.fullmatch(file.name) is None for file in found):
            raise BackupRefused(f"{path} is not empty: name a new folder")
        for file in found:
            file.unlink()
    except OSError as error:
        raise BackupRefused(f"{path} cannot be written: {error.strerror}") from error


class PartWriter:
    """Writes one file of a backup. What is not finished is no part of it: no manifest names it."""

    def __init__(self, path: Path, number: int, schema: pa.Schema) -> None:
        self._path = path / f"{number:04}.parquet"
        self._file = self._path.open("wb")
        self._writer = pq.ParquetWriter(self._file, schema, compression="zstd")
        self._rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows)
        self._rows += rows.num_rows

    def finish(self, start: bytes, end: bytes) -> BackupFile:
        """The file is durable."""
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self.close()
        size, digest = _measured(self._path)
        return BackupFile(
            name=self._path.name, start=start, end=end, rows=self._rows, size=size, sha256=digest
        )

    def close(self) -> None:
        self._file.close()


def finish_backup(path: Path, manifest: Manifest) -> None:
    """Makes the backup one: all of its files are durable."""
    sync_folder(path)
    replace_file(path / MANIFEST_FILE, encode_manifest(manifest))


def open_backup(path: Path) -> Manifest:
    """The manifest of a backup, each file of which is as it was written. Raises BackupRefused,
    which names the file that is not."""
    manifest = read_manifest(path)
    for file in manifest.files:
        if _PART.fullmatch(file.name) is None:
            raise BackupRefused(f"{path / MANIFEST_FILE} names a file that is none of a backup's")
        _check_regular(path / file.name)
        try:
            found = _measured(path / file.name)
        except OSError as error:
            raise BackupRefused(f"{path / file.name} cannot be read: {error.strerror}") from error
        if found != (file.size, file.sha256):
            raise BackupRefused(f"{path / file.name} is damaged: its digest is another")
    return manifest


def read_manifest(path: Path) -> Manifest:
    """Without a look at the files. Raises BackupRefused."""
    try:
        found = (path / MANIFEST_FILE).lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MANIFEST_BYTES_MAX:
            raise BackupRefused(f"{path / MANIFEST_FILE} is no manifest")
        return decode_manifest((path / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise BackupRefused(f"{path} is no backup: it has no {MANIFEST_FILE}") from None
    except OSError as error:
        raise BackupRefused(f"{path / MANIFEST_FILE} cannot be read: {error.strerror}") from error
    except ManifestUnreadable as error:
        raise BackupRefused(f"{path / MANIFEST_FILE} {error}") from error


def read_part(path: Path, file: BackupFile, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of a file, up to `READ_ROWS` and `READ_BYTES` at a time. Values stay in their
    dictionaries: a file may hold one that a million rows have. Raises BackupRefused."""
    try:
        binary = [each.name for each in schema if pa.types.is_binary(each.type)]
        with pq.ParquetFile(path / file.name, read_dictionary=binary) as parquet:
            if (*map(_plain, parquet.schema_arrow),) != (*schema,):
                raise BackupRefused(f"{path / file.name} has other columns than a backup")
            if parquet.metadata.num_rows != file.rows:
                raise BackupRefused(f"{path / file.name} has not as many rows as its manifest says")
            for group in range(parquet.num_row_groups):
                if parquet.metadata.row_group(group).total_byte_size > GROUP_BYTES_MAX:
                    raise BackupRefused(f"{path / file.name} has more in a row group than a backup")
                for rows in parquet.iter_batches(batch_size=READ_ROWS, row_groups=[group]):
                    yield from _slices(rows, binary)
    except (pa.ArrowException, KeyError, OSError) as error:  # KeyError: it has no such column
        raise BackupRefused(f"{path / file.name} cannot be read: {error}") from error


def _plain(field: pa.Field[Any]) -> pa.Field[Any]:
    """A column as it would be without its dictionary."""
    kind = field.type
    plain = field.with_type(kind.value_type) if isinstance(kind, pa.DictionaryType) else field
    return plain.remove_metadata()


def _slices(rows: pa.RecordBatch, binary: Sequence[str]) -> Iterator[pa.RecordBatch]:
    lengths = zip(*(_lengths(rows.column(name)) for name in binary), strict=True)
    start = size = 0
    for place, length in enumerate(map(sum, lengths)):
        if place > start and size + length > READ_BYTES:
            yield rows.slice(start, place - start)
            start, size = place, 0
        size += length
    yield rows.slice(start)


def _lengths(column: pa.Array[Any]) -> list[int]:
    assert isinstance(column, pa.DictionaryArray), column.type
    of_values = pc.call_function("binary_length", [column.dictionary])
    found: list[int] = pc.take(of_values, column.indices).to_pylist()
    return found


def _check_regular(path: Path) -> None:
    """Raises BackupRefused for a link, or what is no file and may never end."""
    try:
        regular = stat.S_ISREG(path.lstat().st_mode)
    except OSError as error:
        raise BackupRefused(f"{path} cannot be read: {error.strerror}") from error
    if not regular:
        raise BackupRefused(f"{path} is no file of its own")


def _measured(path: Path) -> tuple[int, str]:
    """The size of a file, and its digest."""
    with path.open("rb") as file:
        return path.stat().st_size, file_digest(file, "sha256").hexdigest()
