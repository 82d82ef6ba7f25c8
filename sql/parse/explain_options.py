"""Options between EXPLAIN and its statement.

EXPLAIN [ANALYZE] statement
EXPLAIN (option [value], …) statement      ANALYZE, FORMAT TEXT, and OFF for what is never told
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token

from ...catalog.values.errors import SQLError
from ..syntax.refusals import unsupported
from .admin.feeds import QUERY_TOKENS
from .cursor import Cursor

_NEVER_TOLD = ("verbose", "costs", "buffers", "settings", "wal", "memory")
_TRUTHS = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}


def explain_options(text: str, tokens: list[Token]) -> tuple[bool, int]:
    """Returns whether to run the statement, and the count of tokens of the options behind
    EXPLAIN. Raises SQLError 0A000 for an option that is not supported, 42601 for a misspelt one."""
    cursor = Cursor(text, tokens)
    if len(tokens) > 1 and tokens[0].text == "(" and tokens[1].token_type not in QUERY_TOKENS:
        cursor.expect_symbol("(")
        analyze = _options(cursor)
    else:
        analyze = cursor.accept_words("analyze")
        if cursor.at_words("verbose"):
            raise _never_told("verbose", cursor.position)
    return analyze, cursor.current.token_index


def _options(cursor: Cursor) -> bool:
    """Behind the parenthesis, which it closes."""
    analyze = False
    while True:
        position = cursor.position
        name = cursor.identifier("an option of EXPLAIN")
        if name == "analyze":
            analyze = _truth(cursor)
        elif name == "format":
            given = cursor.identifier("a format")
            if given != "text":
                raise unsupported(
                    f"EXPLAIN in format {given.upper()}",
                    position,
                    "It returns rows of a property and its value.",
                )
        elif name in _NEVER_TOLD:
            if _truth(cursor):
                raise _never_told(name, position)
        else:
            raise SQLError(
                "42601",
                f'unrecognized EXPLAIN option "{name}"',
                hint="Options are ANALYZE and FORMAT TEXT.",
                position=position,
            )
        if not cursor.accept_symbol(","):
            break
    cursor.expect_symbol(")")
    return analyze


def _truth(cursor: Cursor) -> bool:
    """`[TRUE | FALSE | ON | OFF | 1 | 0]`"""
    known = _TRUTHS.get(cursor.current.text.lower())
    if known is None:
        return True
    cursor.advance()
    return known


def _never_told(name: str, position: int) -> SQLError:
    return unsupported(
        f"EXPLAIN ({name.upper()})",
        position,
        "EXPLAIN tells the engine, the tables and how each is read; ANALYZE adds rows and times.",
    )
