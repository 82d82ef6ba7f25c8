"""Views in statements: each becomes the subquery that it stands for, before anything is planned.

    SELECT due FROM late l WHERE id = 7

    SELECT due FROM (SELECT id, due FROM defaultdb.public.orders WHERE …) AS l WHERE id = 7

So all that is known of subqueries holds of views: which columns are scanned, and what a transaction
has written. The statement's relations have the view beside what it reads: it is leased like them,
and a plan that is kept goes with its version.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

from sqlglot import exp

from ...catalog.descriptors.descriptor import TableDescriptor
from ...catalog.values.errors import SQLError
from ..parse import folded, parse
from ..parse.constant_lists import written_out
from ..parse.queries import table_name
from ..syntax.statements import Delete, Insert, ObjectName, Query, Update, WithWrites
from ..syntax.tree_copies import copied
from ..syntax.tree_names import alias_named
from ..syntax.walks import find_all, walk
from .binder import VIEW, Relations, tables_in
from .statement_trees import with_trees

EXPANSIONS_MAX = 1000
"""Views in one statement, those within others counted as often as they are used: twice in each of
eleven views over one another is beyond this, and beyond any plan that ends."""

_COMPILED = "view's query"

Part = Query | Insert | Update | Delete
S = TypeVar("S", bound=Part)


def query_of(view: TableDescriptor) -> exp.Expr:
    """The tree of a view's query, which nobody may change."""
    assert view.view is not None, view
    known = view.compiled.get(_COMPILED)
    if known is None:
        (statement,) = parse(view.view.text).statements
        assert isinstance(statement, Query), view
        tree = written_out(statement.tree)
        for node in walk(tree):
            node.meta.clear()  # positions in another text than the statement's
        known = view.compiled[_COMPILED] = tree
    assert isinstance(known, exp.Expr), known
    return known


def names_in(view: TableDescriptor) -> list[ObjectName]:
    """Returns the names of the relations that a view's query reads."""
    return [table_name(table) for table in tables_in(query_of(view))]


def expand_views(statement: Part | WithWrites, relations: Relations) -> Part | WithWrites:
    """The statement with subqueries in the place of views, itself where it names none."""
    if all(table.view is None for table in relations.values()):
        return statement
    if isinstance(statement, Query):
        _refuse_locks(statement, relations)
    if isinstance(statement, WithWrites):
        steps = [
            replace(step, statement=_Expansion(relations).of(step.statement))
            for step in statement.steps
        ]
        main = _Expansion(relations).of(statement.main)
        return replace(statement, steps=tuple(steps), main=main)
    return _Expansion(relations).of(statement)


def _refuse_locks(statement: Query, relations: Relations) -> None:
    for table in tables_in(statement.tree) if statement.locks else ():
        name = table_name(table)
        if relations[name.parts].view is not None:
            raise SQLError(
                "0A000",
                f'FOR UPDATE and FOR SHARE cannot lock the rows of view "{name}"',
                hint="Lock the rows of the tables that it reads.",
                position=name.position,
            )


@dataclass(slots=True)
class _Expansion:
    """The expansion of one statement: how many views there were so far."""

    relations: Relations
    count: int = 0
    hidden: frozenset[str] = field(default_factory=frozenset)

    def of(self, statement: S) -> S:
        """The trees among a statement's parts, and in parts of parts, are copied."""
        ctes = getattr(statement, "ctes", ())
        self.hidden = frozenset(folded(cte.args["alias"].this) for cte in ctes)
        return with_trees(statement, lambda tree: self._tree(copied(tree)))

    def _tree(self, tree: exp.Expr) -> exp.Expr:
        for table in list(find_all(tree, exp.Table)):
            view = self._view(table)
            if view is None:
                continue
            self.count += 1
            if self.count > EXPANSIONS_MAX:
                raise SQLError("54001", f"more than {EXPANSIONS_MAX} views in one statement")
            made = self._subquery(table, view)
            if table is tree:
                tree = made
            else:
                table.replace(made)
        return tree

    def _view(self, table: exp.Table) -> TableDescriptor | None:
        """The view that a table reference means, if it means one."""
        if not isinstance(table.this, exp.Identifier):
            return None
        parts = table_name(table).parts
        found = self.relations.get(parts)
        if found is None or found.view is None:
            return None
        shadowed = len(parts) == 1 and (parts[0] in self.hidden or _is_cte(table, parts[0]))
        return None if shadowed else found

    def _subquery(self, table: exp.Table, view: TableDescriptor) -> exp.Subquery:
        assert view.view is not None, view
        query = _Expansion(self.relations)
        query.count = self.count
        inner = query._tree(copied(query_of(view)))
        self.count = query.count
        given = table.args.get("alias")
        own = alias_named(folded(table.this))
        alias = own if given is None else given.copy()
        if alias.this is None:
            alias.set("this", own.this)
        if view.view.renames:
            _name_columns(alias, view)
        made = exp.Subquery(this=selected(inner), alias=alias)
        made.meta[VIEW] = table_name(table).parts
        for clause in ("joins", "laterals", "sample"):
            if table.args.get(clause):
                made.set(clause, table.args[clause])
        return made


def selected(tree: exp.Expr) -> exp.Query:
    """A query in which VALUES is `SELECT * FROM (VALUES …) AS values`."""
    if not isinstance(tree, exp.Values):
        assert isinstance(tree, exp.Query), tree
        return tree
    tree.set("alias", alias_named("values"))
    return exp.select("*").from_(tree)


def _name_columns(alias: exp.TableAlias, view: TableDescriptor) -> None:
    """The view's own names, but for the first columns, which the statement may call otherwise."""
    given = list(alias.columns)
    rest = [column.name for column in view.visible_columns[len(given) :]]
    alias.set("columns", [*given, *(exp.to_identifier(name, quoted=True) for name in rest)])


def _is_cte(table: exp.Table, name: str) -> bool:
    """Whether a WITH around a table reference has a part of that name, and it is meant."""
    within: exp.CTE | None = None
    node: exp.Expr | None = table
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        clause = node.args.get("with_")
        if isinstance(clause, exp.With) and name in _before(clause, within):
            return True
        node = node.parent
    return False


def _before(clause: exp.With, within: exp.CTE | None) -> Iterator[str]:
    """The names that a part of a WITH sees: those before it, and its own in WITH RECURSIVE."""
    for cte in clause.expressions:
        if cte is within:
            assert within is not None, clause
            if clause.args.get("recursive"):
                yield folded(within.args["alias"].this)
            return
        assert isinstance(cte, exp.CTE), cte
        yield folded(cte.args["alias"].this)


def refuse_view(table: TableDescriptor, name: ObjectName, what: str) -> None:
    """Raises SQLError 42809 where what is to be written is a view."""
    if table.view is not None:
        raise SQLError(
            "42809",
            f'cannot {what} view "{table.name}"',
            hint=f"Views are only read. This one reads: {', '.join(_tables(table)) or 'nothing'}.",
            position=name.position,
        )


def _tables(view: TableDescriptor) -> Iterator[str]:
    yield from dict.fromkeys(str(name) for name in names_in(view))
