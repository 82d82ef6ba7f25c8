"""A data folder that no process serves, opened for looking."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ...error import Error
from ...kvlayer.command import decode_command, engine_batch
from ...kvlayer.engine import Reader
from ...kvlayer.engine.overlay import OverlayReader
from ...kvlayer.engine.rocksdb import RocksEngine
from ...kvlayer.files.data_folder import DataFolder, DataFolderError
from ...kvlayer.log import entries_on

FORMAT_FILE = "FORMAT"


class FolderRefused(Error):
    """The folder cannot be looked into; the message says why and what to do."""


class OfflineStore:
    """Engine and log of a data folder, read and never written. Holds the folder's lock.

    What the log has and the engine lacks, because the process died before a flush, is laid over the
    engine in memory; so the keys are those that a start would bring back, before it ends what was
    under way.
    """

    def __init__(self, folder: DataFolder, engine: RocksEngine) -> None:
        self._folder = folder
        self._engine = engine
        flushed = engine.applied_index
        self.reader: Reader = OverlayReader(
            engine,
            (
                engine_batch(decode_command(payload))
                for index, payload in self.entries()
                if index > flushed
            ),
        )

    @classmethod
    def open(cls, path: Path) -> OfflineStore:
        """Raises FolderRefused when the folder is no data folder, or is served."""
        if not (path / FORMAT_FILE).exists():
            raise FolderRefused(f"{path} is not a data folder: it has no file {FORMAT_FILE}")
        try:
            folder = DataFolder.open(path)
        except DataFolderError as error:
            raise FolderRefused(
                f"{error}; with --url instead of --folder its server shows the same"
            ) from error
        try:
            return cls(folder, RocksEngine.open_read_only(folder.engine_path))
        except BaseException:
            folder.close()
            raise

    def entries(self) -> Iterator[tuple[int, bytes]]:
        """The entries of the log, from the oldest that it keeps."""
        return entries_on(self._folder.disk)

    def close(self) -> None:
        self._engine.close()
        self._folder.close()
