"""The folder of a backup.

BACKUP     every file's size and digest, and the format of the store; written last
CLOCK
engine/    as in a data folder (see `kvlayer.files.data_folder`), from which the backup differs in
log/       having no FORMAT: no server opens it, and so it stays what it is
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...kvlayer.files.data_folder import FORMAT, FORMATS_READ
from ...kvlayer.files.disk import replace_file, sync_folder
from ..secret_key import KEY_FILE
from .stored_file import CHUNK_BYTES, BackupRefused, StoredFile

LIST_FILE = "BACKUP"
UNFINISHED = ".unfinished"
DIGEST_BYTES = 32


class FileSum(msgspec.Struct, frozen=True):
    size: int
    blake2b: str


class BackupList(msgspec.Struct, frozen=True, kw_only=True):
    """The manifest of a backup. `store_format` is the data folder's, `taken_at` in ISO 8601."""

    format: int = 1
    store_format: str
    version: str
    taken_at: str
    files: dict[str, FileSum]

    @property
    def size(self) -> int:
        return sum(each.size for each in self.files.values())


def write_backup(
    target: Path, files: Iterable[StoredFile], *, version: str, taken_at: str
) -> BackupList:
    """Makes the folder `target`, whole and durable, or not at all. Raises BackupRefused."""
    sums: dict[str, FileSum] = {}
    store_format = None
    with _made_whole(target) as folder:
        for file in files:
            if file.name == FORMAT:
                store_format = b"".join(file.chunks).decode("ascii", "replace").strip()
            else:
                sums[file.name] = _write(folder / file.name, file.chunks)
        if store_format is None:
            raise BackupRefused("the server has broken off: files are missing; take it again")
        found = BackupList(
            store_format=store_format, version=version, taken_at=taken_at, files=sums
        )
        replace_file(folder / LIST_FILE, msgspec.json.format(msgspec.json.encode(found)) + b"\n")
    return found


def restore_backup(backup: Path, target: Path, *, secret_key: Path | None = None) -> BackupList:
    """Makes the data folder `target` from a backup, with the key of its secrets if one is given.

    The folder is there whole, each file as the backup's list has it, or not at all. Raises
    BackupRefused, for damage too.
    """
    found = _read_list(backup)
    with _made_whole(target) as folder:
        for name, expected in found.files.items():
            if _write(folder / name, _read(backup / name)) != expected:
                raise BackupRefused(f"{backup / name} is damaged: restore another backup")
        if secret_key is not None:
            _write(folder / KEY_FILE, _read(secret_key))
        replace_file(folder / FORMAT, f"{found.store_format}\n".encode("ascii"))
    return found


def _read_list(backup: Path) -> BackupList:
    try:
        found = msgspec.json.decode((backup / LIST_FILE).read_bytes(), type=BackupList)
    except FileNotFoundError:
        raise BackupRefused(f"{backup} is no backup: it has no file {LIST_FILE}") from None
    except msgspec.MsgspecError as error:
        raise BackupRefused(f"{backup / LIST_FILE} is damaged: {error}") from error
    if found.format != 1 or found.store_format not in FORMATS_READ:
        raise BackupRefused(
            f"{backup} was taken by Tailrace {found.version} of a store of format "
            f"{found.store_format}, and this version reads formats up to {FORMATS_READ[-1]}: "
            "restore it with the version that took it"
        )
    return found


def _read(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield chunk
    except OSError as error:
        raise BackupRefused(f"cannot read {path}: {error.strerror}") from error


@contextmanager
def _made_whole(target: Path) -> Iterator[Path]:
    """A folder that has the name `target` once everything in it is durable, and goes otherwise."""
    draft = target.with_name(target.name + UNFINISHED)
    try:
        if target.exists() and any(target.iterdir()):
            raise BackupRefused(f"{target} is not empty: name a new folder")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True, mode=0o700)
        yield draft
        for folder in (*(each for each in draft.iterdir() if each.is_dir()), draft):
            sync_folder(folder)
        draft.rename(target)
        sync_folder(target.parent)
    except OSError as error:
        raise BackupRefused(f"cannot make {target}: {error.strerror}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _write(path: Path, chunks: Iterable[bytes]) -> FileSum:
    """A new file of its owner alone, durable; its size and digest."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    size, digest = 0, blake2b(digest_size=DIGEST_BYTES)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        file.flush()
        os.fsync(file.fileno())
    return FileSum(size, digest.hexdigest())
