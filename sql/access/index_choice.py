"""The choice of the index that a statement reads: the primary one, or a secondary one that narrows
it more.

There are no statistics, so what counts is what a WHERE clause fixes, in this order:

    one row a prefix        the whole primary key, or all columns of a unique index
    columns fixed           from the left, by equality, IN or IS NULL
    ends of a range         on the column behind those
    entries that suffice    an index that holds every column that is asked for
    the primary index       it takes no second read

An index is read only when it is public, in the version under which the statement runs: one that is
being built may lack rows, one that is going may soon. And only if its entries say the primary key,
which while that is being changed they may not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.elements import ElementState, Index, IndexKind
from .key_access import KeyAccess, held_columns, key_access
from .predicates import Predicate


def best_access(
    descriptor: TableDescriptor, predicates: Sequence[Predicate], needed: Collection[int]
) -> KeyAccess:
    """The access that narrows most. `needed` are the ids of the columns that are asked for."""
    return ranked_accesses(descriptor, predicates, needed)[0]


def ranked_accesses(
    descriptor: TableDescriptor, predicates: Sequence[Predicate], needed: Collection[int]
) -> list[KeyAccess]:
    """An access by each index that may be read, the narrowest first."""
    indexes = [descriptor.primary_index, *readable_indexes(descriptor)]
    accesses = [key_access(descriptor, index, predicates) for index in indexes]
    return sorted(accesses, key=lambda access: _rank(access, needed), reverse=True)


def readable_indexes(descriptor: TableDescriptor) -> Iterator[Index]:
    """The secondary indexes in which every row is found, with its key."""
    key = set(descriptor.primary_key)
    visible = {column.id for column in descriptor.visible_columns}
    for index in descriptor.indexes:
        if (
            index.kind is IndexKind.SECONDARY
            and index.state is ElementState.PUBLIC
            and held_columns(descriptor, index) >= key
            and visible.issuperset(index.columns)
        ):
            yield index


def _rank(access: KeyAccess, needed: Collection[int]) -> tuple[object, ...]:
    return (
        access.unique,
        len(access.alternatives),
        access.bounds,
        access.holds(needed),
        not access.secondary,
    )
