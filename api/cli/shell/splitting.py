"""The division of a text into statements: at semicolons that are in no quotes and in no comment."""

from __future__ import annotations

from sqlglot.tokenizer_core import TokenType

from ....catalog.values.errors import SQLError
from ....sql.parse.lexer import tokenize


def split(text: str) -> tuple[list[str], str]:
    """The statements of `text` that are complete, and what is left.

    >>> split("SELECT 1; SELECT ';'; SEL")
    (['SELECT 1;', "SELECT ';';"], ' SEL')
    """
    try:
        tokens = tokenize(text)
    except SQLError:
        return _split_before_quote(text)
    complete: list[str] = []
    start = 0
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            complete.append(text[start : token.end + 1].strip())
            start = token.end + 1
    return [statement for statement in complete if statement != ";"], text[start:]


def _split_before_quote(text: str) -> tuple[list[str], str]:
    """Splits a text that ends within quotes: its complete statements, and the rest."""
    end = text.rfind(";")
    while end >= 0:
        try:
            tokenize(text[: end + 1])
        except SQLError:
            end = text.rfind(";", 0, end)
            continue
        complete, rest = split(text[: end + 1])
        return complete, rest + text[end + 1 :]
    return [], text
