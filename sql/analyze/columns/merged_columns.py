"""`SELECT *` over JOIN … USING and NATURAL JOIN, in the order that SQL gives its columns.

SQL puts the columns that are joined on first, DuckDB leaves them where the left side has them: the
star is spelled out where that differs, and columns that nobody knows are left to DuckDB.
"""

from __future__ import annotations

from sqlglot import exp

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from ...syntax.walks import find_all
from ..binder import Relations, scopes_in
from .star_columns import Item, StarColumns

_MARK = "$star"


def spell_out_merged(query: exp.Expr, relations: Relations) -> None:
    """Puts columns for the stars of `query`, in place."""
    for select in find_all(query, exp.Select):
        _hoist_first(select)
        _check_sources(select)
    places = [place for place, select in enumerate(find_all(query, exp.Select)) if _merges(select)]
    if not places:
        return
    marked = query.copy()
    for select in find_all(marked, exp.Select):
        for item in select.expressions:
            if isinstance(item, exp.Star) and not any(item.args.values()):
                item.replace(exp.column(_MARK, quoted=True))
    stars = StarColumns(scopes_in(marked), relations, _MARK, natural=True)
    theirs = list(find_all(marked, exp.Select))
    ours = list(find_all(query, exp.Select))
    for place in places:
        found = [_columns(item, stars) for item in theirs[place].expressions]
        items = [
            column
            for item, columns in zip(ours[place].expressions, found, strict=True)
            for column in ([item] if columns is None else columns)
        ]
        ours[place].set("expressions", items)


def _merges(select: exp.Select) -> bool:
    starred = any(isinstance(item, exp.Star) for item in select.expressions)
    return starred and any(map(merges_columns, select.args.get("joins") or ()))


def _hoist_first(select: exp.Select) -> None:
    """`FROM (a JOIN b …) JOIN c` is `FROM a JOIN b … JOIN c`."""
    first = select.args.get("from_")
    whole = first.this if first is not None else None
    if not isinstance(whole, exp.Subquery) or not isinstance(whole.this, exp.Table):
        return
    table = whole.this
    if whole.args.get("alias") is None and not whole.args.get("joins"):
        inner = table.args.get("joins") or []
        table.set("joins", None)
        whole.replace(table)
        select.set("joins", [*inner, *(select.args.get("joins") or [])])


def _check_sources(select: exp.Select) -> None:
    """Raises SQLError for the star of `FROM (a JOIN b USING (x))`, whose names nobody tells."""
    if not any(isinstance(item, exp.Star) for item in select.expressions):
        return
    sources = [select.args.get("from_"), *(select.args.get("joins") or ())]
    for source in (part.this for part in sources if part is not None):
        whole = isinstance(source, exp.Subquery) and not isinstance(source.this, exp.Query)
        if whole and any(map(merges_columns, find_all(source, exp.Join))):
            raise unsupported(
                "the star of a JOIN in parentheses with USING or NATURAL",
                hint="Leave the parentheses out, or name the columns.",
            )


def _columns(item: exp.Expr, stars: StarColumns) -> list[exp.Column] | None:
    """Returns the columns of a star; None for other items and where the columns are not known."""
    if not stars.is_star(item):
        return None
    assert isinstance(item, exp.Column), item
    try:
        items = stars.columns(item)
    except SQLError:
        return None
    names = [found[-1] for found in items]
    if any(len(found) == 1 and names.count(found[0]) > 1 for found in items):
        raise SQLError(
            "0A000",
            "it is not clear which columns the star of a FULL JOIN stands for",
            hint="Name the columns.",
        )
    # What is joined on is ordered and grouped by under its bare name.
    return [_column(found, alone=names.count(found[-1]) == 1) for found in items]


def _column(item: Item, *, alone: bool) -> exp.Column:
    return exp.column(item[-1], table=None if alone else item[0], quoted=True)


def merges_columns(join: exp.Join) -> bool:
    """Whether columns of both sides become one."""
    return bool(join.args.get("using")) or str(join.args.get("method") or "").upper() == "NATURAL"
