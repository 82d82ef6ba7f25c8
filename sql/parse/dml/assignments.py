"""SET and ON CONFLICT: sqlglot's trees as pairs of a column and its new value.

    SET a = 1, (b, c) = (2, DEFAULT), (d, e) = (SELECT x, y FROM u)

are five assignments; the last two each have a subquery of one column. An assignment to a part of a
column, `f[2] = 1`, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.refusals import error_at, unsupported
from ...syntax.statements import OnConflict
from ...syntax.tree_names import alias_named, position_of

Assigned = tuple[exp.Column, exp.Expr]


def assignments(items: Sequence[exp.Expr]) -> tuple[Assigned, ...]:
    """Returns the assignments of a SET clause. Raises SQLError 42601 for an item that is none."""
    return tuple(pair for item in items for pair in _assigned(item))


def _assigned(item: exp.Expr) -> Sequence[Assigned]:
    if not isinstance(item, exp.EQ):
        raise SQLError("42601", "SET takes column = value", position=position_of(item) or 1)
    target, value = item.this, item.expression
    if isinstance(target, exp.Column):
        return [(target, value)]
    if isinstance(target, exp.Bracket):
        raise unsupported(
            "SET of a part of a column",
            target,
            "SET a = a[:1] || 9 || a[3:], or SET doc = jsonb_set(doc, '{a,b}', '9').",
        )
    targets = target.expressions if isinstance(target, exp.Tuple) else [target.unnest()]
    if not all(isinstance(column, exp.Column) for column in targets):
        raise error_at(target, "42601", "SET takes column = value")
    values = _values(value, len(targets))
    if len(targets) != len(values):
        raise error_at(target, "42601", "number of columns does not match number of values")
    return list(zip(targets, values, strict=True))


def _values(value: exp.Expr, count: int) -> Sequence[exp.Expr]:
    """Returns the values behind `(a, b) =`, one for each column."""
    match value:
        case exp.Tuple():
            return list(value.expressions)
        case exp.Anonymous() if value.name.upper() == "ROW":
            return list(value.expressions)
        case exp.Subquery():
            return [_item_of(value, place, count) for place in range(count)]
    if count == 1:
        return [value]
    raise error_at(
        value,
        "0A000",
        "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
    )


def _item_of(query: exp.Subquery, place: int, count: int) -> exp.Expr:
    """The query with only its column number `place`: the value of one of several targets."""
    select = query.this
    plain = isinstance(select, exp.Select) and not select.args.get("distinct")
    if plain and not any(item.find(exp.Star) for item in select.expressions):
        if len(select.expressions) != count:
            raise error_at(query, "42601", "number of columns does not match number of values")
        if not select.args.get("order"):
            single = query.copy()
            single.this.set("expressions", [select.expressions[place].copy()])
            return single
    names = [f"item{number}" for number in range(count)]
    inner = exp.Subquery(this=select.copy(), alias=alias_named("items", names))
    return exp.Subquery(this=exp.select(exp.column(names[place], quoted=True)).from_(inner))


def parse_conflict(clause: exp.Expr, position: int | None) -> OnConflict:
    """The ON CONFLICT clause of an INSERT. Raises SQLError."""
    columns = _target(clause, position)
    constraint = clause.args.get("constraint")
    action = clause.args.get("action")
    updates = action is not None and action.name.upper() == "DO UPDATE"
    if updates and columns is None and constraint is None:
        raise SQLError(
            "42601",
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
            hint="For example, ON CONFLICT (column_name).",
            position=position,
        )
    where = clause.args.get("where")
    return OnConflict(
        columns=columns,
        constraint=constraint,
        updates=updates,
        assignments=assignments(clause.expressions or ()) if updates else (),
        where=None if where is None else where.this,
        position=position,
    )


def _target(clause: exp.Expr, position: int | None) -> tuple[exp.Identifier, ...] | None:
    keys = clause.args.get("conflict_keys")
    if not keys:
        return None
    columns: list[exp.Identifier] = []
    for key in keys:
        inner = key.this if isinstance(key, exp.Ordered) else key
        if isinstance(inner, exp.Column):
            inner = inner.this
        if not isinstance(inner, exp.Identifier):
            raise SQLError(
                "42P10",
                "there is no unique or exclusion constraint matching the ON CONFLICT specification",
                detail="Indexes are on columns, not on expressions.",
                position=position,
            )
        columns.append(inner)
    return tuple(columns)
