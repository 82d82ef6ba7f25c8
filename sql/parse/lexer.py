"""Tokens: sqlglot's Postgres tokenizer, and what it does that our grammar must not see.

sqlglot reads a statement that begins with SHOW, EXPLAIN and the like as one *command*: a keyword
and a string that holds the rest. Here the rest is tokenized again, so that one grammar reads all
statements. Some of its keywords are several words (`PRIMARY KEY`, `DOUBLE PRECISION`); `Words` of
the cursor are always single.

It also reads `$1,$` as the beginning of a dollar-quoted text. So every `$` before a digit is masked
while it works, by `@`, which is as long and is a parameter's sign too; positions stay true.
"""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.fibre import give_way
from .pieces import SMALL_LENGTH, UNCUT, Pieces, pieces
from .quoted_escapes import with_escapes_read

POSTGRES = Postgres()
"""Composed with, never subclassed: the compiled build refuses interpreted subclasses."""

_STEPS_PER_PART = 32
"""Steps of a slice that the tokenizing of a part counts as."""


class _GivingWay(dict[TokenType, object]):
    """A table of the parser's that is asked for each operand of an expression, and gives way."""

    def __contains__(self, key: object) -> bool:
        give_way(2)
        return super().__contains__(key)


def _parse_in_slices() -> None:
    """Makes the parser of a long text give way: sqlglot parses a text in one call, and its compiled
    code calls back nothing else that is ours."""
    parser = type(POSTGRES.parser())
    parser.UNARY_PARSERS = _GivingWay(parser.UNARY_PARSERS)  # type: ignore[assignment]


_parse_in_slices()

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
_COMMANDS = {TokenType.COMMAND, TokenType.SHOW, TokenType.EXECUTE, TokenType.FETCH, TokenType.LOCK}
_COMMANDS |= {TokenType.RENAME}

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
    """The tokens of `text`, commands opened. Raises SQLError 42601 with a position, and 54000 or
    54001 for a text that is beyond what `pieces` allows."""
    if len(text) <= SMALL_LENGTH and not _QUOTING.search(text):
        tokens = _tokenize_parts(text, UNCUT)
    else:
        found = pieces(text)
        if found.unterminated is not None:
            raise _unterminated(text, found.unterminated)
        tokens = _tokenize_parts(text, found)
    give_way_for(tokens)
    if any(token.token_type in _COMMANDS for token in tokens):
        tokens = _open_commands(text, tokens)
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


def _tokenize_parts(text: str, found: Pieces) -> list[Token]:
    """The tokens of a text, part by part."""
    ends = [*found.cuts, len(text)]
    try:
        tokens = _tokenize(text[: ends[0]])
        for start, end in pairwise(ends):
            give_way(_STEPS_PER_PART)
            tokens += _tokenize_part(text, found.skipped.get(start, start), end)
    except TokenError as error:
        raise SQLError("42601", "syntax error: the text cannot be read") from error
    return tokens


def _tokenize(text: str) -> list[Token]:
    masked = _mask_parameters(text)
    tokens = POSTGRES.tokenize(masked)
    if masked == text:
        return tokens
    return [
        token
        if masked.startswith(text[token.start : token.end + 1], token.start)
        else _unmask(token, text)
        for token in tokens
    ]


def _mask_parameters(text: str) -> str:
    parts: list[str] = []
    done = 0
    at = text.find("$")
    while at >= 0:
        if text[at + 1 : at + 2].isdecimal() and text[at - 1 : at] != "$":
            parts.append(text[done:at])
            done = at + 1
        at = text.find("$", at + 1)
    if not parts:
        return text
    return "@".join([*parts, text[done:]])


def _unmask(token: Token, text: str) -> Token:
    """The token as it is written: a parameter's sign, or quoted text with a `$1` in it."""
    written = text[token.start : token.end + 1]
    if token.token_type == TokenType.PARAMETER:
        content = written
    else:
        (alone,) = POSTGRES.tokenize(written)
        content = alone.text
    return Token(
        token.token_type, content, token.line, token.col, token.start, token.end, token.comments
    )


def statement_tokens(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement; empty ones are left out."""
    groups: list[list[Token]] = [[]]
    for token in tokens:
        if token.token_type == TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


def _open_commands(text: str, tokens: list[Token]) -> list[Token]:
    opened: list[Token] = []
    for index, token in enumerate(tokens):
        command = tokens[index - 1] if index else token
        swallowed = (
            token.token_type == TokenType.STRING
            and command.token_type in _COMMANDS
            and not _begins_with_quote(text, command, token)
        )
        if swallowed:
            opened.extend(_tokenize_part(text, command.end + 1, token.end + 1))
        else:
            opened.append(token)
    return opened


def _begins_with_quote(text: str, command: Token, token: Token) -> bool:
    """Whether `token` is a literal of the text: then one quote more than its content is there."""
    written = text[command.end + 1 : token.end + 1].strip()
    return written[:1] == "'" and token.text != written


def _tokenize_part(text: str, start: int, end: int) -> list[Token]:
    # With a parenthesis in front nothing in the part is the first token, so nothing is a command.
    part = _tokenize("(" + text[start:end])[1:]
    shift = start - 1
    for token in part:
        token.start += shift
        token.end += shift
    return part


def _unterminated(text: str, at: int) -> SQLError:
    return SQLError(
        "42601",
        f"unterminated quoted text at or near {text[at : at + 20]!r}",
        position=at + 1,
        hint="A quote inside a string is written twice.",
    )
