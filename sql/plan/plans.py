"""Plans: statements with every name resolved, ready to run with any parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...cached import cached_property
from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.elements import Index
from ...catalog.values.column_types import Datum
from ...kvlayer.process.fibre import in_slices
from ...kvlayer.transaction_modes import LockMode, WhenLocked
from ..access.key_access import KeyAccess
from ..analyze.predicates import Predicate
from ..analyze.scalars import Scalar
from ..lower.transpile import AnalyticSelect
from ..results.results import ResultColumn
from ..syntax.statements import InsertMode
from .drawn_items import DrawnItems


@dataclass(frozen=True, slots=True, kw_only=True)
class NativeSelect:
    """A query on one table's keys.

    `columns` are the places of what the result shows in a row with `constants` behind it. Rows come
    in key order, or against it when `reverse`. Of rows that are `covered` the access's entries say
    all that is asked for.
    """

    access: KeyAccess
    covered: bool
    predicates: tuple[Predicate, ...]
    columns: tuple[int, ...]
    constants: tuple[int, ...]
    names: tuple[ResultColumn, ...]
    reverse: bool
    limit: Scalar | None
    offset: Scalar | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LockingPlan:
    """FOR UPDATE and FOR SHARE of the rows of `tables`.

    `analytic` is the query with the key columns of each locked table behind its own columns.
    `limit` and `offset` are the query's where rows may be skipped; else `analytic` has them.
    """

    tables: tuple[TableDescriptor, ...]
    mode: LockMode
    when_locked: WhenLocked
    analytic: AnalyticSelect
    limit: Scalar | None
    offset: Scalar | None


@dataclass(frozen=True, kw_only=True)
class SelectPlan:
    """`native` where the statement has that shape; DuckDB can always do it too.

    What DuckDB would do is made when it is first asked for: a point read never asks, and it is most
    of the planning of one.
    """

    relations: tuple[TableDescriptor, ...]
    native: NativeSelect | None
    make_analytic: Callable[[], AnalyticSelect] = field(compare=False, repr=False)
    locking: LockingPlan | None = None
    drawn: DrawnItems | None = None

    @cached_property
    def analytic(self) -> AnalyticSelect:
        return self.make_analytic()

    async def analysed(self) -> AnalyticSelect:
        """Returns `analytic`, made in slices of the loop."""
        if "analytic" not in self.__dict__:
            await in_slices(lambda: self.analytic)
        return self.analytic


@dataclass(frozen=True, slots=True)
class Projection:
    """RETURNING: scalars over a row, and what the columns are called. Empty for none."""

    columns: tuple[ResultColumn, ...]
    scalars: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Assignment:
    """`column = …`: a scalar over the old row, or the finder's extra column number `computed`."""

    place: int
    scalar: Scalar | None
    computed: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictPlan:
    """ON CONFLICT. `arbiters` are the unique indexes that decide.

    DO UPDATE changes a row by `assignments` where all of `predicates` are true, both over the row
    that is there with the proposed one behind it. What is not native `analytic` computes, of rows
    given as `pairs`: their number, whether the row is to be changed, and then the values.
    """

    arbiters: tuple[Index, ...]
    updates: bool
    assignments: tuple[Assignment, ...] = ()
    predicates: tuple[Predicate, ...] = ()
    pairs: TableDescriptor | None = None
    analytic: AnalyticSelect | None = None
    moves_keys: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Rows of VALUES that are constants: by the places of their columns in the table, of which the
    others take their `defaults`."""

    row_count: int
    columns: Mapping[int, Sequence[Datum]]
    defaults: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InsertPlan:
    """INSERT or UPSERT.

    `rows` are VALUES, each a scalar per column of the table, in its order, and behind them come
    those that `constants` has. Otherwise `query` computes the rows, and `targets[i]` is the table's
    column for the query's i-th; columns not among them take their defaults. Where the statement has
    not `named` them, the query may have fewer columns.
    """

    relations: tuple[TableDescriptor, ...]
    descriptor: TableDescriptor
    mode: InsertMode
    rows: tuple[tuple[Scalar, ...], ...]
    constants: Constants | None
    query: SelectPlan | None
    targets: tuple[int, ...]
    returning: Projection
    conflict: ConflictPlan | None = None
    named: bool = True
    overriding: bool = False

    @property
    def row_count(self) -> int:
        """The number of rows of VALUES."""
        return len(self.rows) + (0 if self.constants is None else self.constants.row_count)


@dataclass(frozen=True, slots=True, kw_only=True)
class RowFinder:
    """The rows that a DELETE or UPDATE is about.

    By `access` and `predicates`, where the WHERE clause has that shape, else by `analytic`, which
    returns whole rows and behind them the values that it computed for assignments. A row that was
    found more than once counts once.
    """

    descriptor: TableDescriptor
    access: KeyAccess | None
    predicates: tuple[Predicate, ...]
    analytic: AnalyticSelect | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePlan:
    relations: tuple[TableDescriptor, ...]
    finder: RowFinder
    assignments: tuple[Assignment, ...]
    moves_keys: bool
    returning: Projection

    @property
    def descriptor(self) -> TableDescriptor:
        return self.finder.descriptor


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletePlan:
    relations: tuple[TableDescriptor, ...]
    finder: RowFinder
    returning: Projection

    @property
    def descriptor(self) -> TableDescriptor:
        return self.finder.descriptor


@dataclass(frozen=True, slots=True)
class StepPlan:
    """A part of a WITH that writes or locks rows, and the table in which the parts behind it read
    its rows."""

    plan: SelectPlan | InsertPlan | UpdatePlan | DeletePlan
    returned: TableDescriptor | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WithPlan:
    """A statement whose WITH writes or locks rows. Every part reads before any part writes, and
    the parts that lock come before those that read."""

    relations: tuple[TableDescriptor, ...]
    steps: tuple[StepPlan, ...]
    main: SelectPlan | InsertPlan | UpdatePlan | DeletePlan

    @property
    def parts(self) -> tuple[SelectPlan | InsertPlan | UpdatePlan | DeletePlan, ...]:
        """The plans of all parts, in order."""
        return (*(step.plan for step in self.steps), self.main)


Plan = SelectPlan | InsertPlan | UpdatePlan | DeletePlan | WithPlan
