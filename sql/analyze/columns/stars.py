"""Stars, and the columns that they stand for, in the order that SQL gives them.

    SELECT * FROM a JOIN b USING (id)       SELECT a.id, a.x, b.y FROM a JOIN b USING (id)

A whole row that a function makes a document of is written out, too: Kysely and Drizzle have their
relations computed so.

    SELECT json_agg(t) FROM t               SELECT json_agg(jsonb_build_object('a', t.a)) FROM t

Everything behind the expansion reads columns. A star stays only where it is not clear what it
stands for: two columns of one name in a derived table, or a function of several columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ...syntax.trees import STORED, error_at, exchange, find_all, folded, folded_alias, table_name
from ..binder import TABLE_FUNCTIONS, Relations, sources_named
from .output_columns import output_name

Item = tuple[str, ...]
"""A column by its name, or by an alias and its name."""

_OF_ROWS = frozenset({"to_json", "to_jsonb", "row_to_json", "json_agg", "jsonb_agg"})
"""Functions that take a whole row."""

_OF_JOIN = ("kind", "side", "method", "on", "using")


class Unclear(Exception):
    """Nobody can say which columns a star stands for. Never reaches a client."""


def is_star(item: exp.Expr) -> bool:
    """Whether an item of a select list is all columns: of FROM, or of what it names."""
    star = item.this if isinstance(item, exp.Column) else item
    return item.is_star and not any(star.args.values())


def expand_stars(query: exp.Expr, relations: Relations, scopes: Sequence[QueryScope]) -> None:
    """Puts columns for the stars of `query`, and documents for its whole rows, in place. Raises
    SQLError 42601 and 0A000."""
    stars = Stars(scopes, relations)
    _write_rows(query, stars)
    for scope in scopes:  # inner ones first
        select = scope.expression
        if not isinstance(select, exp.Select) or not any(map(is_star, select.expressions)):
            continue
        items: list[exp.Expr] = []
        for item in select.expressions:
            try:
                items += stars.written(select, item) if is_star(item) else [item]
            except Unclear:
                items.append(item)
        select.set("expressions", items)


def _write_rows(query: exp.Expr, stars: Stars) -> None:
    for call in list(find_all(query, exp.JSONArrayAgg, exp.Anonymous)):
        if isinstance(call, exp.JSONArrayAgg):
            taken = call.this
        elif call.name.lower() in _OF_ROWS and len(call.expressions) == 1:
            taken = call.expressions[0]
        else:
            continue
        while isinstance(taken, exp.Order | exp.Paren):
            taken = taken.this
        select = taken.find_ancestor(exp.Select) if isinstance(taken, exp.Column) else None
        if select is not None:
            try:
                row = stars.row(select, taken)
            except Unclear:
                continue
            exchange(taken, row)


class Stars:
    """The stars of one query, read by their scopes."""

    def __init__(self, scopes: Sequence[QueryScope], relations: Relations) -> None:
        self._scopes = {id(scope.expression): scope for scope in scopes}
        self._relations = relations

    def written(self, select: exp.Select, star: exp.Expr) -> list[exp.Column]:
        """Returns the columns of a star. Raises Unclear."""
        return [
            exp.column(item[-1], table=item[0] if len(item) > 1 else None, quoted=True)
            for item in self.columns(select, star)
        ]

    def row(self, select: exp.Select, named: exp.Column) -> exp.Expr:
        """Returns the document of a whole row, `t` or `t.*`. Raises Unclear for a column, for a row
        that an outer join may lack, whose document would be NULL, and for one of a table whose
        columns the query has renamed, which keeps their own names."""
        name = named.args.get("table") if named.is_star else named.this
        qualified = named.args.get("table") is not None and not named.is_star
        if qualified or not isinstance(name, exp.Identifier):
            raise Unclear
        first, joins = select.args.get("from_"), select.args.get("joins") or ()
        sources = [] if first is None else [first.this, *(join.this for join in joins)]
        if not named.is_star and any(folded(name) in self._names(select, s) for s in sources):
            raise Unclear
        if any(isinstance(source, exp.Table) and source.alias_column_names for source in sources):
            raise Unclear
        for join in joins:
            side = str(join.args.get("side") or "").upper()
            own = folded_alias(join.this).lower() == folded(name).lower()
            if side in ("RIGHT", "FULL") or (side == "LEFT" and own):
                raise Unclear
        items = self.columns(select, exp.Column(this=exp.Star(), table=name.copy()))
        pairs = [
            (exp.Literal.string(item[-1]), exp.column(item[-1], table=item[0], quoted=True))
            for item in items
        ]
        return exp.Anonymous(this="jsonb_build_object", expressions=[*chain(*pairs)])

    def columns(self, select: exp.Select, star: exp.Expr) -> list[Item]:
        """Returns the columns of a star. Raises Unclear where they are not known, and SQLError
        42601 where there is nothing to be a star of."""
        first, qualifier = select.args.get("from_"), star.args.get("table")
        if first is None:
            raise error_at(star, "42601", "SELECT * with no tables specified is not valid")
        joins = select.args.get("joins") or ()
        if qualifier is None:
            return self._joined(select, first.this, joins)
        wanted = folded(qualifier)
        sources = [first.this, *(join.this for join in joins)]
        by_name = {folded_alias(source): source for source in sources}
        lower = {alias.lower(): alias for alias in by_name}
        alias = wanted if wanted in by_name else lower.get(wanted.lower())
        if alias is None:
            raise Unclear
        return [(alias, name) for name in self._names(select, by_name[alias])]

    def _joined(self, select: exp.Select, first: exp.Expr, joins: Sequence[exp.Join]) -> list[Item]:
        """The columns of all sources. Those of USING come first, once and under their bare names:
        they are of the side that has them."""
        found, before = self._items(select, first, alone=not joins), list[Item]()
        for join in joins:
            right = self._items(select, join.this, alone=False)
            if not any(join.args.get(clause) for clause in _OF_JOIN):  # FROM a, b: another item
                before, found = [*before, *found], right
                continue
            common = [folded(name) for name in join.args.get("using") or ()]
            others = [item for item in (*found, *right) if item[-1] not in common]
            found = [*((name,) for name in common), *others]
        return [*before, *found]

    def _items(self, select: exp.Select, source: exp.Expr, *, alone: bool) -> list[Item]:
        if source.args.get("joins") or source.args.get("laterals"):
            raise Unclear
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(inner, exp.Table) and source.args.get("alias") is None:
            joins = inner.args.get("joins") or ()
            bare = inner.copy() if joins else inner
            bare.set("joins", None)
            return self._joined(select, bare, joins)
        alias, names = folded_alias(source), self._names(select, source)
        return [(name,) if alone or not alias else (alias, name) for name in names]

    def _names(self, select: exp.Select, source: exp.Expr) -> list[str]:
        """The columns of one item of FROM, by their names."""
        given = given_names(source)
        match source:
            case exp.Table(this=exp.Identifier()):
                names = self._of_table(select, source)
            case (
                exp.Subquery(this=exp.Query() as inner)
                | exp.Lateral(this=exp.Subquery(this=exp.Query() as inner))
            ):
                names = self._of_query(inner)
            case exp.Values() if folded_alias(source):  # DuckDB names the columns of others itself
                width = len(source.expressions[0].expressions)
                names = [f"column{place + 1}" for place in range(width)]
            case exp.Table() if isinstance(source.this, TABLE_FUNCTIONS):
                unnested = isinstance(source.this, exp.Unnest)
                names = [folded_alias(source) or ("unnest" if unnested else "generate_series")]
            case exp.Unnest():
                names = given or [folded_alias(source) or "unnest"]
                offset = source.args.get("offset")
                if isinstance(offset, exp.Identifier):
                    names = [*names, folded(offset)]
                elif offset and len(names) < 2:
                    raise Unclear
            case _:
                raise Unclear
        found = [*given, *names[len(given) :]]
        if len(set(found)) < len(found):
            raise Unclear
        return found

    def _of_table(self, select: exp.Select, table: exp.Table) -> list[str]:
        scope = self._scopes.get(id(select))
        if scope is None:
            raise Unclear
        for source in sources_named(scope, table.alias_or_name):
            if isinstance(source, QueryScope):
                cte = source.expression.parent
                given = given_names(cte) if isinstance(cte, exp.CTE) else []
                return [*given, *self._of_query(source.expression)[len(given) :]]
        descriptor = self._relations.get(table_name(table).parts)
        if descriptor is None:
            raise Unclear
        every = not select.meta.get(STORED)
        columns = descriptor.shown_columns
        return [column.name for column in columns if every or column.computed is None]

    def _of_query(self, query: exp.Expr) -> list[str]:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if isinstance(query, exp.Values):
            return [f"column{place + 1}" for place in range(len(query.expressions[0].expressions))]
        if not isinstance(query, exp.Select):
            raise Unclear
        names: list[str] = []
        for item in query.expressions:
            if is_star(item):
                names += [found[-1] for found in self.columns(query, item)]
            elif item.is_star:
                raise Unclear
            else:
                names.append(output_name(item))
        return names


def given_names(tree: exp.Expr) -> list[str]:
    """The names of `AS t (a, b)`."""
    holder = tree if tree.args.get("alias") else tree.parent
    alias = holder.args.get("alias") if holder is not None else None
    columns = alias.args.get("columns") if isinstance(alias, exp.TableAlias) else None
    return [folded(c if isinstance(c, exp.Identifier) else c.this) for c in columns or ()]


def tree_of(source: exp.Expr | QueryScope) -> exp.Expr:
    """Returns the tree of a name in FROM."""
    return source.expression if isinstance(source, QueryScope) else source


def sources_of(scope: QueryScope, qualifier: exp.Identifier | None) -> list[exp.Expr | QueryScope]:
    """Returns the source that a column's qualifier names, or every source of FROM for a bare
    name. A common table expression that FROM does not name is no source."""
    if qualifier is None:
        unnamed = scope.cte_sources.keys() - scope.selected_sources.keys()
        return [source for alias, source in scope.sources.items() if alias not in unnamed]
    return sources_named(scope, folded(qualifier))
