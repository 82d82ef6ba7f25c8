"""The division of a text into statements: at semicolons that are in no quotes and in no comment."""

from __future__ import annotations

from ....catalog.values.errors import SQLError
from ....sql import statement_ends


def split(text: str) -> tuple[list[str], str]:
    """The statements of `text` that are complete, and what is left.

    >>> split("SELECT 1; SELECT ';'; SEL")
    (['SELECT 1;', "SELECT ';';"], ' SEL')
    """
    try:
        ends = statement_ends(text)
    except SQLError:
        return _split_before_quote(text)
    complete: list[str] = []
    start = 0
    for end in ends:
        complete.append(text[start:end].strip())
        start = end
    return [statement for statement in complete if statement != ";"], text[start:]


def _split_before_quote(text: str) -> tuple[list[str], str]:
    """Splits a text that ends within quotes: its complete statements, and the rest."""
    end = text.rfind(";")
    while end >= 0:
        try:
            statement_ends(text[: end + 1])
        except SQLError:
            end = text.rfind(";", 0, end)
            continue
        complete, rest = split(text[: end + 1])
        return complete, rest + text[end + 1 :]
    return [], text
