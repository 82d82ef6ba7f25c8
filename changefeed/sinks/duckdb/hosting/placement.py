"""The choice of the process that holds a mirror file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .....kvlayer.settings import Settings
from ..files import DuckDBFiles
from .mirror_worker import WORKERS, MirrorWorker


@dataclass(frozen=True, slots=True)
class Placement:
    """The files of a node, here and in its worker.

    A file that is open stays where it is until nobody has it open: until then a change of the
    setting `changefeed.workers` is nothing to it. Where that is not seen in time, DuckDB's lock on
    the file says that another process holds it.
    """

    files: DuckDBFiles
    worker: MirrorWorker
    settings: Settings

    def apart(self, path: Path) -> bool:
        """Whether who opens the file now does so in the worker."""
        if self.worker.uses(path):
            return True
        return not self.files.holds(path) and self.settings.get(WORKERS) == "on"
