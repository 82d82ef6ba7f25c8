"""The folder of a node that has joined a store: who it is, and its mirrors.

    NODE       the store's id and the node's, in JSON
    LOCK       held by the process that is this node
    mirrors/   where its mirrors lie, unless it was told otherwise

A node that starts again in its folder is the same node, and replaces its former session at once.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from ..kvlayer.files.data_folder import DataFolderError
from ..kvlayer.files.disk import replace_file

_NODE, _LOCK, _STORE_FORMAT = "NODE", "LOCK", "FORMAT"


class NodeIdentity(msgspec.Struct, frozen=True):
    store_id: str
    node_id: int


class NodeFolder:
    """An opened folder. It stays locked until `close`, or until the process ends."""

    def __init__(self, path: Path, lock: int, identity: NodeIdentity | None) -> None:
        self.path = path
        self.identity = identity
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> NodeFolder:
        """Makes the folder if there is none. Raises DataFolderError."""
        if (path / _STORE_FORMAT).exists():
            raise DataFolderError(
                f"{path} is the data folder of a store: a joined node needs a folder of its own"
            )
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.chmod(0o700)
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise DataFolderError(f"cannot open node folder {path}: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return cls(path, lock, _read(path / _NODE))
        except BlockingIOError as error:
            os.close(lock)
            raise DataFolderError(f"another process is the node of {path}") from error
        except BaseException:
            os.close(lock)
            raise

    def keep(self, identity: NodeIdentity) -> None:
        """From now on the folder is that node's."""
        replace_file(self.path / _NODE, msgspec.json.encode(identity) + b"\n")
        self.identity = identity

    def close(self) -> None:
        os.close(self._lock)


def _read(path: Path) -> NodeIdentity | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=NodeIdentity)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise DataFolderError(
            f"{path} does not say which node this is ({error}): remove it to join as a new node"
        ) from error
