"""WITH, whose parts may write: `WITH gone AS (DELETE FROM t RETURNING *) SELECT * FROM gone`.

A part that writes becomes a step. Whatever stands behind it reads what it returns as a table of
schema `$with`, which nobody can name; CTEs that only read are handed to every part behind them.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from ....catalog.values.errors import SQLError
from ...syntax.refusals import error_at
from ...syntax.statements import Delete, Insert, Query, Update, WithWrites, WritingStep
from ...syntax.tree_names import folded, position_of
from ...syntax.walks import find_all
from ..cursor import syntax_error
from ..queries import parse_query, parse_tree
from .writes import Inserts, ctes_of, delete_of, insert_of, plain_inserts, update_of, with_ctes

SCHEMA = "$with"
_WRITES = (exp.Insert, exp.Update, exp.Delete)
_VERBS = frozenset(("insert", "upsert", "update", "delete"))


def parse_with(text: str, tokens: list[Token]) -> Query | Insert | Update | Delete | WithWrites:
    """A statement that begins with WITH. Raises SQLError."""
    if not any(token.text.lower() in _VERBS for token in tokens):
        return parse_query(text, tokens)
    tokens, inserts = plain_inserts(text, tokens)
    tree = parse_tree(text, tokens)
    ctes = ctes_of(tree)
    writing = [cte for cte in ctes if isinstance(cte.this, _WRITES)]
    if not writing:
        if isinstance(tree, _WRITES):
            return _write_of(tree, tokens, inserts)
        return parse_query(text, tokens)
    for cte in writing:
        _refuse_within(cte.this)
    return _with_writes(text, tree, ctes, tokens, inserts)


def _with_writes(
    text: str,
    tree: exp.Expr,
    ctes: tuple[exp.CTE, ...],
    tokens: list[Token],
    inserts: Inserts,
) -> WithWrites:
    tree.set("with_", None)
    reading: list[exp.CTE] = []
    steps: list[WritingStep] = []
    for cte in ctes:
        name = folded(cte.args["alias"].this)
        for step in steps:
            _read_step(cte.this, step.name)
        if not isinstance(cte.this, _WRITES):
            reading.append(cte)
            continue
        _give(cte.this, reading)
        steps.append(
            WritingStep(
                name=name,
                columns=tuple(folded(column) for column in cte.args["alias"].columns),
                statement=_write_of(cte.this, tokens, inserts),
                position=position_of(cte.args["alias"]) or 1,
            )
        )
    for step in steps:
        _read_step(tree, step.name)
    if isinstance(tree, _WRITES):
        _give(tree, reading)
        return WithWrites(steps=tuple(steps), main=_write_of(tree, tokens, inserts))
    if not isinstance(tree, exp.Select | exp.SetOperation):
        raise syntax_error(text, tokens[0].start, tokens[0].end + 1)
    if tree.args.get("locks"):
        raise SQLError("0A000", "FOR UPDATE is not supported beside a WITH that writes")
    query = Query(tree=with_ctes(tree, reading), as_of=None)
    return WithWrites(steps=tuple(steps), main=query)


def _write_of(tree: exp.Expr, tokens: list[Token], inserts: Inserts) -> Insert | Update | Delete:
    match tree:
        case exp.Insert():
            return insert_of(tree, inserts, tokens)
        case exp.Update():
            return update_of(tree, tokens)
        case _:
            assert isinstance(tree, exp.Delete), tree
            return delete_of(tree, tokens)


def _give(tree: exp.Expr, ctes: list[exp.CTE]) -> None:
    """Puts the CTEs before those of a statement that writes."""
    if ctes:
        own = ctes_of(tree)
        tree.set("with_", exp.With(expressions=[cte.copy() for cte in (*ctes, *own)]))


def _read_step(tree: exp.Expr, name: str) -> None:
    """Points what reads the CTE of that name to the step's table."""
    target = tree.this if isinstance(tree, _WRITES) else None
    for table in list(find_all(tree, exp.Table)):
        if table is target or (isinstance(target, exp.Schema) and table is target.this):
            continue
        plain = isinstance(table.this, exp.Identifier) and table.args.get("db") is None
        if plain and folded(table.this) == name and not _hidden(table, name):
            table.set("db", exp.to_identifier(SCHEMA, quoted=True))


def _hidden(table: exp.Table, name: str) -> bool:
    """Whether a WITH around the table, nearer than the statement's own, defines the name."""
    node: exp.Expr | None = table.parent
    while node is not None:
        clause = node.args.get("with_")
        if clause is not None and any(
            folded(cte.args["alias"].this) == name and not isinstance(cte.this, _WRITES)
            for cte in clause.expressions
        ):
            return True
        node = node.parent
    return False


def _refuse_within(tree: exp.Expr) -> None:
    """WITH clauses that write may stand at the top only, as in Postgres."""
    for inner in find_all(tree, *_WRITES):
        if inner is not tree:
            raise error_at(
                inner,
                "0A000",
                "WITH clause containing a data-modifying statement must be at the top level",
            )
