"""Kinds of sinks: what stands behind one scheme of URIs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...catalog.descriptors.descriptor import TableDescriptor
from ...kvlayer.process.offload import OffloadLane
from ..contract.changes import Form
from ..contract.message_form import Format
from ..contract.options import PIPELINE_OPTIONS, ChangefeedOptions
from ..encode import Topics
from .extras import AVRO, Extra
from .protocol import FeedIdentity, FormedSink, Holds, Sink, SinkContext


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a sink URI on this node: a path, the folders around it, and whether there is
    something already."""

    path: str
    around: tuple[str, ...]
    occupied: bool


def place_at(path: Path) -> Place:
    """A folder without anything in it is not occupied: checking a URI may make one."""
    occupied = any(path.iterdir()) if path.is_dir() else path.exists()
    return Place(str(path), tuple(map(str, path.parents)), occupied)


class Kind(ABC):
    """Judges the URIs of one scheme, whoever writes behind them. What a kind does not say of itself
    is as here."""

    local: bool = False
    """Whether its targets are files that one node holds: then only that node runs its feeds."""

    obeys: frozenset[str] = PIPELINE_OPTIONS
    """The names of the options that its sinks, and the pipeline before them, obey."""

    @abstractmethod
    async def validate(self, uri: str, tables: Sequence[TableDescriptor], *, store_id: str) -> None:
        """Raises SQLError (or SinkRefused) when a new feed of `tables` may not go to `uri`.

        Called before a feed is created; leaves nothing behind.
        """

    async def admit(self, uri: str, tables: Sequence[TableDescriptor], feed: FeedIdentity) -> None:
        """Raises as `validate` does when `tables` may not join `feed`, which goes to `uri`."""
        await self.validate(uri, tables, store_id=feed.store_id)

    def reserved(self, uri: str, table_names: Iterable[str]) -> frozenset[str]:
        """The names that a feed of these tables has to itself behind `uri`: the same for two feeds
        that would meet. Raises SQLError for a URI that will not do."""
        return frozenset()

    async def release(self, uri: str, identity: FeedIdentity, holds: Holds) -> None:
        """The feed will never come back: what it held at the target is free for others.

        A target that has seen of the feed what this store does not hold stays as it is: another
        copy of the store feeds it, by the same job. Raises SinkError when the target is not there
        now.
        """
        return

    def place(self, uri: str) -> Place | None:
        """The place on this node that `uri` leads to, if any. Raises SQLError for a URI that will
        not do."""
        return None

    def hosts(self, uri: str) -> Sequence[str]:
        """The names and addresses of the servers that `uri` has the node connect to. Raises
        SQLError for a URI that will not do."""
        return ()

    def topic_names(
        self, uri: str, full_names: Mapping[int, str], options: ChangefeedOptions
    ) -> tuple[str, ...]:
        """The topics of a feed of tables with these full names, by id. Secrets of `uri` may be
        redacted."""
        return Topics(full_names=full_names, full_table_name=options.full_table_name).names

    @abstractmethod
    def redacted(self, uri: str) -> str:
        """The URI as anybody may see it: unchanged where it holds no secret."""


class LocalKind(Kind):
    """A kind of sink whose targets are files or folders of one node. What names one is no
    secret."""

    local = True

    @abstractmethod
    def path_of(self, uri: str) -> Path:
        """The file or folder that `uri` names. Raises SQLError for a URI that will not do."""

    def place(self, uri: str) -> Place | None:
        return place_at(self.path_of(uri))

    def redacted(self, uri: str) -> str:
        return uri


class SinkKind(Kind):
    """A scheme behind which sinks stand: checks options and opens sinks."""

    transactional: bool = False
    """Whether its sinks keep a feed's progress themselves, in one transaction with the rows."""

    columnar: bool = True
    """Whether its sinks would rather have Arrow than rows, where there are many."""

    follows_schema: bool = False
    """Whether its sinks change with the table, and so need no rows for what DDL can tell."""

    checkpoint_seconds: float | None = None
    """Between checkpoints, where the feed's options do not say and a checkpoint costs more than
    elsewhere, such as a file of each table."""

    whole_tables: str | None = None
    """The reason for which its targets take whole tables and no results of queries, if so."""

    extra: Extra | None = None
    """The package that its sinks need to be installed, if any."""

    async def load(self, options: ChangefeedOptions, lane: OffloadLane) -> None:
        """What `create` imports, for a feed with these options. Raises SQLError where something is
        not installed."""
        if self.extra is not None:
            await self.extra.load(lane)
        if options.format is Format.AVRO:
            await AVRO.load(lane)

    def check_options(self, options: ChangefeedOptions) -> None:
        """Raises SQLError where its sinks obey an option, but not with the value given."""
        return

    @abstractmethod
    def create(self, uri: str, context: SinkContext) -> Sink:
        """A sink, not yet open."""

    def keeps_progress(self, options: ChangefeedOptions) -> bool:
        """Whether the sink of a feed with these options is transactional."""
        return self.transactional

    def follows(self, uri: str) -> bool:
        """Whether the sink behind `uri` follows schemas."""
        return self.follows_schema

    def wants_previous(self, uri: str) -> bool:
        """Whether the sink behind `uri` is to be told the rows before changes, whether or not the
        feed's options ask for them."""
        return False

    def form_of(self, sink: Sink) -> Form:
        """The form in which a sink of this kind would have rows."""
        if isinstance(sink, FormedSink):
            return sink.form
        return Form.COLUMNS if self.columnar else Form.ROWS
