r"""Regular expressions in PostgreSQL's syntax, which DuckDB runs by RE2, in linear time.

A *pattern* is an "advanced regular expression" (PostgreSQL, section 9.7.3). `native_pattern` writes
it in RE2's syntax token by token, every class and anchor in full, so that no option of RE2 changes
what it means:

    ^a.c$      \Aa(?s:.)c\z
    k          [Kk] where the case means nothing

RE2 says where parentheses or quantifiers are wrong, when DuckDB compiles the result in a thread of
its own: that of a large pattern takes some hundred milliseconds. What RE2 cannot express (back
references, lookaround, edges of words) is refused with SQLSTATE 0A000 and a hint. Whether a text
matches is the same to both.

The module must never know of statements, of sessions or of DuckDB's connections.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ...catalog.values.errors import SQLError
from ..syntax.trees import unsupported

PATTERNS_MAX = 256
"""Patterns that are kept as they were read."""
NATIVE_MAX = 1 << 14
"""Letters of a pattern in RE2's syntax. A longer text takes RE2 milliseconds to compile."""
LENGTH_MAX = 1 << 11
"""Letters of a pattern: reading them takes milliseconds. What is longer is a list of words, for
which there are joins."""
CASED_MAX = 1 << 12
"""Letters of a pattern's ranges whose other cases are looked for, in a microsecond each."""
SHOWN_MAX = 60
"""Letters of a pattern that an error message repeats."""
TOO_COMPLEX = "regular expression is too complex"


@lru_cache(maxsize=PATTERNS_MAX)
def native_pattern(text: str, any_case: bool) -> str:
    """Returns the pattern in RE2's syntax, cached among the last PATTERNS_MAX. Raises SQLError
    2201B where a token is none or the pattern too large, and 0A000 for what is not supported."""
    if len(text) > LENGTH_MAX:
        raise _invalid(TOO_COMPLEX)
    if text.startswith("***"):
        raise _unsupported(text)
    native = "".join(map(_Writer(text, any_case).written, _TOKENS.finditer(text)))
    if len(native) > NATIVE_MAX:
        raise _invalid(TOO_COMPLEX)
    return native


CLASSES: dict[str, str] = {
    "alpha": r"\pL\p{Nl}",
    "alnum": r"\pL\p{Nl}\p{Nd}",
    "word": r"\pL\p{Nl}\p{Nd}_",
    "upper": r"\p{Lu}\p{Lt}",
    "lower": r"\p{Ll}",
    "digit": "0-9",
    "punct": r"\pP\pS",
    "graph": r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}",
    "print": r"\pL\pM\pN\pP\pS\p{Cf}\p{Co}\p{Zs}",
    "space": r"\x{9}-\x{d} \x{1680}\x{2000}-\x{2006}\x{2008}-\x{200a}\x{2028}-\x{2029}"
    r"\x{205f}\x{3000}",
    "blank": r"\x{9} ",
    "cntrl": r"\p{Cc}",
    "ascii": r"\x{0}-\x{7f}",
    "xdigit": "0-9A-Fa-f",
}
"""The text of each class within RE2's brackets, by Unicode's categories."""
_CLASSES = {
    "d": CLASSES["digit"],
    "w": CLASSES["word"],
    "s": CLASSES["space"],
    "D": r"\x{0}-/:-\x{10ffff}",
    "S": r"\x{0}-\x{8}\x{e}-\x{1f}!-\x{167f}\x{1681}-\x{1fff}\x{2007}\x{200b}-\x{2027}"
    r"\x{202a}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}",
}
_LETTERS = {"a": 7, "b": 8, "B": 0x5C, "e": 0x1B, "f": 0xC, "n": 0xA, "r": 0xD, "t": 9, "v": 0xB}

_ESCAPE = r"\\."
_NAME = r"\[(?P<{0}>[:.=])[^\]]*(?P={0})\]"
_TOKENS = re.compile(
    rf"""
      (?P<refused> \(\?(?!:) | \[\[:[<>]:\]\])
    | (?P<sign> \(\?: | [()|])
    | (?P<anchor> [\^$] | \\[AZ])
    | (?P<count> [*+?] | \{{[0-9]+(?:,[0-9]*)?\}})
    | (?P<any> \.)
    | (?P<brackets> \[(?P<negated>\^?+)(?P<inner>
        \]?+(?: {_NAME.format("kind")} | {_ESCAPE} | \[(?![:.=]) | [^\[\]\\] )*+
      )\])
    | (?P<letter> {_ESCAPE} | \{{(?![0-9]) | [^\\\[{{])
    | (?P<unread> .)
    """,
    re.VERBOSE | re.DOTALL,
)
_ELEMENTS = re.compile(
    rf"""
      (?P<named> {_NAME.format("kind")})
    | (?P<low> {_ESCAPE} | [^\\]) (?: -(?P<high> {_NAME.format("end")} | {_ESCAPE} | [^\\]))?
    """,
    re.VERBOSE | re.DOTALL,
)


class _Writer:
    """Writes the tokens of one pattern, and counts the letters whose other cases are looked for."""

    def __init__(self, text: str, any_case: bool) -> None:
        self._text = text
        self._any_case = any_case
        self._cased = 0

    def written(self, token: re.Match[str]) -> str:
        match token.lastgroup:
            case "refused":
                raise _unsupported(self._text)
            case "unread":
                raise _invalid(f"nothing begins with {self._text[token.start() :][:SHOWN_MAX]}")
            case "anchor":
                return r"\A" if token[0] in ("^", r"\A") else r"\z"
            case "count":
                return re.sub("[0-9]+", lambda count: str(int(count[0])), token[0])  # no {02}
            case "any":
                return "(?s:.)"
            case "brackets":
                body = "".join(map(self._element, _ELEMENTS.finditer(token["inner"])))
                return f"[{token['negated']}{body}]"
            case "letter":
                return self._escape(token[0])
        return token[0]

    def _element(self, element: re.Match[str]) -> str:
        """A letter, a range or a class within brackets."""
        low, high = element["low"], element["high"]
        begin = self._letter(element[0] if low is None else low)
        end = begin if high is None else self._letter(high)
        if isinstance(begin, str) and high is None:
            return begin
        if isinstance(begin, str) or isinstance(end, str) or end < begin:
            raise _invalid("invalid character range")
        if self._any_case:
            self._cased += end - begin
            if self._cased > CASED_MAX:
                raise _invalid(TOO_COMPLEX)
        return _ranges(begin, end, any_case=self._any_case)

    def _escape(self, text: str) -> str:
        """A letter outside of brackets."""
        if text == r"\W":
            return f"[^{CLASSES['word']}]"
        meant = self._letter(text)
        if isinstance(meant, str):
            return f"[{meant}]"
        codes = sorted(_cases(meant)) if self._any_case else [meant]
        letters = "".join(map(_written, codes))
        return f"[{letters}]" if len(codes) > 1 else letters

    def _letter(self, text: str) -> int | str:
        """Returns the code of a letter or of an escape; of a class, what stands in brackets."""
        if len(text) == 1:
            return ord(text)
        if text[0] == "[":
            return self._class(text)
        letter = text[1]
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter in _CLASSES:
            return _CLASSES[letter]
        if letter.isascii() and letter.isalnum():
            raise _unsupported(self._text)
        return ord(letter)

    def _class(self, text: str) -> str:
        """Returns a class; `upper` and `lower` are `alpha` where case means nothing."""
        if text[1] != ":":
            raise _unsupported(self._text)
        name = text[2:-2]
        if name not in CLASSES:
            raise _invalid("invalid character class")
        return CLASSES["alpha" if self._any_case and name in ("upper", "lower") else name]


def _written(code: int) -> str:
    """Returns a letter in RE2's syntax, within or outside of brackets."""
    letter = chr(code)
    if 0xD800 <= code <= 0xDFFF or code < 0x20 or code == 0x7F:
        return f"\\x{{{code:x}}}"
    return re.escape(letter) if letter.isascii() and letter != " " else letter


def _cases(code: int) -> set[int]:
    """A letter and what it is in lower and in upper case, one step in each direction."""
    letter = chr(code)
    return {code, *(ord(each) for each in (letter.lower(), letter.upper()) if len(each) == 1)}


def _ranges(low: int, high: int, *, any_case: bool) -> str:
    """A range within brackets; with `any_case`, with the other cases of its letters."""
    ranges = [(low, high)]
    if any_case:
        found = {each for code in range(low, high + 1) for each in _cases(code)}
        ranges += [(code, code) for code in sorted(found) if not low <= code <= high]
    return "".join(
        _written(low) if low == high else f"{_written(low)}-{_written(high)}"
        for low, high in ranges
    )


def _invalid(reason: str) -> SQLError:
    return SQLError("2201B", f"invalid regular expression: {reason}")


def _unsupported(text: str) -> SQLError:
    shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
    return unsupported(
        f'what the regular expression "{shown}" has beyond RE2',
        hint="There are no back references, lookaround, edges of words, options, comments, octal "
        r"numbers and names of letters: ~* is of any case, (^|\W)word(\W|$) is around a word.",
    )
