"""The grammar of PREPARE, EXECUTE and DEALLOCATE."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ..syntax.statements import Deallocate, Discard, ExecutePrepared, Prepare, TypeName
from .cursor import Cursor, LexemeKind, syntax_error
from .queries import parse_tree


def prepare(cursor: Cursor) -> Prepare:
    """`name [(type, …)] AS statement`"""
    name = cursor.identifier("a name")
    types: list[TypeName] = []
    if cursor.accept_symbol("("):
        types.append(_type_name(cursor))
        while cursor.accept_symbol(","):
            types.append(_type_name(cursor))
        cursor.expect_symbol(")")
    cursor.expect_words("as")
    if cursor.finished:
        cursor.fail(expected="a statement")
    start, end = cursor.current.start, cursor.rest()[-1].end + 1
    return Prepare(name=name, types=tuple(types), text=" " * start + cursor.text[start:end])


def _type_name(cursor: Cursor) -> TypeName:
    """`double precision`, `numeric(10, 2)`, `pg_catalog.oid`"""
    position = cursor.position
    if cursor.accept_words("pg_catalog"):
        cursor.expect_symbol(".")
    words: list[str] = []
    while cursor.current.kind is LexemeKind.WORD:
        words.append(cursor.advance().text)
    if not words:
        cursor.fail(expected="a type")
    arguments: list[int] = []
    if cursor.accept_symbol("("):
        arguments.append(cursor.integer("a number"))
        while cursor.accept_symbol(","):
            arguments.append(cursor.integer("a number"))
        cursor.expect_symbol(")")
    return TypeName(" ".join(words), tuple(arguments), position)


def execute(cursor: Cursor) -> ExecutePrepared:
    """`name [(expression, …)]`"""
    position = cursor.position
    name = cursor.identifier("a prepared statement's name")
    arguments: tuple[exp.Expr, ...] = ()
    if not cursor.finished:
        arguments = _arguments(cursor)
    return ExecutePrepared(name=name, arguments=arguments, position=position)


def _arguments(cursor: Cursor) -> tuple[exp.Expr, ...]:
    """The list in parentheses that ends the statement, read by sqlglot as items of a SELECT."""
    if not cursor.at_symbol("("):
        cursor.fail(expected="arguments in parentheses")
    tokens = cursor.rest()
    last = tokens[-1]
    if last.token_type != TokenType.R_PAREN:
        end = last.end + 1
        raise syntax_error(cursor.text, end, end, hint="Expected a closing parenthesis.")
    if len(tokens) == 2:
        return ()
    first = tokens[0]
    select = Token(TokenType.SELECT, "SELECT", first.line, first.col, first.start, first.end)
    tree = parse_tree(cursor.text, [select, *tokens[1:-1]])
    if not isinstance(tree, exp.Select) or _clauses(tree) != {"expressions"}:
        raise syntax_error(cursor.text, first.start, first.end + 1)
    return tuple(tree.expressions)


def _clauses(tree: exp.Expr) -> set[str]:
    return {name for name, value in tree.args.items() if value}


def deallocate(cursor: Cursor) -> Deallocate:
    """`[PREPARE] name` or `[PREPARE] ALL`"""
    cursor.accept_words("prepare")
    name = None if cursor.accept_words("all") else cursor.identifier("a name")
    cursor.expect_end()
    return Deallocate(name=name)


def discard(cursor: Cursor) -> Discard:
    """`ALL`, `PLANS`, `SEQUENCES`, `TEMP` or `TEMPORARY`"""
    for word in ("all", "plans", "sequences", "temp", "temporary"):
        if cursor.accept_words(word):
            cursor.expect_end()
            shown = "TEMP" if word == "temporary" else word.upper()
            return Discard(target=f"DISCARD {shown}")
    cursor.fail(expected="ALL, PLANS, SEQUENCES or TEMP")


def close_all(cursor: Cursor) -> Discard:
    cursor.expect_end()
    return Discard(target="CLOSE CURSOR ALL")


def unlisten(cursor: Cursor) -> Discard:
    """`*` or a channel's name"""
    if not cursor.accept_symbol("*"):
        cursor.identifier("a channel's name")
    cursor.expect_end()
    return Discard(target="UNLISTEN")
