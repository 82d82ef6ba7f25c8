"""MERGE, planned: a query of the pairs of source and target, and one of the sources without.

    MERGE INTO t USING s ON t.k = s.k
    WHEN MATCHED AND s.gone THEN DELETE
    WHEN MATCHED THEN UPDATE SET v = s.v
    WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v)

    SELECT t.…, CASE WHEN s.gone THEN 0 ELSE 1 END, CASE WHEN … = 1 THEN s.v END
    FROM s JOIN t ON t.k = s.k

    SELECT 0, s.k, s.v
    FROM s ANTI JOIN t ON t.k = s.k

A row's action is the first WHEN of its kind whose condition is true; what an action needs of
expressions is computed for its own rows alone. What Python evaluates without a row is not asked.
"""

from __future__ import annotations

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.rows.row_codec import codec_for
from ...catalog.values.errors import SQLError
from ..analyze.binder import Relations, column_of, places_of, with_ctes_of
from ..analyze.columns.column_values import is_default, refuse_computed, value_for
from ..analyze.columns.element_assignments import whole_value
from ..analyze.columns.identity import ignores, refuse_inserted, refuse_updated
from ..analyze.default_expressions import default_of
from ..analyze.scalars import NotNative, compile_scalar
from ..lower.transpile import transpile
from ..parse import folded, position_of
from ..syntax.merge_statements import Merge, MergeAction, MergeWhen
from .plans import Assignment, MergeActionPlan, MergePlan, MergeSide


def plan_merge(statement: Merge, relations: Relations) -> MergePlan:
    """Raises SQLError."""
    descriptor = relations[statement.table.parts]
    relation = statement.alias or descriptor.name
    matched, unmatched = (
        _Side(statement, descriptor, relation, relations, matched=matched).plan()
        for matched in (True, False)
    )
    keys = set(descriptor.primary_key)
    actions = () if matched is None else matched.actions
    visible = descriptor.visible_columns
    return MergePlan(
        relations=tuple(relations.values()),
        descriptor=descriptor,
        codec=codec_for(descriptor),
        matched=matched,
        unmatched=unmatched,
        moves_keys=any(
            visible[assignment.place].id in keys
            for action in actions
            for assignment in action.assignments
        ),
    )


class _Side:
    """The WHENs of rows that match, or of those that do not."""

    def __init__(
        self,
        statement: Merge,
        descriptor: TableDescriptor,
        relation: str,
        relations: Relations,
        *,
        matched: bool,
    ) -> None:
        self._statement = statement
        self._descriptor = descriptor
        self._relation = relation
        self._relations = relations
        self._matched = matched
        self._whens = [when for when in statement.whens if when.matched is matched]
        self._computed: list[exp.Expr] = []

    def plan(self) -> MergeSide | None:
        if not self._whens:
            return None
        actions = tuple(self._action(number, when) for number, when in enumerate(self._whens))
        columns = self._descriptor.visible_columns if self._matched else ()
        own = [exp.column(column.name, table=self._relation, quoted=True) for column in columns]
        query = exp.select(*own, self._choice(), *self._computed)
        query = query.from_(self._statement.source.copy())
        target = exp.Join(
            this=self._target(),
            on=self._statement.condition.copy(),
            **({} if self._matched else {"kind": "ANTI"}),
        )
        query.set("joins", [*(query.args.get("joins") or ()), target])
        query = with_ctes_of(self._statement, query)
        return MergeSide(select=transpile(query, self._relations), actions=actions)

    def _target(self) -> exp.Table:
        parts = [exp.to_identifier(part, quoted=True) for part in self._statement.table.parts]
        names = dict(zip(("this", "db", "catalog"), reversed(parts), strict=False))
        alias = exp.TableAlias(this=exp.to_identifier(self._relation, quoted=True))
        return exp.Table(**names, alias=alias)

    def _choice(self) -> exp.Expr:
        """The number of a row's action; NULL for none."""
        choice = exp.Case(ifs=[])
        for number, when in enumerate(self._whens):
            chosen = exp.Literal.number(number)
            if when.condition is None:
                if not choice.args["ifs"]:
                    return chosen
                choice.set("default", chosen)
                return choice
            choice.append("ifs", exp.If(this=when.condition.copy(), true=chosen))
        return choice

    def _action(self, number: int, when: MergeWhen) -> MergeActionPlan:
        match when.action:
            case MergeAction.INSERT:
                assigned = self._inserted(number, when)
            case MergeAction.UPDATE:
                assigned = self._updated(number, when)
            case MergeAction.DELETE | MergeAction.NOTHING:
                assigned = ()
        return MergeActionPlan(when.action, assigned)

    def _inserted(self, number: int, when: MergeWhen) -> tuple[Assignment, ...]:
        descriptor = self._descriptor
        places = places_of(when.columns, descriptor)
        values = when.values or ()
        if len(values) > len(places) or (when.columns is not None and len(values) < len(places)):
            more, less = ("expressions", "target columns")
            if len(values) < len(places):
                more, less = less, more
            raise SQLError("42601", f"INSERT has more {more} than {less}", position=when.position)
        assigned = {
            place: Assignment(place, default_of(column), None)
            for place, column in enumerate(descriptor.visible_columns)
        }
        for place, value in zip(places, values, strict=False):
            column = descriptor.visible_columns[place]
            if is_default(value) or ignores(column, when.overriding):
                continue
            refuse_computed(column, value)
            refuse_inserted(column, when.overriding, value)
            assigned[place] = self._assignment(number, place, value)
        return tuple(assigned.values())

    def _updated(self, number: int, when: MergeWhen) -> tuple[Assignment, ...]:
        assigned: dict[int, Assignment] = {}
        for target, given in when.assignments:
            position = position_of(target)
            place, column = column_of(self._descriptor, folded(target.this), position)
            if place in assigned:
                raise SQLError(
                    "42601",
                    f'multiple assignments to same column "{column.name}"',
                    position=position,
                )
            value = whole_value(given, column, self._relation)
            if is_default(value):
                assigned[place] = Assignment(place, default_of(column), None)
                continue
            refuse_computed(column, target)
            refuse_updated(column, target)
            assigned[place] = self._assignment(number, place, value)
        return tuple(assigned.values())

    def _assignment(self, number: int, place: int, value: exp.Expr) -> Assignment:
        try:
            compile_scalar(value, {})
        except NotNative:
            choice = exp.EQ(this=self._choice(), expression=exp.Literal.number(number))
            alone = len(self._whens) == 1 and self._whens[0].condition is None
            own = exp.Case(ifs=[exp.If(this=choice, true=value.copy())])
            self._computed.append(value.copy() if alone else own)
            return Assignment(place, None, len(self._computed) - 1)
        return Assignment(place, value_for(value, self._descriptor, place, {}, None), None)
