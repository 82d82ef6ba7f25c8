"""Tokens of a text, part by part where it is long."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.fibre import give_way
from .dialect import tokens_of
from .pieces import SMALL_LENGTH, Pieces, pieces
from .quoted_escapes import with_escapes_read

_STEPS_PER_PART = 32
"""Steps of a slice that the tokenizing of a part counts as."""


LITERALS = frozenset(
    {
        TokenType.STRING,
        TokenType.HEREDOC_STRING,
        TokenType.RAW_STRING,
        TokenType.NATIONAL_STRING,
        TokenType.UNICODE_STRING,
        TokenType.BYTE_STRING,
    }
)
NUMBER_LENGTH_MAX = 1000
"""Characters of a number. No type holds more than a few hundred digits, and Python refuses to read
an integer of more than 4,300."""


TOKENS_PER_STEP = 8
"""Tokens that a pass looks at in a step of a slice."""


def give_way_for(tokens: list[Token]) -> None:
    """Gives way as a pass over the tokens is to."""
    give_way(1 + len(tokens) // TOKENS_PER_STEP)


def is_string(token: Token) -> bool:
    return token.token_type in LITERALS


def like(token: Token, kind: TokenType, text: str) -> Token:
    """Another token in the place of one."""
    return Token(kind, text, token.line, token.col, token.start, token.end)


_QUOTING = re.compile(r"""['"]|/\*|\$(?!\d)""")
"""The beginnings of parts that may have no end: quotes, comments, quoted dollars. A small text
without them is within all limits of `pieces`."""


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`. Raises SQLError 42601 with a position, and 54000 or
    54001 for a text that is beyond what `pieces` allows."""
    small = len(text) <= SMALL_LENGTH and not _QUOTING.search(text)
    try:
        tokens = tokens_of(text, 0, len(text)) if small else _by_parts(text, pieces(text))
    except TokenError as error:
        raise SQLError("42601", "syntax error: the text cannot be read") from error
    give_way_for(tokens)
    for token in tokens:
        if len(token.text) > NUMBER_LENGTH_MAX and token.token_type is TokenType.NUMBER:
            raise SQLError(
                "22003",
                f"a number of {len(token.text)} digits is out of range",
                position=token.start + 1,
                hint=f"A number in a statement has at most {NUMBER_LENGTH_MAX} characters.",
            )
    give_way_for(tokens)
    return with_escapes_read(text, tokens)


def _by_parts(text: str, found: Pieces) -> list[Token]:
    if found.unterminated is not None:
        raise SQLError(
            "42601",
            f"unterminated quoted text at or near {text[found.unterminated :][:20]!r}",
            position=found.unterminated + 1,
            hint="A quote inside a string is written twice.",
        )
    tokens: list[Token] = []
    for start, end in pairwise([0, *found.cuts, len(text)]):
        give_way(_STEPS_PER_PART)
        if start in found.quoted:
            tokens.append(found.quoted[start])
        tokens += tokens_of(text, found.skipped.get(start, start), end)
    return tokens


def statement_tokens(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement; empty ones are left out."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]
