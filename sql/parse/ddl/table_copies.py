"""The grammar of tables made of queries: CREATE TABLE … AS, and SELECT … INTO."""

from __future__ import annotations

from dataclasses import replace

from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ...syntax.names import ObjectName, Option
from ...syntax.refusals import unsupported
from ...syntax.statements import CreateTableAs, OnCommit
from ..constant_lists import written_out
from ..cursor import Cursor, LexemeKind
from ..lexer import give_way_for
from ..queries import parse_query


def create_table_as(
    cursor: Cursor, table: ObjectName, *, if_not_exists: bool, temporary: bool
) -> CreateTableAs | None:
    """`[(name, …)] [WITH (parameter = value, …)] AS query [WITH [NO] DATA]`; None for another
    CREATE TABLE, the cursor being where it was."""
    mark = cursor.current.token_index
    columns = _names_alone(cursor)
    parameters: tuple[Option, ...] = ()
    if columns is not None and cursor.accept_words("with"):
        parameters = cursor.enclosed(cursor.option)
    ends = on_commit(cursor) if temporary and columns is not None else None
    if columns is None or not cursor.accept_words("as"):
        if parameters or columns:
            cursor.fail(expected="AS, or a type behind each column")
        cursor.back_to_token(mark)
        return None
    tokens = cursor.rest()
    words = [token.text.lower() for token in tokens]
    with_data = True
    for tail, keeps in ((["with", "no", "data"], False), (["with", "data"], True)):
        if words[-len(tail) :] == tail:
            tokens, with_data = tokens[: -len(tail)], keeps
            break
    if not tokens:
        cursor.fail(expected="a query")
    query = parse_query(cursor.text, tokens)
    if query.as_of is not None:
        raise SQLError(
            "0A000",
            "CREATE TABLE AS does not read the past",
            hint="Create the table, and load what SELECT … AS OF SYSTEM TIME returns.",
            position=query.as_of.position,
        )
    return CreateTableAs(
        table=table,
        columns=tuple(columns),
        query=query,
        if_not_exists=if_not_exists,
        parameters=parameters,
        with_data=with_data,
        temporary=ends,
    )


def on_commit(cursor: Cursor) -> OnCommit:
    """`[ON COMMIT {PRESERVE ROWS | DELETE ROWS | DROP}]` of a temporary table."""
    if not cursor.accept_words("on", "commit"):
        return OnCommit.PRESERVE
    for ends in OnCommit:
        if cursor.accept_words(*ends.value.lower().split()):
            return ends
    cursor.fail(expected="PRESERVE ROWS, DELETE ROWS or DROP")


def select_into(text: str, tokens: list[Token]) -> CreateTableAs | None:
    """`SELECT … INTO [TABLE] name FROM …`, which is CREATE TABLE … AS; None for another query."""
    give_way_for(tokens)
    place = _place_of_into(tokens)
    if place is None:
        return None
    cursor = Cursor(text, tokens)
    cursor.skip_to_token(place + 1)
    if cursor.at_words("unlogged"):
        raise unsupported("unlogged tables", cursor.position)
    temporary = cursor.accept_words("temp") or cursor.accept_words("temporary")
    cursor.accept_words("table")
    table = cursor.object_name("a table's name")
    query = parse_query(text, [*tokens[:place], *tokens[cursor.current.token_index :]])
    return CreateTableAs(
        table=table,
        columns=(),
        query=replace(query, tree=written_out(query.tree)),
        if_not_exists=False,
        parameters=(),
        with_data=True,
        temporary=OnCommit.PRESERVE if temporary else None,
    )


def _place_of_into(tokens: list[Token]) -> int | None:
    """Where INTO stands before the FROM of the query itself."""
    depth = 0
    for place, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and token.token_type in (TokenType.INTO, TokenType.FROM):
            return place if token.token_type == TokenType.INTO else None
    return None


def _names_alone(cursor: Cursor) -> list[str] | None:
    """The names of `(a, b)`; none where there is no list, None where it holds more than names."""
    if not cursor.at_symbol("("):
        return []
    mark = cursor.current.token_index
    cursor.accept_symbol("(")
    names: list[str] = []
    while cursor.current.kind in (LexemeKind.WORD, LexemeKind.QUOTED):
        names.append(cursor.advance().text)
        if cursor.accept_symbol(")"):
            return names
        if not cursor.accept_symbol(","):
            break
    cursor.back_to_token(mark)
    return None
