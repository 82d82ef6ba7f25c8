"""INSERT, UPSERT, UPDATE and DELETE, and the WITH in which they stand: sqlglot's Postgres parser,
behind our errors.

What sqlglot parses and nothing behind it carries out is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax.statements import (
    Delete,
    Insert,
    InsertMode,
    OnConflict,
    Query,
    Update,
    WithWrites,
    WritingStep,
)
from ..syntax.trees import (
    E,
    error_at,
    find_all,
    folded,
    is_cte,
    position_of,
    table_name,
    unsupported,
)
from .constants import ROWS, ragged, rows_behind
from .cursor import syntax_error
from .lexer import like
from .queries import cut_row_locks, parse_query, parse_tree, word_at


def parse_insert(text: str, tokens: list[Token]) -> Insert | WithWrites:
    """Parses INSERT or UPSERT. Raises SQLError."""
    first = tokens[0]
    if len(tokens) < 2 or tokens[1].token_type != TokenType.INTO:
        near = tokens[1] if len(tokens) > 1 else first
        raise syntax_error(text, near.start, near.end + 1, hint="Expected INTO.")
    tokens = plain_inserts(tokens)
    rows = rows_behind(text, tokens)
    tree = parse_tree(text, tokens)
    if not isinstance(tree, exp.Insert):
        raise syntax_error(text, first.start, first.end + 1)
    if rows is not None:
        tree.args["expression"].meta[ROWS] = rows
        return insert_of(tree, tokens)
    return _behind_locks(text, tree, tokens) or insert_of(tree, tokens)


def parse_change(text: str, tokens: list[Token]) -> Update | Delete | WithWrites:
    """Parses UPDATE or DELETE. Raises SQLError."""
    tree = parse_tree(text, tokens)
    if (locking := _behind_locks(text, tree, tokens)) is not None:
        return locking
    if not isinstance(tree, exp.Update | exp.Delete):
        raise _ends_early(tokens)
    return update_of(tree, tokens) if isinstance(tree, exp.Update) else delete_of(tree, tokens)


def insert_of(tree: exp.Insert, tokens: list[Token]) -> Insert:
    """Returns the INSERT or UPSERT of a tree. Raises SQLError 42601, and 0A000 for a clause that
    is not supported."""
    conflict = tree.args.get("conflict")
    position = word_at(tokens, "conflict")
    target, columns = tree.this, None
    if isinstance(target, exp.Schema):
        columns = tuple(_column_name(name) for name in target.expressions)
        target = target.this
    source = tree.args.get("expression")
    if source is None and not tree.args.get("default"):
        raise _ends_early(tokens, hint="Expected VALUES.")
    if isinstance(source, exp.Values):
        _refuse_ragged(source)
    elif source is not None and source.find(exp.Into) is not None:
        message = "SELECT ... INTO is not allowed here"
        raise error_at(source, "42601", message)
    mode = InsertMode.UPSERT if tree.args.get("overwrite") else InsertMode.INSERT
    if conflict is not None and mode is InsertMode.UPSERT:
        raise SQLError("42601", "UPSERT takes no ON CONFLICT", position=position)
    return Insert(
        table=table_name(target),
        alias=_alias(target),
        columns=columns,
        source=None if source is None else with_ctes(source, ctes_of(tree)),
        mode=mode,
        conflict=None if conflict is None else parse_conflict(conflict, position),
        returning=_returning(tree),
        overriding=bool(tree.args.get("by_name")),
    )


def update_of(tree: exp.Update, tokens: list[Token]) -> Update:
    """The UPDATE of a tree. Raises SQLError 42601, and 0A000 for a clause that is not supported."""
    assigned = assignments(tree.expressions)
    if not assigned:
        raise _ends_early(tokens)
    for _, value in assigned:
        if isinstance(value, exp.Star):
            raise error_at(value, "42804", "a whole row cannot be assigned to a column")
    _refuse_column_aliases(tree.this)
    _refuse_limit(tree)
    source = tree.args.get("from_")
    return Update(
        table=table_name(tree.this),
        alias=_alias(tree.this),
        assignments=assigned,
        where=_where(tree),
        returning=_returning(tree),
        sources=() if source is None else (source.this,),
        ctes=ctes_of(tree),
    )


def delete_of(tree: exp.Delete, tokens: list[Token]) -> Delete:
    """The DELETE of a tree. Raises SQLError 42601, and 0A000 for a clause that is not supported."""
    if not isinstance(tree.this, exp.Table):
        raise _ends_early(tokens)
    _refuse_column_aliases(tree.this)
    _refuse_limit(tree)
    return Delete(
        table=table_name(tree.this),
        alias=_alias(tree.this),
        where=_where(tree),
        returning=_returning(tree),
        sources=tuple(tree.args.get("using") or ()),
        ctes=ctes_of(tree),
    )


def _refuse_ragged(values: exp.Values) -> None:
    """Raises SQLError where the rows differ in how many items they have."""
    widths = [
        len(row.expressions) if isinstance(row, exp.Tuple) else 1 for row in values.expressions
    ]
    for row, width in zip(values.expressions, widths, strict=True):
        if width != widths[0]:
            raise ragged(position_of(row))


# UPSERT and OVERRIDING, which sqlglot does not read.


def plain_inserts(tokens: list[Token]) -> list[Token]:
    """The tokens with clauses of other dialects, which sqlglot marks in its tree: OVERWRITE for
    UPSERT, and BY NAME for OVERRIDING SYSTEM VALUE. Raises SQLError 0A000 for OVERRIDING USER, and
    for OVERWRITE itself."""
    words = [token.text.lower() for token in tokens]
    kept: list[Token] = []
    place = len(tokens) if _REWRITTEN.isdisjoint(words) else 0
    while place < len(tokens):
        token, said = tokens[place], words[place : place + 3]
        if said[:2] == ["upsert", "into"]:
            kept += like(token, TokenType.INSERT, "INSERT"), like(token, TokenType.OVERWRITE, "")
        elif said == ["overriding", "system", "value"]:
            kept += like(token, TokenType.VAR, "BY"), like(token, TokenType.VAR, "NAME")
            place += 2
        elif said == ["overriding", "user", "value"]:
            hint = "Leave the identity column out of the list of columns: then its value is drawn."
            raise unsupported("OVERRIDING USER VALUE", token.start + 1, hint)
        elif said[:2] == ["insert", "overwrite"]:
            raise unsupported("INSERT OVERWRITE", token.start + 1, "Write UPSERT INTO.")
        else:
            kept.append(token)
        place += 1
    return kept or tokens


_REWRITTEN = frozenset({"upsert", "overriding", "overwrite"})


def _refuse_column_aliases(table: exp.Expr) -> None:
    alias = table.args.get("alias")
    for name in () if alias is None else alias.args.get("columns") or ():
        raise error_at(name, "42601", "the table that is written has no aliases of columns")


def ctes_of(tree: exp.Expr) -> tuple[exp.CTE, ...]:
    """Returns the common table expressions of a statement's WITH."""
    clause = tree.args.get("with_")
    if clause is None:
        return ()
    if clause.args.get("recursive"):
        for cte in clause.expressions:
            cte.meta[RECURSIVE] = True
    return tuple(clause.expressions)


RECURSIVE = "recursive"
"""Marks a CTE of a WITH RECURSIVE."""

_TAKE_WITH: tuple[type[exp.Expr], ...] = (exp.Select, exp.SetOperation)


def with_ctes(query: E, ctes: Sequence[exp.CTE]) -> E:
    """The query with CTEs before its own."""
    if not ctes:
        return query
    if not isinstance(query, _TAKE_WITH):
        raise unsupported("WITH before VALUES", query, "Write SELECT … instead of VALUES.")
    every = (*ctes, *ctes_of(query))
    recursive = any(cte.meta.get(RECURSIVE) for cte in every)
    made = query.copy()
    made.set("with_", exp.With(expressions=[cte.copy() for cte in every], recursive=recursive))
    return made


def _ends_early(tokens: list[Token], *, hint: str | None = None) -> SQLError:
    end = tokens[-1].end + 1
    return syntax_error("", end, end, hint=hint)


def _column_name(name: exp.Expr) -> exp.Identifier:
    if isinstance(name, exp.Identifier):
        return name
    position = position_of(name) or 1
    raise SQLError("42601", "a list of column names is expected", position=position)


def _alias(table: exp.Expr) -> str | None:
    alias = table.args.get("alias")
    return None if alias is None or alias.this is None else folded(alias.this)


def _returning(tree: exp.Expr) -> tuple[exp.Expr, ...]:
    returning = tree.args.get("returning")
    return tuple(returning.expressions) if returning is not None else ()


def _where(tree: exp.Expr) -> exp.Expr | None:
    where = tree.args.get("where")
    condition: exp.Expr | None = where.this if where is not None else None
    return condition


def _refuse_limit(tree: exp.Expr) -> None:
    for name in ("order", "limit"):
        if (clause := tree.args.get(name)) is not None:
            raise error_at(
                clause,
                "0A000",
                f"{name.upper()} of {type(tree).__name__.upper()} is not supported",
                "Find the rows by a subquery: WHERE key IN (SELECT key FROM … ORDER BY … LIMIT …).",
            )


# SET and ON CONFLICT: pairs of a column and its new value.
#
#     SET a = 1, (b, c) = (2, DEFAULT)
#
# are three assignments. An assignment to a part of a column, `f[2] = 1`, is refused.


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
    if count == 1:
        return [value]
    raise unsupported(
        "SET of several columns to what is no list of values",
        value,
        "SET a = (SELECT …), b = (SELECT …), or SET a = s.a, b = s.b FROM (SELECT …) AS s.",
    )


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


# WITH, whose parts may write: `WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone`.
#
# A part that writes becomes a step. Whatever stands behind it reads what it returns as a table of
# schema `$with`, which nobody can name; CTEs that only read are handed to every part behind them.
#
# So do the parts that lock rows, and queries that lock rows within a statement that writes:
#
#     UPDATE jobs SET taken = true WHERE id = (SELECT id FROM jobs LIMIT 1 FOR UPDATE SKIP LOCKED)
#
# is `WITH "lock 1" AS (SELECT id …) UPDATE … WHERE id = (SELECT * FROM "lock 1")`. The steps that
# lock come first: what is read before a lock is held may be out of date once it is.

STEPS = "$with"
"""The schema of what the parts of a WITH return."""
_WRITES = (exp.Insert, exp.Update, exp.Delete)
_VERBS = frozenset(("insert", "upsert", "update", "delete", "share"))


def parse_with(text: str, tokens: list[Token]) -> Query | Insert | Update | Delete | WithWrites:
    """A statement that begins with WITH. Raises SQLError."""
    if not any(token.text.lower() in _VERBS for token in tokens):
        return parse_query(text, tokens)
    tokens = plain_inserts(tokens)
    tree = parse_tree(text, tokens)
    writing = [cte for cte in ctes_of(tree) if isinstance(cte.this, _WRITES)]
    for cte in writing:
        _refuse_within(cte.this)
    if writing:
        return _with_steps(text, tree, tokens)
    locking = _behind_locks(text, tree, tokens)
    if locking is None:
        return _part_of(tree, tokens) if isinstance(tree, _WRITES) else parse_query(text, tokens)
    return locking


def _behind_locks(text: str, tree: exp.Expr, tokens: list[Token]) -> WithWrites | None:
    """Returns a statement with the steps that its queries which lock rows are; None for one that
    has no such query within it."""
    if word_at(tokens, "for") is None or not _locking(tree):
        return None
    return _with_steps(text, tree, tokens)


def _locking(tree: exp.Expr) -> list[exp.Query]:
    """Returns the queries within a tree that lock rows, outer ones first."""
    queries = find_all(tree, exp.Query)
    return [query for query in queries if query is not tree and query.args.get("locks")]


def _hoisted(tree: exp.Expr, ctes: Sequence[exp.CTE]) -> Iterator[exp.CTE]:
    """Yields the CTEs of a statement, before each part those for the queries in it that lock rows,
    which the part then reads in their place: inner ones first."""
    count = 0
    for part in (*ctes, tree):
        own = part.this if isinstance(part, exp.CTE) else part
        for query in reversed(_locking(own)):
            count += 1
            name = exp.to_identifier(f"lock {count}", quoted=True)
            around = query.parent
            if isinstance(around, exp.SetOperation):
                message = "FOR UPDATE is not allowed with UNION, INTERSECT and EXCEPT"
                raise error_at(query, "0A000", message, "Write the query in parentheses.")
            if isinstance(around, exp.Subquery) and isinstance(around.parent, _LISTS_TABLES):
                around.replace(exp.Table(this=name.copy(), alias=around.args.get("alias")))
            else:
                query.replace(exp.select("*").from_(exp.Table(this=name.copy())))
            yield exp.CTE(this=query, alias=exp.TableAlias(this=name))
        if part is not tree:
            assert isinstance(part, exp.CTE), part
            yield part


_LISTS_TABLES = (exp.From, exp.Join, exp.Delete)


def _with_steps(text: str, tree: exp.Expr, tokens: list[Token]) -> WithWrites:
    ctes = ctes_of(tree)
    tree.set("with_", None)
    reading: list[exp.CTE] = []
    steps: list[WritingStep] = []
    locked = 0
    for cte in _hoisted(tree, ctes):
        name = folded(cte.args["alias"].this)
        for step in steps:
            _read_step(cte.this, step)
        if not isinstance(cte.this, _WRITES) and not cte.this.args.get("locks"):
            reading.append(cte)
            continue
        _give(cte.this, reading)
        made = WritingStep(
            name=name,
            columns=tuple(folded(column) for column in cte.args["alias"].columns),
            statement=_part_of(cte.this, tokens),
            position=position_of(cte.args["alias"]) or 1,
        )
        if isinstance(made.statement, Query):
            _refuse_written(cte.this, steps[locked:])
            steps.insert(locked, made)
            locked += 1
        else:
            steps.append(made)
    for step in steps:
        _read_step(tree, step)
    if isinstance(tree, _WRITES):
        _give(tree, reading)
        return WithWrites(steps=tuple(steps), main=_part_of(tree, tokens))
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise syntax_error(text, tokens[0].start, tokens[0].end + 1)
    if tree.args.get("locks"):
        raise SQLError("0A000", "FOR UPDATE is not supported beside a WITH that writes")
    query = Query(tree=with_ctes(tree, reading), as_of=None)
    return WithWrites(steps=tuple(steps), main=query)


def _part_of(tree: exp.Expr, tokens: list[Token]) -> Query | Insert | Update | Delete:
    match tree:
        case exp.Insert():
            return insert_of(tree, tokens)
        case exp.Update():
            return update_of(tree, tokens)
        case exp.Delete():
            return delete_of(tree, tokens)
    return Query(tree=tree, as_of=None, lock=cut_row_locks(tree, word_at(tokens, "for")))


def _refuse_written(tree: exp.Expr, writing: Sequence[WritingStep]) -> None:
    """Raises SQLError 0A000 for a query that locks rows, and reads what one of the steps writes."""
    for table in find_all(tree, exp.Table) if writing else ():
        schema = table.args.get("db")
        named = schema is not None and schema.name == STEPS
        if named and any(folded(table.this) == step.name for step in writing):
            raise error_at(
                table,
                "0A000",
                f'a query that locks rows cannot read "{table.name}", a part of WITH that writes',
                "Lock the rows in a statement of its own, in the same transaction.",
            )


def _give(tree: exp.Expr, ctes: list[exp.CTE]) -> None:
    """Puts the CTEs before those of a statement that writes."""
    if ctes:
        own = ctes_of(tree)
        tree.set("with_", exp.With(expressions=[cte.copy() for cte in (*ctes, *own)]))


def _read_step(tree: exp.Expr, step: WritingStep) -> None:
    """Points what reads the CTE of a step's name to the step's table. Raises SQLError 0A000 where
    the step returns nothing."""
    name, written = step.name, step.statement
    target = tree.this if isinstance(tree, _WRITES) else None
    for table in list(find_all(tree, exp.Table)):
        if table is target or (isinstance(target, exp.Schema) and table is target.this):
            continue
        plain = isinstance(table.this, exp.Identifier) and table.args.get("db") is None
        if plain and folded(table.this) == name and not is_cte(table, name):
            if not isinstance(written, Query) and not written.returning:
                message = f'WITH query "{name}" does not have a RETURNING clause'
                raise error_at(table, "0A000", message)
            table.set("db", exp.to_identifier(STEPS, quoted=True))


def _refuse_within(tree: exp.Expr) -> None:
    """WITH clauses that write may stand at the top only, as in Postgres."""
    for inner in find_all(tree, *_WRITES):
        if inner is not tree:
            raise error_at(
                inner,
                "0A000",
                "WITH clause containing a data-modifying statement must be at the top level",
            )
