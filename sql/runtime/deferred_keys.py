"""Checks of foreign keys that a transaction leaves for its commit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...catalog.descriptors.elements import ForeignKey
from ...catalog.values.column_types import Datum
from ...catalog.values.errors import SQLError
from ...catalog.values.physical import Physical

DEFERRED_VALUES_MAX = 100_000
"""Values that refer to no row, in one transaction: they are held in memory until its commit."""


@dataclass(frozen=True, slots=True)
class Deferrals:
    """The effect of SET CONSTRAINTS: on `all` keys, and then on some, by table and name."""

    all: bool | None = None
    some: Mapping[tuple[int, str], bool] = field(default_factory=dict)

    def defers(self, table_id: int, key: ForeignKey) -> bool:
        if not key.deferrable:
            return False
        otherwise = key.initially_deferred if self.all is None else self.all
        return self.some.get((table_id, key.name), otherwise)


Orphans = dict[tuple[Datum, ...], tuple[tuple[Physical, ...], bool]]
"""Values of a foreign key that referred to no row when a statement had ended: as they are stored,
and whether rows with them were written, for otherwise the row that they referred to went."""


class DeferredKeys:
    """The foreign keys of one transaction: which are deferred, and the values to look at again.

    Every statement looks at its deferred keys like at others, and notes what is wrong instead of
    refusing it. What was right then is wrong later only by another statement, which looks too. So
    what the commit has to look at is what was noted, and what is noted stays: a savepoint that is
    gone back to may take away the row that had set it right.
    """

    def __init__(self) -> None:
        self.deferrals = Deferrals()
        self.orphans: dict[tuple[int, str], Orphans] = {}
        self._value_count = 0

    def defers(self, table_id: int, key: ForeignKey) -> bool:
        return self.deferrals.defers(table_id, key)

    def note(
        self,
        table_id: int,
        key: ForeignKey,
        values: Mapping[tuple[Datum, ...], tuple[Physical, ...]],
        *,
        inserted: bool,
    ) -> None:
        """Values that refer to no row. Raises SQLError 54000 for too many in the transaction."""
        orphans = self.orphans.setdefault((table_id, key.name), {})
        before = len(orphans)
        orphans.update({datums: (stored, inserted) for datums, stored in values.items()})
        self._value_count += len(orphans) - before
        if self._value_count > DEFERRED_VALUES_MAX:
            raise SQLError(
                "54000",
                f"more than {DEFERRED_VALUES_MAX} values of deferred foreign keys refer to no row",
                hint="Write the rows that are referred to before those that refer to them, or in "
                "smaller transactions.",
            )
