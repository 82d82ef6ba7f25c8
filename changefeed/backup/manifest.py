"""The manifest of a backup: what the folder holds, and that it is whole."""

from __future__ import annotations

from hashlib import sha256
from uuid import UUID

import msgspec

from ...kvlayer.clock import MAX_TIMESTAMP, Timestamp

MANIFEST_FORMAT = 1


class ManifestUnreadable(Exception):
    """A manifest that was damaged, or written by a later version; the message says which."""


class BackupFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file, the keys of the store `[start, end)` that it is of, and how it must be."""

    name: str
    start: bytes
    end: bytes
    rows: int
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A backup of target `target_id` of the store `store_id`, by its `name` and `descriptor` then.

    It covers `(after, upto]`: of each key that was there at `upto` the version which was read, if
    it was written above `after`. A full backup covers everything from zero.
    """

    format: int = MANIFEST_FORMAT
    store_id: str
    target_id: int
    name: str
    descriptor: bytes
    after: Timestamp
    upto: Timestamp
    files: tuple[BackupFile, ...]

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)


class _Sealed(msgspec.Struct, frozen=True):
    manifest: msgspec.Raw
    sha256: str


class _Versioned(msgspec.Struct, frozen=True):
    format: int


def encode_manifest(manifest: Manifest) -> bytes:
    """The file's bytes, with a digest of themselves."""
    body = msgspec.json.encode(manifest)
    return msgspec.json.encode(_Sealed(msgspec.Raw(body), sha256(body).hexdigest())) + b"\n"


def decode_manifest(data: bytes) -> Manifest:
    """Raises ManifestUnreadable."""
    try:
        sealed = msgspec.json.decode(data, type=_Sealed)
        if sha256(sealed.manifest).hexdigest() != sealed.sha256:
            raise ManifestUnreadable("is damaged: its digest is another")
        found = msgspec.json.decode(sealed.manifest, type=_Versioned).format
        if found != MANIFEST_FORMAT:
            raise ManifestUnreadable(
                f"has format {found}, and this version of Tailrace reads {MANIFEST_FORMAT}"
            )
        manifest = msgspec.json.decode(sealed.manifest, type=Manifest)
        UUID(manifest.store_id)
        if not 0 < manifest.upto <= MAX_TIMESTAMP:
            raise ManifestUnreadable(f"is damaged: {manifest.upto} is no timestamp")
        return manifest
    except (msgspec.MsgspecError, ValueError) as error:
        raise ManifestUnreadable(f"is damaged: {error}") from error
