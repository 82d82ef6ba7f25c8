"""`FROM [SHOW CHANGEFEED JOBS]`: what a SHOW statement prints, as a table."""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ..lexer import like

_TABLES = {"jobs": "jobs", "changefeed jobs": "changefeed_jobs"}
"""Words of SHOW, and the table in `tailrace_internal` for each."""


def shown_tables(tokens: list[Token]) -> list[Token]:
    """The tokens with the name of a table for each SHOW in brackets. Raises SQLError 0A000."""
    made = tokens
    for place in reversed(range(len(tokens) - 1)):
        bracket, word = tokens[place : place + 2]
        if bracket.token_type != TokenType.L_BRACKET or word.text.lower() != "show":
            continue
        end = next(
            (at for at in range(place, len(made)) if made[at].token_type == TokenType.R_BRACKET),
            len(made),
        )
        shown = " ".join(token.text.lower() for token in made[place + 2 : end])
        table = _TABLES.get(shown)
        if table is None:
            raise SQLError(
                "0A000",
                f"[SHOW {shown.upper()}] is not supported as a table",
                hint="In brackets stand SHOW JOBS and SHOW CHANGEFEED JOBS.",
                position=bracket.start + 1,
            )
        names = [like(bracket, TokenType.VAR, "tailrace_internal")]
        names += [like(bracket, TokenType.DOT, "."), like(bracket, TokenType.VAR, table)]
        made = [*made[:place], *names, *made[end + 1 :]]
    return made
