"""Unicode's normal forms, and escapes of its letters."""

from __future__ import annotations

import unicodedata

from ....catalog.values.errors import SQLError

_FORMS = ("NFC", "NFD", "NFKC", "NFKD")
_DIGITS = {"u": 4, "U": 8, "+": 6}
"""How many hexadecimal digits stand behind each letter of an escape; behind none, four."""


def normalize(text: str, form: str = "NFC") -> str:
    return unicodedata.normalize(_form(form), text)  # type: ignore[arg-type]


def is_normalized(text: str, form: str = "NFC") -> bool:
    return unicodedata.is_normalized(_form(form), text)  # type: ignore[arg-type]


def _form(name: str) -> str:
    if name.upper() not in _FORMS:
        raise SQLError("22023", f"invalid normalization form: {name}")
    return name.upper()


def unistr(text: str) -> str:
    r"""`\0441`, `\+000441`, `\u0441` and `\U00000441` as the letter that they mean."""
    made: list[str] = []
    at = high = 0
    while at < len(text):
        if text[at] != "\\" or text[at + 1 : at + 2] == "\\":
            if high:
                raise _invalid_pair()
            made.append(text[at])
            at += 2 if text[at] == "\\" else 1
            continue
        code, at = _escape(text, at + 1)
        if high and not 0xDC00 <= code <= 0xDFFF:
            raise _invalid_pair()
        if high:
            made.append(chr(0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF)))
            high = 0
        elif 0xD800 <= code <= 0xDBFF:
            high = code
        elif 0xDC00 <= code <= 0xDFFF:
            raise _invalid_pair()
        else:
            made.append(_letter(code))
    if high:
        raise _invalid_pair()
    return "".join(made)


def _escape(text: str, at: int) -> tuple[int, int]:
    """The number that an escape means, from behind its backslash on, and where it ends."""
    count = _DIGITS.get(text[at : at + 1])
    start = at if count is None else at + 1
    digits = text[start : start + (count or 4)]
    if len(digits) != (count or 4) or not all(letter in _HEXADECIMAL for letter in digits):
        raise SQLError(
            "42601",
            "invalid Unicode escape",
            hint="Unicode escapes must be \\XXXX, \\+XXXXXX, \\uXXXX, or \\UXXXXXXXX.",
        )
    return int(digits, 16), start + len(digits)


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def _letter(code: int) -> str:
    if not 0 < code <= 0x10FFFF:
        raise SQLError("42601", f"invalid Unicode code point: {code:04X}")
    return chr(code)


def _invalid_pair() -> SQLError:
    return SQLError("42601", "invalid Unicode surrogate pair")
