"""Tokens of a text, part by part where it is long."""

from __future__ import annotations

import re
from itertools import pairwise

from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import give_way
from ..syntax.trees import paced, unsupported
from .dialect import tokens_of
from .pieces import SMALL_LENGTH, Pieces, pieces

_STEPS_PER_PART = 32
"""Steps of a slice that the tokenizing of a part counts as."""

LITERALS = frozenset({TokenType.STRING, TokenType.NATIONAL_STRING})
"""Texts in quotes and in dollars, and `N'…'`."""
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
"""The beginnings of parts that may have no end: quotes, comments, quoted dollars."""
_QUOTED = re.compile(r"""'[^'\\]*'|"[^"]*\"""")
"""Quoted parts with their end; `''` and `""` within one make two of it."""


def _is_small(text: str) -> bool:
    """Whether a text is small and each quoted part has its end: all limits of `pieces` hold."""
    if len(text) > SMALL_LENGTH:
        return False
    return not _QUOTING.search(text if "--" in text else _QUOTED.sub(" ", text))


def tokenize(text: str) -> list[Token]:
    """The tokens of `text`. Raises SQLError 42601 with a position, and 54000 or
    54001 for a text that is beyond what `pieces` allows."""
    try:
        tokens = tokens_of(text, 0, len(text)) if _is_small(text) else _by_parts(text, pieces(text))
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


def statement_ends(text: str) -> list[int]:
    """The places behind the semicolons that end statements. Raises SQLError as `tokenize`."""
    return [each.end + 1 for each in tokenize(text) if each.token_type == TokenType.SEMICOLON]


def statement_tokens(tokens: list[Token]) -> list[list[Token]]:
    """The tokens of each statement; empty ones are left out."""
    groups: list[list[Token]] = [[]]
    for token in paced(tokens):
        if token.token_type == TokenType.SEMICOLON:
            groups.append([])
        else:
            groups[-1].append(token)
    return [group for group in groups if group]


# Literals with escapes, `E'a\n'`, read as PostgreSQL reads them: they are plain ones from here on,
# so that `E'\\x00'::BYTEA` means what `'\x00'::BYTEA` does.
#
#     \b \f \n \r \t; before any other letter the backslash is left out
#
# Letters by their numbers (`\x41`, `\101`, `\u0041`) are refused, never a text of other letters.

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(r"''|\\(.)", re.DOTALL)
_NUMBERED = frozenset("01234567xuU")
_READ = frozenset(
    {TokenType.BYTE_STRING, TokenType.UNICODE_STRING, TokenType.BIT_STRING, TokenType.HEX_STRING}
)


def with_escapes_read(text: str, tokens: list[Token]) -> list[Token]:
    """Returns the tokens with plain literals in place of those with escapes. Raises SQLError."""
    if not any(token.token_type in _READ for token in tokens):
        return tokens
    return [_plain(text, token) if token.token_type in _READ else token for token in tokens]


def _plain(text: str, token: Token) -> Token:
    written, position = text[token.start : token.end + 1], token.start + 1
    if token.token_type == TokenType.UNICODE_STRING:
        raise unsupported("U&'…'", position, "Write the characters themselves, or chr(n).")
    if token.token_type != TokenType.BYTE_STRING:
        if written[0] == "0":
            message = f'trailing junk after numeric literal at or near "{written}"'
            raise SQLError("42601", message, position=position)
        raise unsupported(
            "bit strings (B'…' and X'…')", position, "Write '\\x1f'::BYTEA for bytes."
        )
    return like(token, TokenType.STRING, _content(written[2:-1], position))


def _content(written: str, position: int) -> str:
    """The text of `E'written'`, in which a quote is written twice or behind a backslash. Raises
    SQLError 0A000 for a letter by its number."""

    def meant(found: re.Match[str]) -> str:
        letter = found[1]
        if letter is None:
            return "'"
        if letter in _NUMBERED:
            hint = "Write the character itself, or chr(n); '\\x1f'::BYTEA is of bytes."
            raise unsupported(f"the escape \\{letter}…", position, hint)
        return _LETTERS.get(letter, letter)

    return _ESCAPE.sub(meant, written)
