"""The common part of the kinds of sinks of files, wherever their folders are."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import OffloadLane, OffloadPool
from ...contract.message_form import WHOLE_ENVELOPES, Format
from ...contract.options import MESSAGE_OPTIONS, PIPELINE_OPTIONS, ChangefeedOptions
from ..kind import SinkKind
from ..protocol import Sink, SinkContext
from .folder import Folder
from .layout import FilesLayout
from .sink import FilesSink

CHECKPOINT_SECONDS = 5.0
"""Each checkpoint with changes is a file of each table: a program that reads a folder wants few
large ones."""


class FileSinks(SinkKind):
    """Opens sinks of files, each of which has its folder's lane. Files outlive their feeds."""

    obeys = PIPELINE_OPTIONS | MESSAGE_OPTIONS | {"compression"}
    checkpoint_seconds = CHECKPOINT_SECONDS

    def __init__(self, pool: OffloadPool) -> None:
        self._pool = pool
        self._lanes: dict[str, OffloadLane] = {}
        self._attempts = count(1)

    def check_options(self, options: ChangefeedOptions) -> None:
        check_files_options(options)

    def _lane(self, folder: str) -> OffloadLane:
        """The lane of a folder, one call at a time whoever the feed is."""
        if folder not in self._lanes:
            self._lanes[folder] = self._pool.lane(folder)
        return self._lanes[folder]

    def _opened(
        self, layout: FilesLayout, folder: Folder, lane: OffloadLane, context: SinkContext
    ) -> Sink:
        options = replace(context.options, key_in_value=True)
        return FilesSink(layout, folder, lane, context, options, attempt=next(self._attempts))


def check_files_options(options: ChangefeedOptions) -> None:
    """Raises SQLError where files of changes cannot be as the options say."""
    if options.format is Format.AVRO:
        raise SQLError("0A000", "files of changes in format avro are not supported")
    if options.envelope not in WHOLE_ENVELOPES:
        raise SQLError(
            "22023",
            f"files of changes have no envelope {options.envelope.value}",
            detail="A line is a whole message, and that envelope has messages without a value.",
            hint="Envelopes of files: wrapped, bare, enriched.",
        )
