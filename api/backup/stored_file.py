"""The files that are a store, in the order in which a backup takes them."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from ...error import Error
from ...kvlayer.files.data_folder import FORMAT, DataFolder, DataFolderError, store_files

CHUNK_BYTES = 1024 * 1024
"""What is held of a file at a time."""

_NAME = re.compile(r"CLOCK|FORMAT|(engine|log)/[A-Za-z0-9][A-Za-z0-9._-]*")


class BackupRefused(Error):
    """The backup cannot be taken or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store. The last of a store's is FORMAT: without it something is missing."""

    name: str
    chunks: Iterator[bytes]


@contextmanager
def stopped_store(path: Path) -> Iterator[Iterator[StoredFile]]:
    """The files of a data folder, which no server has while they are read. Raises BackupRefused."""
    if not (path / FORMAT).exists():
        raise BackupRefused(f"{path} is not a data folder: it has no file {FORMAT}")
    try:
        folder = DataFolder.open(path)
    except DataFolderError as error:
        raise BackupRefused(
            f"{error}; with --url instead of --folder its server sends a backup"
        ) from error
    try:
        yield (StoredFile(name, _read(path / name)) for name in (*store_files(path), FORMAT))
    finally:
        folder.close()


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


def received_files(stream: BinaryIO) -> Iterator[StoredFile]:
    """The files of the tar archive that a server sends. Raises BackupRefused where it breaks off,
    or holds what is no file of a store."""
    with _whole(), tarfile.open(fileobj=stream, mode="r|", bufsize=CHUNK_BYTES) as archive:
        for member in archive:
            file = archive.extractfile(member)
            if file is None or not _NAME.fullmatch(member.name):
                raise BackupRefused(f"what was sent is no backup: it holds {member.name!r}")
            yield StoredFile(member.name, _received(file))


def _received(file: IO[bytes]) -> Iterator[bytes]:
    with _whole():
        while chunk := file.read(CHUNK_BYTES):
            yield chunk


@contextmanager
def _whole() -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, OSError) as error:
        raise BackupRefused(f"the server has broken off: {error}; take the backup again") from error
