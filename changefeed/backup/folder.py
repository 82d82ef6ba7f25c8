"""The folder of a backup: Parquet files that are there whole, and the manifest behind them.

Every call blocks, and belongs in a lane.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from hashlib import file_digest
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ...kvlayer.disk import replace_file, sync_folder
from .manifest import BackupFile, Manifest, ManifestUnreadable, decode_manifest, encode_manifest

MANIFEST_FILE = "BACKUP.json"

_PART = re.compile(r"[0-9]{4,}\.parquet")

READ_ROWS = 1_000
"""Rows that are handed out at once: what is made of them is one step of the loop."""


class BackupRefused(Exception):
    """A folder that cannot take a backup, or holds none that can be restored, and why."""


def begin_backup(path: Path) -> None:
    """Makes the folder, or one that was begun and not finished anew. Raises BackupRefused for one
    that has anything else in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        found = list(path.iterdir())
        if any(_PART.fullmatch(file.name) is None for file in found):
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
        if Path(file.name).name != file.name:
            raise BackupRefused(f"{path / MANIFEST_FILE} names a file of another folder")
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
        return decode_manifest((path / MANIFEST_FILE).read_bytes())
    except FileNotFoundError:
        raise BackupRefused(f"{path} is no backup: it has no {MANIFEST_FILE}") from None
    except OSError as error:
        raise BackupRefused(f"{path / MANIFEST_FILE} cannot be read: {error.strerror}") from error
    except ManifestUnreadable as error:
        raise BackupRefused(f"{path / MANIFEST_FILE} {error}") from error


def read_part(path: Path, file: BackupFile) -> Iterator[pa.RecordBatch]:
    """The rows of a file, `READ_ROWS` at a time."""
    with pq.ParquetFile(path / file.name) as parquet:
        yield from parquet.iter_batches(batch_size=READ_ROWS)


def _measured(path: Path) -> tuple[int, str]:
    """The size of a file, and its digest."""
    with path.open("rb") as file:
        return path.stat().st_size, file_digest(file, "sha256").hexdigest()
