"""The key of the store's secrets: a file that only its owner can read, and never a row.

It lies in the data folder, made with it, or where `--secret-key-file` says: on another disk than
the store, or at every node of a store that several serve.
"""

from __future__ import annotations

import os
import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from pathlib import Path

from ..changefeed.connections import KEY_BYTES
from .refusal import NodeRefused

KEY_FILE = "secret.key"


def secret_key(folder: Path | None, given: Path | None) -> bytes:
    """The key in the file `given`, which exists, or in the data folder, where it is made.

    A store in memory has a key in memory. Raises NodeRefused where the file is missing, damaged, or
    others may read it.
    """
    if given is not None:
        return _read(given)
    if folder is None:
        return secrets.token_bytes(KEY_BYTES)
    path = folder / KEY_FILE
    if not path.exists():
        _make(path)
    return _read(path)


def _make(path: Path) -> None:
    """The file is there whole, or not at all."""
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n")
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)


def _read(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        text = path.read_bytes().strip()
    except OSError as error:
        raise NodeRefused(f"cannot read secret key {path}: {error.strerror}") from error
    if mode & 0o077:
        raise NodeRefused(
            f"secret key {path} can be read by others: make it yours alone (chmod 600)"
        )
    try:
        key = b64decode(text, validate=True)
    except NotBase64:
        key = b""
    if len(key) != KEY_BYTES:
        raise NodeRefused(
            f"secret key {path} is not {KEY_BYTES} bytes in base64: make one by "
            f"head -c {KEY_BYTES} /dev/urandom | base64"
        )
    return key
