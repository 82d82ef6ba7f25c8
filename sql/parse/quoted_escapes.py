"""Literals with escapes, `E'a\\n'`, read as PostgreSQL reads them.

They are plain literals from here on, so that `E'\\\\x00'::BYTEA` means what `'\\x00'::BYTEA` does.

    \\b \\f \\n \\r \\t; \\ooo and \\xhh for bytes of UTF-8; \\uXXXX and \\UXXXXXXXX; before any
    other letter the backslash is left out

Halves of surrogate pairs are put together. What is wrong with an escape is an error, never a text.
"""

from __future__ import annotations

import re

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax.refusals import unsupported

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPE = re.compile(
    r"""'' | \\(?: u(?P<short>[0-9a-fA-F]{4}) | U(?P<long>[0-9a-fA-F]{8}) | (?P<unfinished>[uU])
      | (?P<octal>[0-7]{1,3}) | x(?P<hex>[0-9a-fA-F]{1,2}) | (?P<letter>.) )""",
    re.VERBOSE | re.DOTALL,
)
_READ = frozenset(
    {TokenType.BYTE_STRING, TokenType.UNICODE_STRING, TokenType.BIT_STRING, TokenType.HEX_STRING}
)


def with_escapes_read(text: str, tokens: list[Token]) -> list[Token]:
    """Returns the tokens with plain literals in place of those with escapes. Raises SQLError."""
    if not any(token.token_type in _READ for token in tokens):
        return tokens
    followers = [*tokens[1:], None]
    return [
        _plain(text, token, following) if token.token_type in _READ else token
        for token, following in zip(tokens, followers, strict=True)
    ]


def _plain(text: str, token: Token, following: Token | None) -> Token:
    written, position = text[token.start : token.end + 1], token.start + 1
    if token.token_type == TokenType.UNICODE_STRING:
        raise unsupported("U&'…'", position, "E'\\u00e4' has the same letters.")
    if token.token_type != TokenType.BYTE_STRING:
        if written[0] == "0":
            message = f'trailing junk after numeric literal at or near "{written}"'
            raise SQLError("42601", message, position=position)
        raise unsupported(
            "bit strings (B'…' and X'…')", position, "Write '\\x1f'::BYTEA for bytes."
        )
    if following is not None and following.token_type == TokenType.STRING:
        _on_another_line(text, token, following)
    content = _content(written[2:-1], position)
    return Token(TokenType.STRING, content, token.line, token.col, token.start, token.end)


def _on_another_line(text: str, token: Token, following: Token) -> None:
    """Raises SQLError 42601 for `E'a' 'b'`: literals are put together over the ends of lines."""
    if "\n" not in text[token.end + 1 : following.start]:
        raise SQLError(
            "42601",
            f"syntax error at or near {text[following.start : following.end + 1]}",
            position=following.start + 1,
            hint="Write || between them.",
        )


def _content(written: str, position: int) -> str:
    """The text of `E'written'`, in which a quote is written twice or behind a backslash."""
    made, at = bytearray(), 0
    for found in _ESCAPE.finditer(written):
        made += written[at : found.start()].encode() + _escaped(found, position)
        at = found.end()
    made += written[at:].encode()
    try:
        text = made.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SQLError(
            "22021",
            'invalid byte sequence for encoding "UTF8" in an escape string',
            position=position,
            hint="Texts hold UTF-8 without zero bytes; BYTEA takes '\\x…'.",
        )
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        raise SQLError("42601", "invalid Unicode surrogate pair", position=position) from None


def _escaped(found: re.Match[str], position: int) -> bytes:
    """The character of an escape in UTF-8; a half of a surrogate pair has three bytes."""
    code = found["short"] or found["long"]
    if code is not None:
        value = int(code, 16)
        if not 0 < value <= 0x10FFFF:
            raise SQLError("42601", "invalid Unicode escape value", position=position)
        return chr(value).encode("utf-8", "surrogatepass")
    if found["unfinished"] is not None:
        raise SQLError(
            "22025",
            "invalid Unicode escape",
            position=position,
            hint="Unicode escapes are \\uXXXX and \\UXXXXXXXX.",
        )
    if found["octal"] is not None:
        return bytes([int(found["octal"], 8) & 0xFF])
    if found["hex"] is not None:
        return bytes([int(found["hex"], 16)])
    letter = found["letter"]
    return b"'" if letter is None else _LETTERS.get(letter, letter).encode()
