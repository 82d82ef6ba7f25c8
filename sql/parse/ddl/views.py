"""The grammar of views."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from ...syntax.view_statements import CreateView, RenameView
from ..cursor import Cursor
from ..queries import parse_query
from .index_columns import column_names


def create_view(cursor: Cursor) -> CreateView:
    """`[IF NOT EXISTS] name [(column, …)] AS query`"""
    return _view(cursor, replaces=False)


def replace_view(cursor: Cursor) -> CreateView:
    return _view(cursor, replaces=True)


def _view(cursor: Cursor, *, replaces: bool) -> CreateView:
    if_not_exists = not replaces and cursor.accept_words("if", "not", "exists")
    name = cursor.object_name("a view's name")
    columns = column_names(cursor) if cursor.at_symbol("(") else ()
    cursor.expect_words("as")
    tokens = cursor.rest()
    if not tokens:
        cursor.fail(expected="a query")
    _refuse_check_option([token.text.lower() for token in tokens], tokens[-1].start + 1)
    query = parse_query(cursor.text, tokens)
    if query.as_of is not None:
        raise SQLError(
            "0A000",
            "a view does not read the past",
            hint="Write AS OF SYSTEM TIME where the view is read.",
            position=query.as_of.position,
        )
    if query.locks:
        raise SQLError("0A000", "a view cannot lock rows", hint="Leave FOR UPDATE out.")
    return CreateView(
        name=name,
        columns=columns,
        text=" " * tokens[0].start + cursor.text[tokens[0].start : tokens[-1].end + 1],
        if_not_exists=if_not_exists,
        replaces=replaces,
    )


def _refuse_check_option(words: list[str], position: int) -> None:
    if words[-2:] == ["check", "option"]:
        raise unsupported(
            "WITH CHECK OPTION", position, "Views are only read: there is nothing to check."
        )


def alter_view(cursor: Cursor) -> RenameView:
    """`[IF EXISTS] name RENAME TO name`"""
    if_exists = cursor.accept_words("if", "exists")
    name = cursor.object_name("a view's name")
    cursor.expect_words("rename", "to")
    position = cursor.position
    new_name = cursor.identifier("a view's name")
    return RenameView(name=name, new_name=new_name, if_exists=if_exists, position=position)
