"""A query of the row with one key, prepared: from parameters to a key, from a body to a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter

from ....catalog.rows.row_codec import codec_for
from ...access.predicates import bind_predicates
from ...analyze.scalars import Bindings
from ...plan.plans import SelectPlan
from ...results.results import Row

_NO_ROWS: Sequence[Row] = ()


class PointRead:
    """A run of a query whose primary key is fixed, and whose columns are the table's."""

    __slots__ = ("_access", "_decode", "_pick", "_predicates", "names", "table")

    def __init__(self, plan: SelectPlan) -> None:
        native = plan.native
        assert native is not None and applies(plan), plan
        self.table = native.access.descriptor
        self.names = native.names
        self._access = native.access
        self._decode = codec_for(self.table).decode_row
        self._predicates = native.predicates
        if native.access.answers(native.predicates):
            self._predicates = ()
        self._pick = _picker([each for each in native.columns if isinstance(each, int)])

    def key(self, bindings: Bindings) -> bytes | None:
        """The key, or None where no row can have it. Raises SQLError."""
        keys = self._access.keys(bindings)
        return keys[0] if keys else None

    def rows(self, key: bytes, body: bytes | None, bindings: Bindings) -> Sequence[Row]:
        """The result's rows: one, or none. Raises SQLError."""
        if body is None:
            return _NO_ROWS
        row = self._decode(key, body)
        if self._predicates and not bind_predicates(self._predicates, bindings)(row):
            return _NO_ROWS
        return (self._pick(row),)


def applies(plan: SelectPlan) -> bool:
    """Whether a query is of one row by its key, and shows columns of the table as they are."""
    native = plan.native
    return (
        native is not None
        and plan.drawn is None
        and plan.locking is None
        and native.limit is None
        and native.offset is None
        and len(plan.relations) == 1
        and native.access.points
        and native.access.fixed_columns == len(native.access.columns)
        and all(isinstance(column, int) for column in native.columns)
    )


def _picker(places: Sequence[int]) -> Callable[[Row], Row]:
    if len(places) > 1:
        return itemgetter(*places)
    return lambda row: tuple([row[place] for place in places])
