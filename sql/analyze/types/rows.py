"""Rows as values: what DuckDB would write as a struct of its own, and compare as one."""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...builtins.operators import COMPARISONS
from ...parse.queries import table_name
from ...syntax.refusals import unsupported
from ..columns.stars import Columns
from .types import Types

_AROUND = (exp.Paren, exp.Distinct, exp.Order)
_TAKES_ROWS = (*COMPARISONS, exp.Dot, exp.Count)


def check_whole_row(column: exp.Column, types: Types) -> None:
    """Raises SQLError 0A000 for `SELECT t FROM … t`, but where a row becomes a document, is counted
    or compared, has a column taken from it, or is tested by IS NULL, as its columns are."""
    row = types.row_of(column)
    if row is None:
        return
    parent = column.parent
    while isinstance(parent, _AROUND):
        parent = parent.parent
    if isinstance(parent, exp.Is) and isinstance(parent.expression, exp.Null):
        _test_entries(parent, column, row, types)
        return
    taken = isinstance(parent, _TAKES_ROWS) or _writes_json(parent)
    if not taken or _renamed(column):
        raise row_as_value(column)
    if _may_lack(column):
        _lack(column, parent, types)


def _lack(row: exp.Column, taker: exp.Expr | None, types: Types) -> None:
    """Makes NULL of a row that an outer join lacks: DuckDB has a struct of NULLs for it. Whether it
    is there is told by a column that is never NULL. Raises SQLError 0A000 where there is none."""
    name = _required_column(row, types)
    counted = isinstance(taker, exp.Count)
    distinct = isinstance(row.parent, exp.Distinct)
    if name is None or distinct or not (counted or _writes_json(taker)):
        raise row_as_value(row)
    entry = exp.column(name, table=row.name, quoted=True)
    present = exp.Is(this=entry, expression=exp.null(), negate=True)
    branch = exp.If(this=present, true=row.copy())
    row.replace(entry if counted else exp.Case(ifs=[branch]))


def _required_column(row: exp.Column, types: Types) -> str | None:
    """Returns a column without NULLs of the source of FROM with the row's name; None where none
    is known."""
    select = row.find_ancestor(exp.Select)
    parts = [] if select is None else [select.args.get("from_"), *select.args.get("joins", [])]
    for source in (part.this for part in parts if part is not None):
        if source.alias_or_name.lower() == row.name.lower():
            return next(iter(_required(source, types)), None)
    return None


def _required(source: exp.Expr, types: Types) -> list[str]:
    """The columns that hold no NULL: of a table the key's first, of a query on one table those that
    it passes on, and its counts."""
    if source.alias_column_names:
        return []
    if isinstance(source, exp.Table) and isinstance(source.this, exp.Identifier):
        descriptor = types.relations.get(table_name(source).parts)
        columns = (
            () if descriptor is None else (*descriptor.key_columns, *descriptor.visible_columns)
        )
        return [c.name for c in columns if not (c.nullable or c.hidden)]
    select = source.this.this if isinstance(source, exp.Lateral) else source.this
    if not isinstance(select, exp.Select) or select.args.get("group") is not None:
        return []
    first, joins = select.args.get("from_"), select.args.get("joins")
    if first is None or joins:
        return []
    passed, found = _required(first.this, types), list[str]()
    for item in select.expressions:
        inner = item.unalias()
        own = isinstance(inner, exp.Column) and inner.table in ("", first.this.alias_or_name)
        if isinstance(item, exp.Star):
            found += passed
        elif isinstance(inner, exp.Count) or (own and inner.name in passed):
            found.append(item.alias_or_name)
    return found


def _tables(select: exp.Select) -> list[exp.Table]:
    """The tables that FROM names, no functions and no queries."""
    parts = [select.args.get("from_"), *(select.args.get("joins") or [])]
    found = [part.this for part in parts if part is not None]
    return [t for t in found if isinstance(t, exp.Table) and isinstance(t.this, exp.Identifier)]


def _test_entries(test: exp.Is, row: exp.Column, columns: Columns, types: Types) -> None:
    """`t IS NULL` is true where every column is NULL, and `t IS NOT NULL` where none is."""
    tests = []
    for name, type in columns:
        entry = exp.column(name, table=row.name, quoted=True)
        types.say(entry, type)
        negated = bool(test.args.get("negate"))
        tests.append(exp.Is(this=entry, expression=exp.null(), negate=negated))
    test.replace(exp.paren(exp.and_(*tests, copy=False), copy=False))


def check_row(tree: exp.Expr) -> None:
    """Raises SQLError 0A000 for `ROW(…)` and `(a, b)` as a text, in an array, or as an argument."""
    parent = tree.parent
    while isinstance(parent, exp.Paren):
        parent = parent.parent
    if isinstance(parent, exp.Cast | exp.Array | exp.ArrayAgg | exp.Coalesce) and is_row(tree):
        raise row_as_value(tree)


def check_rows_listed(tree: exp.Expr) -> None:
    """Raises SQLError 0A000 for a row within a row of VALUES."""
    if not isinstance(tree, exp.Values):
        return
    for row in tree.expressions:
        for item in row.expressions:
            inner = item.unnest()
            if is_row(inner):
                raise row_as_value(inner)


def is_row(tree: exp.Expr) -> bool:
    """Whether a tree is `ROW(…)` or `(a, b)`."""
    named = isinstance(tree, exp.Anonymous) and tree.name.upper() == "ROW"
    return named or isinstance(tree, exp.Tuple)


def row_as_value(tree: exp.Expr) -> SQLError:
    """Returns the error (0A000) for a row where one value is expected."""
    return unsupported(
        "a row as a value", tree, "Select its entries one by one, or compare it with another row."
    )


def _may_lack(column: exp.Column) -> bool:
    """Whether a row may be missing, of an outer join: NULL, and in DuckDB a struct of NULLs."""
    select = column.find_ancestor(exp.Select)
    joins = [] if select is None else select.args.get("joins") or []
    behind = [join.this.alias_or_name.lower() for join in joins]
    name = column.name.lower()
    for place, join in enumerate(joins):
        side = str(join.args.get("side") or "").upper()
        if side in ("LEFT", "FULL") and behind[place] == name:
            return True
        if side in ("RIGHT", "FULL") and name not in behind[place:]:
            return True
    return False


def _renamed(column: exp.Column) -> bool:
    """Whether it is the row of `t AS name (a, b)`, whose columns keep the names of the table."""
    select = column.find_ancestor(exp.Select)
    if select is None or isinstance(column.parent, exp.Count):
        return False
    return any(
        table.alias_or_name.lower() == column.name.lower() and bool(table.alias_column_names)
        for table in _tables(select)
    )


def _writes_json(tree: exp.Expr | None) -> bool:
    """Whether a call makes a document of its arguments."""
    if not isinstance(tree, exp.Func):
        return False
    name = tree.name if isinstance(tree, exp.Anonymous) else tree.key
    return "json" in name.lower()
