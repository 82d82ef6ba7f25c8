"""Rows as values: what DuckDB would write as a struct of its own, and compare as one."""

from __future__ import annotations

from sqlglot import exp

from ...catalog.errors import SQLError
from ..parser import position_of
from .operators import COMPARISONS
from .stars import Columns
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
    if not taken or _may_lack(column) or _renamed(column):
        raise row_as_value(column)


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
    return SQLError(
        "0A000",
        "a row as a value is not supported",
        position=position_of(tree),
        hint="Select its entries one by one, or compare it with another row.",
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
    sources = [select.args.get("from_"), *(select.args.get("joins") or [])]
    return any(
        isinstance(source.this, exp.Table)
        and source.this.alias_or_name.lower() == column.name.lower()
        and bool(source.this.alias_column_names)
        and isinstance(source.this.this, exp.Identifier)
        for source in sources
        if source is not None
    )


def _writes_json(tree: exp.Expr | None) -> bool:
    """Whether a call makes a document of what it is given."""
    if not isinstance(tree, exp.Func):
        return False
    name = tree.name if isinstance(tree, exp.Anonymous) else tree.key
    return "json" in name.lower()
