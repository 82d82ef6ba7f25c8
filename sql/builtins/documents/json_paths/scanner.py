"""A path's text as tokens: signs, words, texts in quotes, numbers and variables."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum, auto

from .....catalog.values.errors import SQLError

_SIGNS = ("==", "!=", "<>", "<=", ">=", "&&", "||", "**")
_SPECIAL = frozenset("?%$.[]{}()|&!=<>@#,*:-+/")
_BLANKS = frozenset(" \t\n\r\f")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_DIGITS_MAX = 4300  # as many as Python reads as an integer
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


class TokenKind(Enum):
    SIGN = auto()
    WORD = auto()
    TEXT = auto()
    NUMBER = auto()
    VARIABLE = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    kind: TokenKind
    text: str
    value: int | Decimal = 0


def tokens_of(path: str) -> list[Token]:
    """Raises SQLError 42601 for what is no token."""
    return _Scanner(path).tokens()


class _Scanner:
    def __init__(self, path: str) -> None:
        self._path, self._at = path, 0

    def tokens(self) -> list[Token]:
        made: list[Token] = []
        while True:
            self._skip()
            if self._at >= len(self._path):
                return [*made, Token(TokenKind.END, "")]
            made.append(self._next())

    def _letter(self, ahead: int = 0) -> str:
        return self._path[self._at + ahead : self._at + ahead + 1]

    def _skip(self) -> None:
        """Blanks and comments."""
        while self._letter() and (self._letter() in _BLANKS or self._comment()):
            if not self._comment():
                self._at += 1
                continue
            end = self._path.find("*/", self._at + 2)
            if end < 0:
                raise unreadable("unexpected end of comment")
            self._at = end + 2

    def _comment(self) -> bool:
        return self._path.startswith("/*", self._at)

    def _next(self) -> Token:
        letter = self._letter()
        if letter == '"':
            self._at += 1
            return Token(TokenKind.TEXT, self._quoted())
        if letter == "$" and self._names_variable():
            self._at += 1
            if self._letter() == '"':
                self._at += 1
                return Token(TokenKind.VARIABLE, self._quoted())
            return Token(TokenKind.VARIABLE, self._word())
        if letter.isdecimal() or (letter == "." and self._letter(1).isdecimal()):
            return self._number()
        sign = next((each for each in _SIGNS if self._path.startswith(each, self._at)), letter)
        if letter in _SPECIAL:
            self._at += len(sign)
            return Token(TokenKind.SIGN, "!=" if sign == "<>" else sign)
        return Token(TokenKind.WORD, self._word())

    def _names_variable(self) -> bool:
        following = self._letter(1)
        return bool(following) and following not in _SPECIAL and following not in _BLANKS

    def _word(self) -> str:
        made: list[str] = []
        while (letter := self._letter()) and letter not in _SPECIAL and letter not in _BLANKS:
            if letter == '"':
                break
            self._at += 1
            made.append(self._escape() if letter == "\\" else letter)
        return "".join(made)

    def _quoted(self) -> str:
        made: list[str] = []
        while (letter := self._letter()) != '"':
            if not letter:
                raise unreadable("unterminated quoted string")
            self._at += 1
            made.append(self._escape() if letter == "\\" else letter)
        self._at += 1
        return _joined(made)

    def _escape(self) -> str:
        letter = self._letter()
        self._at += 1
        if not letter:
            raise unreadable("unexpected end after backslash")
        if letter == "x":
            return self._code(2, "invalid hexadecimal character sequence")
        if letter != "u":
            return _ESCAPES.get(letter, letter)
        if self._letter() != "{":
            return self._code(4, "invalid Unicode escape sequence")
        end = self._path.find("}", self._at)
        digits = self._path[self._at + 1 : end] if end > 0 else ""
        if not 1 <= len(digits) <= 6 or not set(digits) <= _HEXADECIMAL:
            raise unreadable("invalid Unicode escape sequence")
        self._at = end + 1
        return _letter_of(int(digits, 16))

    def _code(self, count: int, message: str) -> str:
        digits = self._path[self._at : self._at + count]
        if len(digits) != count or not set(digits) <= _HEXADECIMAL:
            raise unreadable(message)
        self._at += count
        return _letter_of(int(digits, 16))

    def _number(self) -> Token:
        start = self._at
        self._digits()
        whole = self._path[start : self._at]
        fraction = self._letter() == "."
        if fraction:
            self._at += 1
            self._digits()
        exponent = self._letter() in ("e", "E") and self._letter()
        if exponent:
            self._at += 1
            self._at += self._letter() in ("+", "-")
            if not self._letter().isdecimal():
                raise unreadable("trailing junk after numeric literal")
            self._digits()
        behind = self._letter()
        word = behind and behind not in _SPECIAL and behind not in _BLANKS and behind != '"'
        if word or (len(whole) > 1 and whole[0] == "0"):
            raise unreadable("trailing junk after numeric literal")
        text = self._path[start : self._at]
        if len(text) > _DIGITS_MAX:
            raise SQLError("22003", "value overflows numeric format")
        if not fraction and not exponent:
            return Token(TokenKind.NUMBER, text, int(text))
        return Token(TokenKind.NUMBER, text, Decimal(f"{Decimal(text):f}"))

    def _digits(self) -> None:
        while self._letter().isdecimal():
            self._at += 1


def _letter_of(code: int) -> str:
    if code == 0:
        raise SQLError(
            "22P05",
            "unsupported Unicode escape sequence",
            detail="\\u0000 cannot be converted to text.",
        )
    if code > 0x10FFFF:
        raise unreadable("Unicode escape value out of range")
    return chr(code)


def _joined(letters: list[str]) -> str:
    """The text, pairs of surrogates being one letter."""
    text = "".join(letters)
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise SQLError(
            "22P02",
            "invalid input syntax for type json",
            detail="Unicode high surrogate must be followed by a low surrogate.",
        ) from None


def unreadable(message: str) -> SQLError:
    return SQLError("42601", f"{message} in jsonpath")
