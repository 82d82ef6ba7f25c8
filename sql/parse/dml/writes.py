"""INSERT, UPSERT, UPDATE and DELETE: sqlglot's Postgres parser, behind our errors.

What sqlglot parses and nothing behind it carries out is refused here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ...syntax.names import ObjectName
from ...syntax.refusals import error_at, unsupported
from ...syntax.statements import Delete, Insert, InsertMode, Update
from ...syntax.tree_copies import E
from ...syntax.tree_names import folded, position_of, table_name
from ..constant_rows import ROWS, ragged, rows_behind
from ..cursor import syntax_error
from ..lexer import like
from ..queries import parse_tree, word_at
from .assignments import assignments, parse_conflict

_SOURCES = (TokenType.VALUES, TokenType.SELECT, TokenType.WITH)
"""First words of the source of an INSERT, which may also begin with a parenthesis."""


def parse_insert(text: str, tokens: list[Token]) -> Insert:
    """Parses INSERT or UPSERT. Raises SQLError."""
    first = tokens[0]
    if len(tokens) < 2 or tokens[1].token_type != TokenType.INTO:
        near = tokens[1] if len(tokens) > 1 else first
        raise syntax_error(text, near.start, near.end + 1, hint="Expected INTO.")
    tokens, inserts = plain_inserts(text, tokens)
    rows = rows_behind(text, tokens)
    tree = parse_tree(text, _enclosed_values(tokens))
    if not isinstance(tree, exp.Insert):
        raise syntax_error(text, first.start, first.end + 1)
    if rows is not None:
        tree.args["expression"].meta[ROWS] = rows
    return insert_of(tree, inserts, tokens)


def _enclosed_values(tokens: list[Token]) -> list[Token]:
    """Returns the tokens of an INSERT with another pair of parentheses around `(VALUES (…), …)`:
    sqlglot would take it for a list of columns, and reads nothing behind its rows."""
    depth, opening = 0, -1
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            begun = [each.token_type for each in tokens[place + 1 : place + 3]]
            if depth == 0 and begun == [TokenType.VALUES, TokenType.L_PAREN]:
                opening = place
            depth += 1
        elif kind == TokenType.R_PAREN:
            depth -= 1
            if depth == 0 and opening >= 0:
                inner = tokens[opening : place + 1]
                return [*tokens[:opening], inner[0], *inner, inner[-1], *tokens[place + 1 :]]
        elif depth == 0 and kind in _SOURCES:
            return tokens
    return tokens


def parse_change(text: str, tokens: list[Token]) -> Update | Delete:
    """Parses UPDATE or DELETE. Raises SQLError."""
    _refuse_current_of(tokens)
    match parse_tree(text, tokens):
        case exp.Update() as tree:
            return update_of(tree, tokens)
        case exp.Delete() as tree:
            return delete_of(tree, tokens)
    raise _ends_early(tokens)


def insert_of(tree: exp.Insert, inserts: Inserts, tokens: list[Token]) -> Insert:
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
    table = table_name(target)
    mode, overriding = inserts.of(table)
    if conflict is not None and mode is InsertMode.UPSERT:
        raise SQLError("42601", "UPSERT takes no ON CONFLICT", position=position)
    return Insert(
        table=table,
        alias=_alias(target),
        columns=columns,
        source=None if source is None else with_ctes(source, ctes_of(tree)),
        mode=mode,
        conflict=None if conflict is None else parse_conflict(conflict, position),
        returning=_returning(tree),
        overriding=overriding,
    )


def update_of(tree: exp.Update, tokens: list[Token]) -> Update:
    """Returns the UPDATE of a tree. Raises SQLError 42601, and 0A000 for a clause that is not
    supported."""
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
    """Returns the DELETE of a tree. Raises SQLError 42601, and 0A000 for a clause that is not
    supported."""
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


# UPSERT and OVERRIDING, which sqlglot does not read: INSERTs without them, and what they said.


@dataclass(frozen=True, slots=True)
class Inserts:
    """OVERRIDING and UPSERT of a statement's INSERTs, by the positions of their tables' names."""

    upserts: set[int] = field(default_factory=set)
    overriding: set[int] = field(default_factory=set)

    def of(self, table: ObjectName) -> tuple[InsertMode, bool]:
        begin = table.position - 1
        mode = InsertMode.UPSERT if begin in self.upserts else InsertMode.INSERT
        return mode, begin in self.overriding


def plain_inserts(text: str, tokens: list[Token]) -> tuple[list[Token], Inserts]:
    """The tokens with INSERT for UPSERT and without OVERRIDING, and what was said so."""
    found = Inserts()
    kept: list[Token] = []
    table, skipped = -1, 0
    for place, token in enumerate(tokens):
        if skipped:
            skipped -= 1
            continue
        word = token.text.lower()
        into = place + 2 < len(tokens) and tokens[place + 1].token_type == TokenType.INTO
        if into and word in ("insert", "upsert"):
            table = tokens[place + 2].start
            if word == "upsert":
                found.upserts.add(table)
                token = like(token, TokenType.INSERT, "INSERT")
        elif (
            word == "overriding" and place and tokens[place - 1].text in (")", _name(tokens, table))
        ):
            _check_overriding(text, tokens, place)
            found.overriding.add(table)
            skipped = 2
            continue
        kept.append(token)
    return kept, found


def _name(tokens: list[Token], start: int) -> str:
    """Returns the last part of the table's name that begins at `start`."""
    place = next((n for n, token in enumerate(tokens) if token.start == start), None)
    if place is None:
        return ""
    while place + 2 < len(tokens) and tokens[place + 1].text == ".":
        place += 2
    return tokens[place].text


def _check_overriding(text: str, tokens: list[Token], place: int) -> None:
    """Raises SQLError where no `OVERRIDING SYSTEM VALUE` stands at a place of the tokens."""
    token = tokens[place]
    said = [following.text.lower() for following in tokens[place + 1 : place + 3]]
    if said == ["user", "value"]:
        hint = "Leave the identity column out of the list of columns: then its value is drawn."
        raise unsupported("OVERRIDING USER VALUE", token.start + 1, hint)
    if said != ["system", "value"]:
        hint = "Expected OVERRIDING SYSTEM VALUE."
        raise syntax_error(text, token.start, token.end + 1, hint=hint)


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


def _refuse_current_of(tokens: list[Token]) -> None:
    words = [token.text.lower() for token in tokens]
    for place in range(len(words) - 3):
        if words[place : place + 3] == ["where", "current", "of"]:
            raise unsupported(
                "WHERE CURRENT OF",
                tokens[place].start + 1,
                "A cursor holds the rows as they were. Name the row by its key.",
            )
