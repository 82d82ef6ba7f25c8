"""From statements to plans, the tables being known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.descriptors.system_tables import FIRST_USER_ID
from ...catalog.values.errors import SQLError
from ...kvlayer.transaction_modes import WhenLocked
from ..access.key_access import KeyAccess, best_access
from ..analyze.binder import (
    Relations,
    check_columns,
    joined,
    places_of,
    refuse_sets,
    row_scope,
    table_called,
)
from ..analyze.columns.column_values import (
    assigned_column,
    constant_columns,
    is_default,
    refuse_computed,
    refuse_inserted,
    value_for,
)
from ..analyze.default_expressions import default_of
from ..analyze.enum_casts import bind_enum_casts
from ..analyze.given_tables import is_given, is_virtual
from ..analyze.predicates import Predicate, compile_predicates
from ..analyze.scalars import NotNative, Scalar
from ..analyze.stored_queries import (
    check_inserted,
    check_updated,
    columns_of_query,
    takes_query,
    values_query,
    without_defaults,
)
from ..analyze.types.blanks import without_blanks
from ..analyze.views import expand_views, refuse_view
from ..lower.transpile import AnalyticSelect, transpile
from ..parse.constants import ROWS, keeps_lists, written_out
from ..parse.dml import STEPS, with_ctes
from ..syntax.statements import Delete, Insert, PlannedStatement, Query, RowLock, Update, WithWrites
from ..syntax.trees import copied, error_at, folded, folded_alias, is_cte, table_name
from . import plans
from .conflict_plan import plan_conflict
from .drawn_items import split_items
from .native_select import native_select, piecewise, row_count
from .returning import projection, refuse_others, returned_table
from .scan_accesses import scan_accesses

_WRITING = {Insert: "insert into", Update: "update", Delete: "delete from"}
"""Words of the error for a view that cannot be written."""


def plan_statement(statement: PlannedStatement, relations: Relations) -> plans.Plan:
    """The plan of a statement whose tables are `relations`. Raises SQLError."""
    statement = expand_views(statement, relations)
    if isinstance(statement, WithWrites):
        return _with_writes(statement, relations)
    return _plan_part(statement, relations)


def _with_writes(statement: WithWrites, relations: Relations) -> plans.WithPlan:
    known = dict(relations)
    steps: list[plans.StepPlan] = []
    for number, step in enumerate(statement.steps, start=1):
        if any(step.name == other.name for other in statement.steps[: number - 1]):
            raise SQLError(
                "42712",
                f'WITH query name "{step.name}" specified more than once',
                position=step.position,
            )
        plan = _plan_part(step.statement, known)
        if isinstance(step.statement, Query):
            columns = columns_of_query(step.statement.tree, known)
        else:
            assert not isinstance(plan, plans.SelectPlan), plan
            columns = plan.returning.columns
        returned = returned_table(number, step, columns)
        if returned is not None:
            known[STEPS, step.name] = returned
        steps.append(plans.StepPlan(plan, returned))
    return plans.WithPlan(
        relations=tuple(relations.values()),
        steps=tuple(steps),
        main=_plan_part(statement.main, known),
    )


def _plan_part(
    statement: Query | Insert | Update | Delete, relations: Relations
) -> plans.SelectPlan | plans.InsertPlan | plans.UpdatePlan | plans.DeletePlan:
    if not isinstance(statement, Query):
        _refuse_target(statement, relations)
    bind_enum_casts(statement, relations)
    try:
        match statement:
            case Query(tree=tree, lock=None):
                return plan_select(tree, relations)
            case Query(tree=tree, lock=lock):
                assert lock is not None
                tree = written_out(tree)
                locking = plan_locking(tree, lock, relations)
                return replace(plan_select(tree, relations), locking=locking)
            case Insert():
                return _insert(statement, relations)
            case Update():
                return _update(statement, relations)
            case Delete():
                return _delete(statement, relations)
    except RecursionError as error:
        raise SQLError("54001", "statement is nested too deeply") from error


def _refuse_target(statement: Insert | Update | Delete, relations: Relations) -> None:
    """Raises SQLError for a virtual table, and for a view."""
    target = relations[statement.table.parts]
    if is_virtual(target):
        raise SQLError(
            "42501",
            f'virtual table "{statement.table}" cannot be written',
            position=statement.table.position,
        )
    refuse_view(target, statement.table, _WRITING[type(statement)])


def plan_select(tree: exp.Expr, relations: Relations) -> plans.SelectPlan:
    """Native where the shape allows it. DuckDB's plan is made at once where there is no other, and
    otherwise when a key range turns out to be too long to be read row by row. A list of constants
    that is kept as it is written is read so natively, and for DuckDB it is written out."""
    if isinstance(tree, exp.Values):
        refuse_sets(tree, "VALUES", series=True)
    query = without_blanks(tree, relations)
    query, items = split_items(query) or (query, None)
    virtual = any(map(is_virtual, relations.values()))  # their rows have no keys to be read by
    listed = isinstance(tree, exp.Select) and keeps_lists(tree.args.get("where"))
    native = None if virtual or items is not None else native_select(query, relations)
    if listed and native is None:
        return plan_select(written_out(tree), relations)

    def analytic() -> AnalyticSelect:
        if listed:
            return plan_select(written_out(tree), relations).analytic
        if virtual:
            return transpile(query, relations)
        select = transpile(query, relations, scan_accesses(query, relations))
        return select if items else replace(select, piecewise=piecewise(query, relations))

    plan = plans.SelectPlan(
        relations=tuple(relations.values()), native=native, make_analytic=analytic, drawn=items
    )
    if native is None:
        _ = plan.analytic  # what is wrong with the statement is said while it is planned
    return plan


def _insert(statement: Insert, relations: Relations) -> plans.InsertPlan:
    descriptor = relations[statement.table.parts]
    targets = places_of(statement.columns, descriptor)
    if isinstance(statement.source, exp.Values):
        refuse_sets(statement.source, "VALUES", series=True)
    rows: tuple[tuple[Scalar, ...], ...] = ()
    constants: plans.Constants | None = None
    query = None
    if statement.source is None:
        rows = (_defaults(descriptor),)
    elif isinstance(statement.source, exp.Values) and takes_query(statement.source):
        values, targets = without_defaults(statement.source, targets)
        query = plan_select(values_query(values, targets, descriptor), relations)
    elif isinstance(statement.source, exp.Values):
        rows = tuple(
            _row(values, targets, statement, descriptor) for values in statement.source.expressions
        )
        if (more := statement.source.meta.get(ROWS)) is not None:
            constants = plans.Constants(
                row_count=len(more),
                columns=constant_columns(more, descriptor, targets),
                defaults=_defaults(descriptor),
            )
    else:
        columns = [descriptor.visible_columns[place] for place in targets]
        check_inserted(statement, columns, relations)
        query = plan_select(statement.source, relations)
    return plans.InsertPlan(
        relations=tuple(relations.values()),
        descriptor=descriptor,
        mode=statement.mode,
        rows=rows,
        constants=constants,
        query=query,
        targets=targets,
        conflict=plan_conflict(statement, relations),
        named=statement.columns is not None,
        overriding=statement.overriding,
        returning=projection(statement.returning, descriptor, statement.alias),
    )


def _defaults(descriptor: TableDescriptor) -> tuple[Scalar, ...]:
    return tuple(default_of(column) for column in descriptor.visible_columns)


def _row(
    values: exp.Expr, targets: Sequence[int], statement: Insert, descriptor: TableDescriptor
) -> tuple[Scalar, ...]:
    """One row of VALUES as a scalar per column of the table."""
    items = values.expressions if isinstance(values, exp.Tuple) else [values]
    if len(items) > len(targets):
        raise error_at(
            items[len(targets)], "42601", "INSERT has more expressions than target columns"
        )
    if len(items) < len(targets) and statement.columns is not None:
        raise error_at(values, "42601", "INSERT has more target columns than expressions")
    row = list(_defaults(descriptor))
    for place, item in zip(targets, items, strict=False):
        column = descriptor.visible_columns[place]
        if not is_default(item):
            refuse_computed(column, item)
            refuse_inserted(column, statement.overriding, item)
            row[place] = value_for(item, descriptor, place, {}, None)
    return tuple(row)


def _update(statement: Update, relations: Relations) -> plans.UpdatePlan:
    descriptor = relations[statement.table.parts]
    relation = statement.alias or descriptor.name
    scope = row_scope(descriptor)
    assignments: list[plans.Assignment] = []
    computed: list[exp.Expr] = []
    for target, value in statement.assignments:
        taken = [earlier.place for earlier in assignments]
        place, column = assigned_column(descriptor, target, value, taken)
        try:
            if is_default(value):
                scalar = default_of(column)
            elif statement.sources and value.find(exp.Column) is not None:
                raise NotNative("a name that may be another table's")
            else:
                check_columns(value, descriptor, relation)
                scalar = value_for(value, descriptor, place, scope, relation)
            assignments.append(plans.Assignment(place, scalar, None))
        except NotNative:
            refuse_sets(value, "UPDATE")
            assignments.append(plans.Assignment(place, None, len(computed)))
            computed.append(value)
    if computed:
        places = [a.place for a in assignments if a.scalar is None]
        columns = [descriptor.visible_columns[place] for place in places]
        check_updated(statement, list(zip(columns, computed, strict=True)), relations)
    refuse_others(statement, descriptor, relation, relations)
    keys = set(descriptor.primary_key)
    return plans.UpdatePlan(
        relations=tuple(relations.values()),
        finder=_finder(statement, descriptor, relation, relations, computed),
        assignments=tuple(assignments),
        moves_keys=any(descriptor.visible_columns[a.place].id in keys for a in assignments),
        returning=projection(statement.returning, descriptor, relation),
    )


def _delete(statement: Delete, relations: Relations) -> plans.DeletePlan:
    descriptor = relations[statement.table.parts]
    relation = statement.alias or descriptor.name
    refuse_others(statement, descriptor, relation, relations)
    return plans.DeletePlan(
        relations=tuple(relations.values()),
        finder=_finder(statement, descriptor, relation, relations, ()),
        returning=projection(statement.returning, descriptor, relation),
    )


def _finder(
    statement: Update | Delete,
    descriptor: TableDescriptor,
    relation: str,
    relations: Relations,
    computed: Sequence[exp.Expr],
) -> plans.RowFinder:
    """The way to the rows: by keys where WHERE fixes some, else by DuckDB."""
    given = statement
    if statement.where is not None:
        statement = replace(statement, where=without_blanks(statement.where, relations))
    if not statement.sources:
        check_columns(statement.where, descriptor, relation)
    access: KeyAccess | None = None
    predicates: tuple[Predicate, ...] = ()
    analytic = None
    try:
        predicates = compile_predicates(statement.where, row_scope(descriptor), relation)
        found = best_access(descriptor, predicates, [c.id for c in descriptor.visible_columns])
        alone = not computed and not statement.sources
        if alone and (found.restricts or statement.where is None):
            access = found
    except NotNative:
        pass
    if access is None and keeps_lists(given.where):
        assert given.where is not None, given
        given = replace(given, where=written_out(given.where))
        return _finder(given, descriptor, relation, relations, computed)
    if access is None:
        query = _finding(statement, descriptor, relation, computed)
        analytic = transpile(query, relations, scan_accesses(query, relations))
    return plans.RowFinder(
        descriptor=descriptor,
        access=access,
        predicates=predicates if access is not None else (),
        analytic=analytic,
    )


def _finding(
    statement: Update | Delete,
    descriptor: TableDescriptor,
    relation: str,
    computed: Sequence[exp.Expr],
) -> exp.Select:
    """`WITH … SELECT relation.…, computed … FROM table AS relation, sources WHERE …`"""
    columns = [
        exp.column(column.name, table=relation, quoted=True)
        for column in descriptor.visible_columns
    ]
    query = exp.select(*columns, *map(copied, computed), copy=False)
    query = query.from_(table_called(statement.table.parts, relation))
    query = joined(query, statement.sources)
    if statement.where is not None:
        query = query.where(copied(statement.where), copy=False)
    return with_ctes(query, statement.ctes)


def plan_locking(tree: exp.Expr, lock: RowLock, relations: Relations) -> plans.LockingPlan:
    """The locking part of a query's plan. Raises SQLError."""
    assert isinstance(tree, exp.Select), tree
    tables = _locked_tables(tree, lock, relations)
    keyed = tree.copy()
    for number, (alias, locked) in enumerate(tables.items()):
        for column in locked.key_columns:
            key = exp.column(column.name, table=alias, quoted=True)
            keyed.append(
                "expressions", exp.alias_(key, f"locked {number} {column.name}", quoted=True)
            )
    limit = offset = None
    if lock.when_locked is WhenLocked.SKIP:
        # Rows that are skipped must not count: the limit is applied behind the locking.
        try:
            limit, offset = row_count(tree.args.get("limit")), row_count(tree.args.get("offset"))
        except NotNative:
            raise SQLError(
                "0A000", "SKIP LOCKED takes LIMIT and OFFSET of constants and parameters"
            ) from None
        keyed.set("limit", None)
        keyed.set("offset", None)
    return plans.LockingPlan(
        tables=tuple(tables.values()),
        mode=lock.mode,
        when_locked=lock.when_locked,
        analytic=transpile(keyed, relations, scan_accesses(tree, relations)),
        limit=limit,
        offset=offset,
    )


def _locked_tables(
    tree: exp.Select, lock: RowLock, relations: Relations
) -> dict[str, TableDescriptor]:
    """The tables that are locked, by alias."""
    sources = _sources(tree)
    found: dict[str, TableDescriptor] = {}
    for name in lock.tables or sources:
        source = sources.get(name)
        if source is None:
            raise SQLError("42P01", f'relation "{name}" in FOR UPDATE clause not found in FROM')
        if source.args.get("db") is None and is_cte(source, folded(source.this)):
            continue  # as in Postgres, its rows are no table's
        descriptor = relations[table_name(source).parts]
        if is_given(descriptor):
            continue
        if descriptor.id < FIRST_USER_ID:
            raise error_at(source, "42501", f'permission denied for table "{descriptor.name}"')
        found[name] = descriptor
    if not found:
        raise SQLError("0A000", "FOR UPDATE cannot be applied to a WITH query")
    return found


def _sources(tree: exp.Select) -> dict[str, exp.Table]:
    """The tables of FROM and its joins; subqueries among them are not locked."""
    items = [tree.args["from_"].this]
    items += [join.this for join in tree.args.get("joins") or []]
    return {folded_alias(item): item for item in items if isinstance(item, exp.Table)}
