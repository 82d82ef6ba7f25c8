"""Binds the names in a changefeed's query to columns of a given table that holds changes.

    SELECT id, cdc_prev.total, event_op() FROM orders WHERE total > 10

    SELECT "id", "$before.total" AS total, "$op" AS event_op, "$row"
    FROM "$changes" WHERE "total" > 10 ORDER BY "$row"

The given table has a row for each change: the row's columns under their names, those of the row
before, and what the change tells of itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from ...catalog.descriptors.descriptor import Column, TableDescriptor
from ...catalog.descriptors.names import quote_identifier
from ...catalog.values.column_types import BOOL, STRING, TIMESTAMPTZ
from ...catalog.values.errors import SQLError
from ...changefeed.contract.queries import FeedQuery
from ..builtins.session_functions import STORE_TIMESTAMP
from ..parse import parse_expression
from ..syntax.changefeed_statements import FeedSelect
from ..syntax.trees import error_at, folded, folded_alias, position_of, walk
from .binder import unknown_column
from .calls.client_functions import client_fact
from .calls.row_calls import session_function
from .columns.output_columns import output_name
from .given_tables import ROW_NUMBER, given_table

PREVIOUS = "cdc_prev"
BEFORE = "$before."
OP, MVCC, SCHEMA, CREATED = "$op", "$mvcc", "$schema", "$created"
NOW, REPLACES = "$now", "$replaces"
_FACTS = {
    OP: STRING,
    MVCC: STORE_TIMESTAMP,
    SCHEMA: STORE_TIMESTAMP,
    CREATED: STORE_TIMESTAMP,
    NOW: TIMESTAMPTZ,
    REPLACES: BOOL,
}
_MVCC_NAME = "crdb_internal_mvcc_timestamp"
_EVENT_COLUMNS = {
    "event_op()": OP,
    "event_schema_timestamp()": SCHEMA,
    "changefeed_creation_timestamp()": CREATED,
    _MVCC_NAME: MVCC,
}
_NAME = "$changes"
_NUMBER = 4_000_000
"""The number of the given table of changes, above those of statements."""

_TIMES: dict[type[exp.Expr], str | None] = {
    exp.CurrentTimestamp: None,
    exp.CurrentDate: "date",
    exp.CurrentTime: "time",
    exp.Localtime: "time",
    exp.Localtimestamp: "timestamp",
}
_TIME_CALLS = ("now", "transaction_timestamp", "statement_timestamp")


@dataclass(frozen=True, slots=True)
class Output:
    """A column of a query's result; `source` is the table's column that it is, if it is one."""

    name: str
    source: Column | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeantQuery:
    """A query over `changes`, whose items are the outputs, the key's columns that are `hidden`, and
    the number of the change."""

    tree: exp.Select
    changes: TableDescriptor
    outputs: Sequence[Output]
    hidden: Sequence[Column]

    @property
    def relations(self) -> dict[tuple[str, ...], TableDescriptor]:
        return {(_NAME,): self.changes}


def feed_query(select: FeedSelect, table: TableDescriptor) -> FeedQuery:
    """Returns the part of a feed's query that its job stores. Raises SQLError."""
    names = _Names(select, table, table)
    for item in (*select.tree.expressions, select.tree.args.get("where")):
        if item is not None:
            names.meaning(item.copy())
    facts = names.facts
    return FeedQuery(
        text=select.text,
        columns=tuple(sorted(names.columns)),
        star=names.star,
        previous=names.previous,
        versions=MVCC in facts,
        tells_op=OP in facts,
        tells_event=bool(facts & {OP, MVCC, SCHEMA, NOW}),
    )


def meant_query(select: FeedSelect, table: TableDescriptor, before: TableDescriptor) -> MeantQuery:
    """The query for changes under `table`, of rows before under `before`. Raises SQLError."""
    names = _Names(select, table, before)
    items: list[exp.Expr] = []
    outputs: list[Output] = []
    for item in select.tree.expressions:
        for column in names.starred(item):
            outputs.append(Output(column.name, column))
            items.append(_column(column.name))
        if not item.is_star:
            outputs.append(Output(output_name(item).removesuffix("()"), names.source(item)))
            inner = item.this if isinstance(item, exp.Alias) else item
            items.append(names.meaning(inner.copy()))
    _check_names(outputs)
    shown = {output.source.id for output in outputs if output.source is not None}
    hidden = [column for column in table.key_columns if column.id not in shown]
    items += [_column(column.name) for column in hidden]
    aliased = [exp.alias_(item, f"c{place}", quoted=True) for place, item in enumerate(items)]
    tree = exp.select(*aliased, _column(ROW_NUMBER)).from_(exp.table_(_NAME, quoted=True))
    where = select.tree.args.get("where")
    if where is not None:
        tree = tree.where(names.meaning(where.this.copy()))
    return MeantQuery(
        tree=tree.order_by(_column(ROW_NUMBER)),
        changes=_changes(table, before),
        outputs=outputs,
        hidden=hidden,
    )


def _changes(table: TableDescriptor, before: TableDescriptor) -> TableDescriptor:
    columns = [(column.name, column.type) for column in table.visible_columns]
    columns += [(f"{BEFORE}{column.name}", column.type) for column in before.visible_columns]
    return given_table(_NUMBER, _NAME, [*columns, *_FACTS.items()])


class _Names:
    """The names of one query, and what was found of them: the ids of `columns`, the `facts` of a
    change, whether the rows before are read and whether a star shows all columns."""

    def __init__(self, select: FeedSelect, table: TableDescriptor, before: TableDescriptor) -> None:
        self._table = table
        self._before = before
        self._alias = folded_alias(select.tree.args["from_"].this)
        self.columns: set[int] = set()
        self.facts: set[str] = set()
        self.previous = False
        self.star = False

    def starred(self, item: exp.Expr) -> Iterator[Column]:
        """The columns that a star of the select list stands for; none for another item."""
        if not item.is_star:
            return
        self.star = True
        star = item.this if isinstance(item, exp.Column) else item
        if any(star.args.values()):
            raise SQLError("0A000", "SELECT * takes no EXCEPT and no REPLACE in CDC queries")
        if isinstance(item, exp.Column):
            self._check_qualifier(item)
        yield from self._table.shown_columns

    def source(self, item: exp.Expr) -> Column | None:
        """The table's column that an item is, if it is no more than that."""
        inner = item.this if isinstance(item, exp.Alias) else item
        if not isinstance(inner, exp.Column) or self._qualifier(inner) == PREVIOUS:
            return None
        return self._table.find_column(folded(inner.this))

    def meaning(self, tree: exp.Expr) -> exp.Expr:
        """The expression, which may be changed, over the columns of the changes."""
        if tree.is_star:
            for _ in self.starred(tree):
                pass
            return tree
        root = exp.Paren(this=tree)
        for node in list(walk(root)):
            made = self._meant(node)
            if made is not None:
                node.replace(made)
        meant: exp.Expr = root.this
        return meant

    def _meant(self, node: exp.Expr) -> exp.Expr | None:
        """Returns the replacement of a node, or None where the node stays."""
        match node:
            case exp.Dot(this=exp.Paren(this=exp.Column() as whole), expression=part) if (
                self._is_record(whole)
            ):
                assert isinstance(part, exp.Identifier), node
                return self._part(part)
            case exp.Column(this=exp.Identifier()) if not isinstance(node.parent, exp.Dot):
                return self._of_column(node)
            case exp.Anonymous() if node.name.lower() in _TIME_CALLS:
                return self._fact(NOW)
        if type(node) in _TIMES:
            moment, kind = self._fact(NOW), _TIMES[type(node)]
            return moment if kind is None else exp.cast(moment, kind)
        self._refuse_session(node)
        return None

    def _of_column(self, column: exp.Column) -> exp.Expr:
        name, qualifier = folded(column.this), self._qualifier(column)
        if qualifier == PREVIOUS != self._alias:
            return self._part(column.this)
        if qualifier is not None:
            self._check_qualifier(column)
        found = self._table.find_column(name)
        if found is not None:
            self.columns.add(found.id)
            return _column(found.name)
        if self._is_record(column):
            return self._record()
        if name in _EVENT_COLUMNS:
            return self._fact(_EVENT_COLUMNS[name])
        raise unknown_column(name, [self._table], position_of(column))

    def _part(self, identifier: exp.Identifier) -> exp.Expr:
        """A column of the row before."""
        self.previous = True
        name = folded(identifier)
        now, then = self._table.find_column(name), self._before.find_column(name)
        known = now or then
        if known is None:
            raise unknown_column(f"{PREVIOUS}.{name}", [self._before], position_of(identifier))
        self.columns.add(known.id)
        if then is None:  # a column that was added since
            return exp.cast(exp.Null(), known.type.sql_name, dialect="postgres")
        return _column(f"{BEFORE}{then.name}")

    def _is_record(self, column: exp.Column) -> bool:
        """Whether a column means the whole row before."""
        if not isinstance(column.this, exp.Identifier) or self._qualifier(column) is not None:
            return False
        name = folded(column.this)
        return name == PREVIOUS and self._table.find_column(name) is None

    def _record(self) -> exp.Expr:
        """The row before as a document; NULL where there was none."""
        self.previous = self.star = True
        self.facts.add(REPLACES)
        fields = ", ".join(
            f"{exp.Literal.string(column.name).sql()}, {quote_identifier(f'{BEFORE}{column.name}')}"
            for column in self._before.shown_columns
        )
        return parse_expression(
            f"(CASE WHEN {quote_identifier(REPLACES)} THEN jsonb_build_object({fields}) END)"
        )

    def _fact(self, name: str) -> exp.Expr:
        self.facts.add(name)
        return _column(name)

    def _qualifier(self, column: exp.Column) -> str | None:
        qualifier = column.args.get("table")
        return None if qualifier is None else folded(qualifier)

    def _check_qualifier(self, column: exp.Column) -> None:
        if (wanted := self._qualifier(column)) != self._alias:
            raise error_at(column, "42P01", f'missing FROM-clause entry for table "{wanted}"')

    def _refuse_session(self, node: exp.Expr) -> None:
        if session_function(node) is not None or client_fact(node) is not None:
            called = output_name(node)
            raise SQLError(
                "0A000",
                f"function {called} is not supported in CDC queries",
                detail="A changefeed runs in no session.",
                position=position_of(node),
            )


def _check_names(outputs: Sequence[Output]) -> None:
    names = [output.name for output in outputs]
    for place, name in enumerate(names):
        if name in names[:place]:
            raise SQLError(
                "42701",
                f'column "{name}" of a CDC query is shown more than once',
                hint="A message has one field of a name: write AS behind an item.",
            )


def _column(name: str) -> exp.Column:
    return exp.column(name, quoted=True)
