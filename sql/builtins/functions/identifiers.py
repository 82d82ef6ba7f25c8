"""parse_ident(): the parts of a qualified name."""

from __future__ import annotations

from ....catalog.values.errors import SQLError

_SPACE = " \t\n\r\f\v"


def parse_ident(text: str, strict: bool = True) -> list[str]:
    """`"SomeSchema".someTable` as SomeSchema and sometable. What stands behind the name is an
    error, unless it is not to be `strict`. Raises SQLError 22023."""
    parts: list[str] = []
    at = _behind_space(text, 0)
    after_dot = False
    while True:
        part, end = _part(text, at)
        if part is None:
            raise _invalid(text, _why_no_part(text, at, after_dot=after_dot))
        parts.append(part)
        at = _behind_space(text, end)
        if text[at : at + 1] != ".":
            break
        at, after_dot = _behind_space(text, at + 1), True
    if strict and at < len(text):
        raise _invalid(text, None)
    return parts


def _behind_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _part(text: str, at: int) -> tuple[str | None, int]:
    """The part that begins at a place, and where it ends; None where none does."""
    if text[at : at + 1] == '"':
        return _quoted(text, at)
    end = at
    while end < len(text) and (_begins(text[end]) or (end > at and _goes_on(text[end]))):
        end += 1
    # Only ASCII is folded: PostgreSQL's own rule where an encoding has several bytes a letter.
    return (_folded(text[at:end]), end) if end > at else (None, at)


def _quoted(text: str, at: int) -> tuple[str, int]:
    end = at + 1
    while True:
        end = text.find('"', end)
        if end < 0:
            raise _invalid(text, "String has unclosed double quotes.")
        if text[end + 1 : end + 2] != '"':
            break
        end += 2
    name = text[at + 1 : end].replace('""', '"')
    if not name:
        raise _invalid(text, "Quoted identifier must not be empty.")
    return name, end + 1


def _begins(letter: str) -> bool:
    return letter == "_" or not letter.isascii() or letter.isalpha()


def _goes_on(letter: str) -> bool:
    return letter == "$" or letter.isdigit()


def _folded(name: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)


def _why_no_part(text: str, at: int, *, after_dot: bool) -> str | None:
    if text[at : at + 1] == ".":
        return 'No valid identifier before ".".'
    return 'No valid identifier after ".".' if after_dot else None


def _invalid(text: str, detail: str | None) -> SQLError:
    return SQLError("22023", f'string is not a valid identifier: "{text}"', detail=detail)
