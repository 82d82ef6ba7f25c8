"""Table events: what a step from one version of a descriptor to another means to a feed.

Every step is classified by its two descriptors alone, as a *bit set*: one version may carry
several changes. `v1 (k, v)` to `v2 (k, w, x DEFAULT 3)` in the same index, `v` renamed, is

    RENAME_COLUMN | ADD_COLUMN

Columns are told apart by id, so that a rename is no drop and add; a column that takes over the name
of one that goes in the same step is that one retyped. Only visible columns count: those on their
way are of no concern to a feed. A step that changes nothing a feed looks at (the default of a
column, an index, a storage parameter) is OTHER.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Flag, auto

from ..catalog.descriptors.descriptor import Column, TableDescriptor
from ..catalog.descriptors.enum_columns import enum_in
from ..catalog.values.column_types import ColumnType
from ..kvlayer.clock import Timestamp, format_timestamp


class EventKind(Flag):
    """The kinds of changes of a table; members combine."""

    ADD_COLUMN = auto()  # old rows read the new column's missing value: nothing was rewritten
    ADD_COLUMN_BACKFILL = auto()  # old rows were rewritten into another index for it
    DROP_COLUMN = auto()
    RENAME_COLUMN = auto()
    RETYPE_COLUMN = auto()
    RENAME_TABLE = auto()
    PRIMARY_KEY_CHANGE = auto()
    TRUNCATE = auto()  # another index, without the rows that were there when it began
    DROP_TABLE = auto()
    LOCK = auto()
    UNLOCK = auto()
    OTHER = auto()


NONE = EventKind(0)
LOCK_CHANGES = EventKind.LOCK | EventKind.UNLOCK
"""Steps between logically equal versions: rows are the same under both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableEvent:
    """The step from `before` to `after`, which holds from its modification time on."""

    before: TableDescriptor
    after: TableDescriptor
    kinds: EventKind

    @property
    def timestamp(self) -> Timestamp:
        return self.after.modification_time

    @property
    def table_id(self) -> int:
        return self.after.id

    def __repr__(self) -> str:
        return (
            f"<{self.after.name} v{self.before.version}->v{self.after.version} "
            f"@ {format_timestamp(self.timestamp)} {describe(self.kinds)}>"
        )


def table_event(before: TableDescriptor, after: TableDescriptor) -> TableEvent:
    """The event of the step from `before` to its successor `after`."""
    assert before.id == after.id, (before.id, after.id)
    assert before.version < after.version, (before, after)
    assert before.modification_time < after.modification_time, (before, after)
    return TableEvent(before=before, after=after, kinds=classify(before, after))


def classify(before: TableDescriptor, after: TableDescriptor) -> EventKind:
    """The kinds of changes between the two versions. Never empty."""
    kinds = _lock(before, after) | _table(before, after) | _columns(before, after)
    return kinds or EventKind.OTHER


def describe(kinds: EventKind) -> str:
    """The members, by name, in their order: `ADD_COLUMN|UNLOCK`."""
    return "|".join(str(kind.name) for kind in EventKind if kind in kinds)


def _lock(before: TableDescriptor, after: TableDescriptor) -> EventKind:
    if before.locked == after.locked:
        return NONE
    return EventKind.LOCK if after.locked else EventKind.UNLOCK


def _table(before: TableDescriptor, after: TableDescriptor) -> EventKind:
    kinds = NONE
    if after.dropped and not before.dropped:
        kinds |= EventKind.DROP_TABLE
    if before.name != after.name:
        kinds |= EventKind.RENAME_TABLE
    if before.primary_key != after.primary_key:
        kinds |= EventKind.PRIMARY_KEY_CHANGE
    if _reindexed(before, after) and not _swapped(before, after):
        kinds |= EventKind.TRUNCATE
    return kinds


def _columns(before: TableDescriptor, after: TableDescriptor) -> EventKind:
    old, new = _by_id(before), _by_id(after)
    kinds = NONE
    added, dropped = new.keys() - old.keys(), old.keys() - new.keys()
    rewritten = _swapped(before, after)
    retyped = {old[id].name for id in dropped} & {new[id].name for id in added}
    if not rewritten:
        retyped = set()  # nobody has converted the values: a column went, and another came
    if any(new[id].name not in retyped for id in added):
        kinds |= EventKind.ADD_COLUMN_BACKFILL if rewritten else EventKind.ADD_COLUMN
    if any(old[id].name not in retyped for id in dropped):
        kinds |= EventKind.DROP_COLUMN
    both = [(old[column_id], new[column_id]) for column_id in old.keys() & new.keys()]
    if any(was.name != now.name for was, now in both):
        kinds |= EventKind.RENAME_COLUMN
    if retyped or any(_retyped(was.type, now.type) for was, now in both):
        kinds |= EventKind.RETYPE_COLUMN
    return kinds


def _retyped(was: ColumnType, now: ColumnType) -> bool:
    """Whether old values are other ones now: members that an enumeration gains change none, nor
    does room for longer texts."""
    if now.widens(was):
        return False
    before, after = enum_in(was), enum_in(now)
    same = before is not None and after is not None and before.id == after.id
    return not same and was != now


def added_columns(before: TableDescriptor, after: TableDescriptor) -> tuple[Column, ...]:
    """The visible columns of `after` that `before` did not show, told apart by id."""
    known = _by_id(before)
    return tuple(column for column in after.visible_columns if column.id not in known)


def changed_columns(event: TableEvent, ids: Iterable[int]) -> Iterator[tuple[Column, str]]:
    """The columns among `ids`, as they were, that were `dropped`, `renamed` or
    `retyped`."""
    old, new = _by_id(event.before), _by_id(event.after)
    names = {column.name for column in new.values()}
    for was in (old[id] for id in ids if id in old):
        now = new.get(was.id)
        if now is None:
            retyped = was.name in names and _swapped(event.before, event.after)
            yield was, "retyped" if retyped else "dropped"
        elif now.name != was.name:
            yield was, f'renamed to "{now.name}"'
        elif _retyped(was.type, now.type):
            yield was, "retyped"


def rewrites(before: TableDescriptor, after: TableDescriptor) -> bool:
    """Whether rows hold values under `after` that nobody can tell from them under `before`."""
    return _swapped(before, after) and bool(added_columns(before, after))


def _reindexed(before: TableDescriptor, after: TableDescriptor) -> bool:
    return before.primary_index_id != after.primary_index_id


def _swapped(before: TableDescriptor, after: TableDescriptor) -> bool:
    """Whether the rows are read from an index that was built from those of before."""
    built = before.new_primary
    return built is not None and built.id == after.primary_index_id and not built.empty


def _by_id(descriptor: TableDescriptor) -> dict[int, Column]:
    return {column.id: column for column in descriptor.visible_columns}
