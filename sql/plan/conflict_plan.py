"""ON CONFLICT: which indexes decide, and what becomes of the row that is there.

Expressions see two rows, the one that is there by the table's name and the one that was proposed by
`excluded`. They are planned over one wider row, which names the second one's columns
`excluded.name`:

    INSERT INTO t VALUES (1, 5) ON CONFLICT (k) DO UPDATE SET n = t.n + excluded.n

    existing row  proposed row
    k  n          k  n                 n = n + "excluded.n"
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.elements import ElementState, Index
from ...catalog.values.column_types import ColumnType
from ...catalog.values.errors import SQLError
from ..analyze.binder import Relations, column_of, row_scope, table_called, unknown_column
from ..analyze.columns.column_values import assigned_column, is_default, value_for
from ..analyze.default_expressions import default_of
from ..analyze.given_tables import ROW_NUMBER, given_table
from ..analyze.predicates import Predicate, compile_predicates
from ..analyze.scalars import NotNative, Scope
from ..analyze.types.blanks import without_blanks
from ..lower.transpile import AnalyticSelect, transpile
from ..syntax.statements import Insert, InsertMode, OnConflict
from ..syntax.trees import error_at, find_all, folded, position_of, quoted_names
from .plans import Assignment, ConflictPlan

EXCLUDED = "excluded"
_PAIRS = ("$conflict", "pairs")


def plan_conflict(statement: Insert, relations: Relations) -> ConflictPlan | None:
    """The plan of the statement's ON CONFLICT clause, if it has one. Raises SQLError."""
    descriptor = relations[statement.table.parts]
    clause = statement.conflict
    if statement.mode is InsertMode.UPSERT:
        clause = _of_upsert(statement, descriptor)
    if clause is None:
        return None
    arbiters = _arbiters(clause, descriptor)
    if not clause.updates:
        return ConflictPlan(arbiters=arbiters, updates=False)
    return _Updating(descriptor, statement.alias or descriptor.name, relations).plan(
        clause, arbiters
    )


def _of_upsert(statement: Insert, descriptor: TableDescriptor) -> OnConflict | None:
    """The clause that changes the columns that an UPSERT lists, and no other, of a row that is
    there. None where it lists every one, or none: it replaces the row without looking."""
    listed = {folded(name) for name in statement.columns or ()}
    written = [column for column in descriptor.visible_columns if column.computed is None]
    if not listed or listed.issuperset(column.name for column in written):
        return None
    key = descriptor.key_columns
    return OnConflict(
        columns=tuple(quoted_names(column.name for column in key)),
        constraint=None,
        updates=True,
        assignments=tuple(
            (exp.column(name, quoted=True), exp.column(name, table=EXCLUDED, quoted=True))
            for name in (column.name for column in written if column not in key)
            if name in listed
        ),
    )


def _arbiters(clause: OnConflict, descriptor: TableDescriptor) -> tuple[Index, ...]:
    """The unique indexes in which the clause looks for a conflict."""
    unique = [index for index in descriptor.indexes if index.unique and index.written]
    if clause.constraint is not None:
        name = folded(clause.constraint)
        for index in (descriptor.primary_index, *unique):
            if index.name == name and index.state is ElementState.PUBLIC:
                return (index,)
        raise error_at(
            clause.constraint,
            "42704",
            f'constraint "{name}" for table "{descriptor.name}" does not exist',
        )
    if clause.columns is None:
        return (descriptor.primary_index, *unique)
    columns = {
        column_of(descriptor, folded(identifier), position_of(identifier))[1].id
        for identifier in clause.columns
    }
    for index in (descriptor.primary_index, *unique):
        if set(index.columns) == columns and index.state is ElementState.PUBLIC:
            return (index,)
    raise error_at(
        clause.columns[0],
        "42P10",
        "there is no unique or exclusion constraint matching the ON CONFLICT specification",
    )


class _Updating:
    """Plans DO UPDATE over the wider rows of one table, called `relation` in the statement."""

    def __init__(self, descriptor: TableDescriptor, relation: str, relations: Relations) -> None:
        self._descriptor = descriptor
        self._relation = relation
        self._relations = relations
        columns = [(column.name, column.type) for column in descriptor.visible_columns]
        proposed = [(f"{EXCLUDED}.{name}", type) for name, type in columns]
        self._columns: list[tuple[str, ColumnType]] = [*columns, *proposed]
        width = len(columns)
        self._scope: Scope = {
            **row_scope(descriptor),
            **{name: (width + place, type.broad) for place, (name, type) in enumerate(proposed)},
        }

    def plan(self, clause: OnConflict, arbiters: tuple[Index, ...]) -> ConflictPlan:
        assignments: list[Assignment] = []
        computed: list[exp.Expr] = []
        for target, value in clause.assignments:
            assignments.append(self._assignment(target, value, assignments, computed))
        predicates: tuple[Predicate, ...] = ()
        condition: exp.Expr | None = None
        if clause.where is not None:
            own: Relations = {(self._relation,): self._descriptor}
            where = self._over_pairs(without_blanks(clause.where, own))
            try:
                predicates = compile_predicates(where, self._scope, self._relation)
            except NotNative:
                condition = where
        analytic = pairs = None
        if computed or condition is not None:
            pairs = given_table(0, self._relation, self._columns)
            analytic = self._analytic(pairs, computed, condition)
        keys = set(self._descriptor.primary_key)
        visible = self._descriptor.visible_columns
        return ConflictPlan(
            arbiters=arbiters,
            updates=True,
            assignments=tuple(assignments),
            predicates=predicates,
            pairs=pairs,
            analytic=analytic,
            moves_keys=any(visible[assignment.place].id in keys for assignment in assignments),
        )

    def _assignment(
        self,
        target: exp.Column,
        value: exp.Expr,
        earlier: Sequence[Assignment],
        computed: list[exp.Expr],
    ) -> Assignment:
        taken = [assignment.place for assignment in earlier]
        place, column = assigned_column(self._descriptor, target, value, taken)
        if is_default(value):
            return Assignment(place, default_of(column), None)
        tree = self._over_pairs(value)
        try:
            scalar = value_for(tree, self._descriptor, place, self._scope, self._relation)
        except NotNative:
            computed.append(tree)
            return Assignment(place, None, len(computed) - 1)
        return Assignment(place, scalar, None)

    def _over_pairs(self, tree: exp.Expr) -> exp.Expr:
        """The expression with the proposed row's columns by their names in the wider row."""
        root = exp.Paren(this=tree.copy())
        for column in list(find_all(root, exp.Column)):
            if not isinstance(column.this, exp.Identifier):
                continue
            qualifier = column.args.get("table")
            if qualifier is None:
                self._check_bare(column)
            elif folded(qualifier) == EXCLUDED:
                column.replace(self._proposed(column))
            elif column.find_ancestor(exp.Query) is None:
                self._check_qualified(column, folded(qualifier))
        inner: exp.Expr = root.this
        return inner

    def _proposed(self, column: exp.Column) -> exp.Column:
        name = folded(column.this)
        column_of(self._descriptor, name, position_of(column))
        renamed = exp.to_identifier(f"{EXCLUDED}.{name}", quoted=True)
        renamed.meta.update(column.this.meta)
        return exp.Column(this=renamed)

    def _check_bare(self, column: exp.Column) -> None:
        """A bare name means a column of both rows; in a subquery it may mean another."""
        if column.find_ancestor(exp.Query) is not None or is_default(column):
            return
        name, position = folded(column.this), position_of(column)
        if self._descriptor.find_column(name) is None:
            raise unknown_column(name, [self._descriptor], position)
        raise SQLError(
            "42702",
            f'column reference "{name}" is ambiguous',
            hint=f"Write {self._relation}.{name} for the row that is there, or {EXCLUDED}.{name}.",
            position=position,
        )

    def _check_qualified(self, column: exp.Column, qualifier: str) -> None:
        if qualifier != self._relation:
            raise error_at(column, "42P01", f'missing FROM-clause entry for table "{qualifier}"')
        column_of(self._descriptor, folded(column.this), position_of(column))

    def _analytic(
        self, pairs: TableDescriptor, computed: Sequence[exp.Expr], condition: exp.Expr | None
    ) -> AnalyticSelect:
        """`SELECT "$row", condition, computed … FROM pairs AS relation`"""
        items = [
            exp.column(ROW_NUMBER, quoted=True),
            exp.true() if condition is None else condition,
            *computed,
        ]
        aliased = [exp.alias_(item, f"e{number}") for number, item in enumerate(items)]
        return transpile(
            exp.select(*aliased).from_(table_called(_PAIRS, self._relation)),
            {**self._relations, _PAIRS: pairs},
        )
