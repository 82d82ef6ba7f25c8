"""The columns that a star stands for, in the order that SQL gives them."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope as QueryScope

from ....catalog.values.errors import SQLError
from ...parse import folded, position_of
from ...parse.queries import table_name
from ..binder import TABLE_FUNCTIONS, Relations
from .output_names import output_name

Item = tuple[str, ...]
"""A column by its name, or by an alias and its name."""

_OF_JOIN = ("kind", "side", "method", "on", "using")


class StarColumns:
    """The stars of one query, which stand in its tree as columns called `mark`.

    `natural`: those of a NATURAL JOIN, too, whose columns are not settled for good, and columns
    that are joined on by the side that has them, where one has.
    """

    def __init__(
        self,
        scopes: Sequence[QueryScope],
        relations: Relations,
        mark: str,
        *,
        natural: bool = False,
    ) -> None:
        self._scopes = {id(scope.expression): scope for scope in scopes}
        self._relations = relations
        self._mark = mark
        self._natural = natural

    def is_star(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name == self._mark

    def columns(self, star: exp.Column) -> list[Item]:
        """Returns the columns of a star. Raises SQLError where they are not known."""
        select = star.parent
        assert isinstance(select, exp.Select), star
        qualifier = star.args.get("table")
        if qualifier is None:
            return self._joined(select, star)
        wanted = folded(qualifier)
        for alias, source in self._sources(select, star):
            if alias == wanted:
                return [(alias, name) for name in self._names(source, select)]
        raise SQLError(
            "42P01",
            f'missing FROM-clause entry for table "{wanted}"',
            position=position_of(qualifier),
        )

    def _sources(self, select: exp.Select, star: exp.Column) -> list[tuple[str, exp.Expr]]:
        first = select.args.get("from_")
        if first is None:
            raise SQLError(
                "42601",
                "SELECT * with no tables specified is not valid",
                position=position_of(star),
            )
        items = [first.this, *(join.this for join in select.args.get("joins") or ())]
        if any(item.args.get("joins") or item.args.get("laterals") for item in items):
            raise _unclear(star)
        return [(_alias(item), item) for item in items]

    def _joined(self, select: exp.Select, star: exp.Column) -> list[Item]:
        """The columns of all sources. Those of USING come first, and once."""
        sources = self._sources(select, star)
        alone = len(sources) == 1
        (alias, source), *others = sources
        found: list[Item] = [
            (name,) if alone else (alias, name) for name in self._names(source, select)
        ]
        before: list[Item] = []
        for (alias, source), join in zip(others, select.args.get("joins") or (), strict=True):
            names = self._names(source, select)
            if not any(join.args.get(clause) for clause in _OF_JOIN):  # FROM a, b: another item
                before, found = [*before, *found], [(alias, name) for name in names]
                continue
            common = [folded(name) for name in join.args.get("using") or ()]
            if str(join.args.get("method") or "").upper() == "NATURAL":
                common = [item[-1] for item in found if item[-1] in names]
                if self._natural:
                    found = self._merged(found, common, join, alias, names)
                    continue
                raise SQLError(
                    "0A000",
                    "a view cannot read all columns of a NATURAL JOIN",
                    hint="Write JOIN … USING (…), or name the columns.",
                    position=position_of(star),
                )
            found = self._merged(found, common, join, alias, names)
        return [*before, *found]

    def _merged(
        self,
        found: Sequence[Item],
        common: Sequence[str],
        join: exp.Join,
        alias: str,
        names: Sequence[str],
    ) -> list[Item]:
        """The columns behind one more JOIN."""
        left = [item for item in found if item[-1] not in common]
        right = [(alias, name) for name in names if name not in common]
        side = str(join.args.get("side") or "").upper()
        merged: list[Item] = [(name,) for name in common]
        if self._natural and side == "RIGHT":
            merged = [(alias, name) for name in common]
        elif self._natural and side != "FULL":
            merged = [item for name in common for item in found if item[-1] == name]
        return [*merged, *left, *right]

    def _names(self, source: exp.Expr, select: exp.Select) -> list[str]:
        """The columns of one item of FROM, by their names."""
        alias = source.args.get("alias")
        given = [folded(name) for name in alias.columns] if alias is not None else []
        match source:
            case exp.Table(this=exp.Identifier()):
                names = self._of_table(source, select)
            case exp.Subquery(this=exp.Query() as inner):
                names = self._of_query(inner)
            case exp.Values():
                width = len(source.expressions[0].expressions)
                names = [f"column{place + 1}" for place in range(width)]
            case exp.Table() if isinstance(source.this, TABLE_FUNCTIONS):
                names = [_alias(source)]
            case exp.Unnest() if len(source.expressions) == 1:
                names = [_alias(source)]
            case _:
                raise _unclear(source)
        return [*given, *names[len(given) :]]

    def _of_table(self, table: exp.Table, select: exp.Select) -> list[str]:
        source = self._scopes[id(select)].sources.get(table.alias_or_name)
        if isinstance(source, QueryScope):
            cte = source.expression.parent
            alias = cte.args.get("alias") if isinstance(cte, exp.CTE) else None
            given = [folded(name) for name in alias.columns] if alias is not None else []
            return [*given, *self._of_query(source.expression)[len(given) :]]
        descriptor = self._relations[table_name(table).parts]
        return [column.name for column in descriptor.shown_columns]

    def _of_query(self, query: exp.Expr) -> list[str]:
        while isinstance(query, exp.SetOperation | exp.Subquery):
            query = query.this
        if not isinstance(query, exp.Select):
            raise _unclear(query)
        names: list[str] = []
        for item in query.expressions:
            if self.is_star(item):
                names += [found[-1] for found in self.columns(item)]
            elif isinstance(item, exp.Alias):
                names.append(folded(item.args["alias"]))
            else:
                names.append(output_name(item))
        return names


def _alias(source: exp.Expr) -> str:
    alias = source.args.get("alias")
    named = alias.this if alias is not None and alias.this is not None else source.this
    if isinstance(named, exp.Identifier):
        return folded(named)
    return str(named.key) if isinstance(named, exp.Expr) else ""


def _unclear(node: exp.Expr) -> SQLError:
    return SQLError(
        "0A000",
        "it is not clear which columns the star of a view stands for",
        hint="Name the columns.",
        position=position_of(node),
    )
