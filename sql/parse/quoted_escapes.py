"""Literals with escapes, read as PostgreSQL reads them: `E'a\\n'` and `U&'\\00e4'`.

Both are plain literals from here on, so that `E'\\\\x00'::BYTEA` means what `'\\x00'::BYTEA` does.

    E'…'    \\b \\f \\n \\r \\t, \\ooo and \\xhh for bytes of UTF-8, \\uXXXX, \\UXXXXXXXX; before
            any other letter the backslash is left out
    U&'…'   \\XXXX and \\+XXXXXX, with another letter for the backslash behind UESCAPE

Halves of surrogate pairs are put together. What is wrong with an escape is an error, never a text.
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax.refusals import unsupported

_LETTERS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_OCTAL, _HEX = frozenset("01234567"), frozenset("0123456789abcdefABCDEF")
_WIDTHS = {"u": 4, "U": 8}
_UNUSABLE = frozenset("+'\" \t\n\r\f") | _HEX
"""Letters that UESCAPE may not name."""


def with_escapes_read(text: str, tokens: list[Token]) -> list[Token]:
    """Returns the tokens with plain literals in place of those with escapes. Raises SQLError."""
    if not any(token.token_type in _READ for token in tokens):
        return tokens
    made: list[Token] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        kind = token.token_type
        place += 1
        if kind in _BITS and text[token.start] == "0":
            raise SQLError(
                "42601",
                "trailing junk after numeric literal at or near "
                f'"{text[token.start : token.end + 1]}"',
                position=token.start + 1,
            )
        if kind in _BITS:
            raise unsupported(
                "bit strings (B'…' and X'…')", token.start + 1, "Write '\\x1f'::BYTEA for bytes."
            )
        if kind not in _ESCAPED:
            made.append(token)
            continue
        written = text[token.start : token.end + 1]
        content = written[written.index("'") + 1 : -1].replace("''", "'")
        end = token
        if kind == TokenType.BYTE_STRING:
            read = _of_backslashes(written[2:-1], token.start + 1)
        else:
            escape = "\\"
            if place + 1 < len(tokens) and tokens[place].text.lower() == "uescape":
                end = tokens[place + 1]
                escape = _escape(end)
                place += 2
            read = _of_unicode(content, escape, token.start + 1)
        following = tokens[place] if place < len(tokens) else None
        if following is not None and following.token_type == TokenType.STRING:
            _on_another_line(text, end, following)
        made.append(Token(TokenType.STRING, read, token.line, token.col, token.start, end.end))
    return made


_ESCAPED = frozenset({TokenType.BYTE_STRING, TokenType.UNICODE_STRING})
_BITS = frozenset({TokenType.BIT_STRING, TokenType.HEX_STRING})
_READ = _ESCAPED | _BITS


def _on_another_line(text: str, token: Token, following: Token) -> None:
    """Raises SQLError 42601 for `E'a' 'b'`: literals are put together over the ends of lines."""
    if "\n" not in text[token.end + 1 : following.start]:
        raise SQLError(
            "42601",
            f"syntax error at or near {text[following.start : following.end + 1]}",
            position=following.start + 1,
            hint="Write || between them.",
        )


def _escape(token: Token) -> str:
    if token.token_type != TokenType.STRING or len(token.text) != 1 or token.text in _UNUSABLE:
        raise SQLError("42601", "invalid Unicode escape character", position=token.start + 1)
    return token.text


def _of_backslashes(content: str, position: int) -> str:
    """The text of `E'content'`, in which a quote is written twice or behind a backslash."""
    made = bytearray()
    at, high = 0, 0
    while at < len(content):
        letter = content[at]
        following = content[at + 1 : at + 2]
        if letter == "\\" and following in _WIDTHS:
            width = _WIDTHS[following]
            code = _code(content[at + 2 : at + 2 + width], width, "22025", position)
            high, character = _joined(high, code, position)
            made += character.encode()
            at += 2 + width
            continue
        _no_half(high, position)
        if letter == "\\" and following in _OCTAL:
            digits = _digits(content, at + 1, _OCTAL, 3)
            made.append(int(digits, 8) & 0xFF)
            at += 1 + len(digits)
        elif letter == "\\" and following == "x" and content[at + 2 : at + 3] in _HEX:
            digits = _digits(content, at + 2, _HEX, 2)
            made.append(int(digits, 16))
            at += 2 + len(digits)
        elif letter == "\\":
            made += _LETTERS.get(following, following).encode()
            at += 2
        else:
            made += letter.encode()
            at += 2 if letter == "'" else 1
    _no_half(high, position)
    return _text(bytes(made), position)


def _text(content: bytes, position: int) -> str:
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise SQLError(
            "22021",
            'invalid byte sequence for encoding "UTF8" in an escape string',
            position=position,
            hint="Texts hold UTF-8 without zero bytes; BYTEA takes '\\x…'.",
        )
    return text


def _digits(content: str, at: int, known: frozenset[str], most: int) -> str:
    end = at
    while end < min(len(content), at + most) and content[end] in known:
        end += 1
    return content[at:end]


def _of_unicode(content: str, escape: str, position: int) -> str:
    made: list[str] = []
    at, high = 0, 0
    while at < len(content):
        following = content[at + 1 : at + 2]
        if content[at] != escape or following == escape:
            _no_half(high, position)
            made.append(content[at])
            at += 2 if content[at] == escape else 1
            continue
        start, width = (at + 2, 6) if following == "+" else (at + 1, 4)
        high, character = _joined(
            high, _code(content[start : start + width], width, "42601", position), position
        )
        made.append(character)
        at = start + width
    _no_half(high, position)
    return "".join(made)


def _code(digits: str, width: int, sqlstate: str, position: int) -> int:
    if len(digits) != width or not set(digits) <= _HEX:
        raise SQLError(
            sqlstate,
            "invalid Unicode escape",
            position=position,
            hint="In E'…' these are \\uXXXX and \\UXXXXXXXX, in U&'…' \\XXXX and \\+XXXXXX.",
        )
    code = int(digits, 16)
    if not 0 < code <= 0x10FFFF:
        raise SQLError("42601", "invalid Unicode escape value", position=position)
    return code


def _joined(high: int, code: int, position: int) -> tuple[int, str]:
    """The first half that waits for its second one, if any, and the character that is complete."""
    if high and 0xDC00 <= code <= 0xDFFF:
        return 0, chr(0x10000 + ((high - 0xD800) << 10) + code - 0xDC00)
    _no_half(high or (code if 0xDC00 <= code <= 0xDFFF else 0), position)
    return (code, "") if 0xD800 <= code <= 0xDBFF else (0, chr(code))


def _no_half(high: int, position: int) -> None:
    if high:
        raise SQLError("42601", "invalid Unicode surrogate pair", position=position)
