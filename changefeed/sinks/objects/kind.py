"""The kind of sink behind `s3://`, `gs://` and `azure://`: checks URIs and opens sinks of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ....catalog.descriptors.descriptor import TableDescriptor
from ....catalog.values.errors import SQLError
from ....kvlayer.process.offload import Offload
from ....kvlayer.settings import Settings, declare_bool
from ..files.file_sinks import FileSinks
from ..protocol import Sink, SinkContext
from .folder import ObjectsFolder
from .location import ObjectsLocation, parse_location, redacted_location

IMPLICIT_CREDENTIALS = declare_bool(
    "changefeed.implicit_credentials.enabled",
    False,
    "whether changefeeds may write with the credentials of the node's own environment",
)

SEND_THREADS = 8
"""How many folders of a node are written at a time: sending waits for the network."""


class ObjectsKind(FileSinks):
    """The kind of sink that writes files of changes into a bucket."""

    def __init__(
        self,
        offload: Offload,
        settings: Settings,
        *,
        folder: Callable[[ObjectsLocation, int], ObjectsFolder] = ObjectsFolder,
    ) -> None:
        """`folder` makes the folder of a job's files at a location."""
        super().__init__(offload.pool("objects", SEND_THREADS))
        self._settings = settings
        self._folder = folder

    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        location = self._location(uri)
        folder = self._folder(location, 0)
        obstacle = await self._lane(location.target).run(folder.obstacle)
        if obstacle is not None:
            raise SQLError(
                "58030",
                f"{location.shown} cannot be written: {obstacle}",
                hint="A changefeed is created when its sink can be reached.",
            )

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The folder: a mark speaks for all that is in it."""
        return frozenset([f"folder {parse_location(uri).target}"])

    def create(self, uri: str, context: SinkContext) -> Sink:
        location = self._location(uri)
        folder = self._folder(location, context.identity.job_id)
        return self._opened(location.layout, folder, self._lane(location.target), context)

    def hosts(self, uri: str) -> Sequence[str]:
        """The endpoint: where none is named it is the cloud's."""
        return parse_location(uri).endpoints

    def redacted(self, uri: str) -> str:
        return redacted_location(uri)

    def _location(self, uri: str) -> ObjectsLocation:
        location = parse_location(uri)
        if location.implicit and not self._settings.get(IMPLICIT_CREDENTIALS):
            raise SQLError(
                "42501",
                f"{location.shown}: AUTH=implicit is not allowed",
                hint=f"SET CLUSTER SETTING {IMPLICIT_CREDENTIALS.name} = true lends changefeeds "
                "the credentials of the node.",
            )
        return location
