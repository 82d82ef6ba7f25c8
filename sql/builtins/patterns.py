"""Regular expressions in PostgreSQL's syntax, which DuckDB runs by RE2, in time linear in the text.

A *pattern* is an "advanced regular expression" (PostgreSQL, section 9.7.3). `Pattern` writes it in
RE2's syntax, every class and anchor in full, and says what is wrong with it in PostgreSQL's words.
What RE2 cannot express (back references, lookaround, edges of words) is refused with SQLSTATE 0A000
and a hint. Whether a text matches is the same to both; of several matches at one place PostgreSQL
takes the longest and RE2 the first, so that matches are replaced where these are the same one.

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


@lru_cache(maxsize=PATTERNS_MAX)
def pattern_of(text: str, any_case: bool) -> Pattern:
    """Returns a pattern that was read, cached among the last PATTERNS_MAX. Raises SQLError as
    `Pattern` does."""
    return Pattern(text, any_case)


# The pattern in RE2's syntax, token by token. No option of RE2 changes what the text means.
#
#     ^a.c$      \Aa(?s:.)c\z
#     (?i)k      [Kk]

COUNT_MAX = 255
"""PostgreSQL's limit of a quantifier in braces."""
DEPTH_MAX = 50
"""Parentheses in parentheses."""
LENGTH_MAX = 1 << 11
"""Letters of a pattern: reading them takes milliseconds. What is longer is a list of words, for
which there are joins."""
CASED_MAX = 1 << 12
"""Letters of a pattern's ranges whose other cases are looked for, in a microsecond each."""
SHOWN_MAX = 60
"""Letters of a pattern that an error message repeats."""
TOO_COMPLEX = "regular expression is too complex"
_CODE_MAX = 0x10FFFF


_CASES = {"c": False, "i": True}
"""Whether the case of letters is ignored behind an option."""
_OTHER_OPTIONS = "bemnpqstwx"
"""Options for other syntaxes, and for newlines."""


GLOBAL = "g"


def options_of(flags: str) -> tuple[bool, bool]:
    """Returns whether flags ignore the case of letters, and whether `g` is among them. Raises
    SQLError 22023 and 0A000."""
    any_case = False
    for letter in flags.replace(GLOBAL, ""):
        said = _ignores_case(letter)
        if said is None:
            raise SQLError("22023", f'invalid regular expression option: "{letter}"')
        any_case = said
    return any_case, GLOBAL in flags


def _ignores_case(letter: str) -> bool | None:
    """Returns what one more option says; None for no option of PostgreSQL's. Raises SQLError 0A000
    for one that is not supported."""
    if letter in _OTHER_OPTIONS:
        what = f'the option "{letter}" of a regular expression'
        raise unsupported(what, hint="Leave it out: `.` matches a newline, [^\\n] does not.")
    return _CASES.get(letter)


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

_ESCAPE = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]+|[^uUx])"
_NAME = r"\[(?P<{0}>[:.=])[^\]]*(?P={0})\]"
_TOKENS = re.compile(
    rf"""
      (?P<refused> \(\?<?[=!] | \(\?\# | \[\[:[<>]:\]\])
    | (?P<open> \(\?: | \((?!\?))
    | (?P<close> \))
    | (?P<bar> \|)
    | (?P<anchor> [\^$] | \\[AZ])
    | (?P<count> (?: [*+?] | \{{(?P<least>[0-9]+)(?:,(?P<most>[0-9]*))?\}})(?P<fewer>\??))
    | (?P<any> \.)
    | (?P<brackets> \[(?P<negated>\^?+)(?P<inner>
        \]?+(?: {_NAME.format("kind")} | {_ESCAPE} | \[(?![:.=]) | [^\[\]\\] )*+
      )\])
    | (?P<letter> {_ESCAPE} | \{{(?![0-9]) | [^\\\[({{])
    """,
    re.VERBOSE | re.DOTALL,
)
_KINDS = ("refused", "open", "close", "bar", "anchor", "count", "any", "brackets", "letter")
_ELEMENTS = re.compile(
    rf"""
      (?P<named> {_NAME.format("kind")})
    | (?P<low> {_ESCAPE} | [^\\]) (?: -(?P<high> {_NAME.format("end")} | {_ESCAPE} | [^\\]))?
    """,
    re.VERBOSE | re.DOTALL,
)
_UNREAD = {
    "(": "quantifier operand invalid",
    "[": "brackets [] not balanced",
    "\\": "invalid escape \\ sequence",
    "{": "invalid repetition count(s)",
}
"""The error of a place where no token begins, by its letter."""


class Pattern:
    """`native` is the pattern in RE2's syntax.

    Raises SQLError 2201B for what is no pattern or too large, and 0A000 for what is not supported.
    """

    def __init__(self, text: str, any_case: bool) -> None:
        self._text = text
        self._any_case = any_case
        self._depth = 0
        self._before = "open"  # the kind of the token before
        self._cased = 0  # letters of ranges whose other cases were looked for
        self._groups = 0
        self._letters = 0  # of the shortest match, where no group is repeated
        self._first_is_longest = True
        if len(text) > LENGTH_MAX:
            raise invalid(TOO_COMPLEX)
        if text.startswith("***"):
            raise self._unsupported()
        self.native = "".join(self._pieces(self._prefix()))
        if len(self.native) > NATIVE_MAX:
            raise invalid(TOO_COMPLEX)

    def _prefix(self) -> int:
        """Reads the options at the beginning; returns where the pattern goes on."""
        prefix = re.match(r"\(\?([a-zA-Z]+)(\)?)", self._text)
        for letter in prefix[1] if prefix is not None else "":
            said = _ignores_case(letter)
            if said is None:
                raise invalid("invalid embedded option")
            self._any_case = said
        if prefix is not None and not prefix[2]:
            raise invalid("invalid embedded option")
        return 0 if prefix is None else prefix.end()

    def _pieces(self, at: int) -> list[str]:
        pieces: list[str] = []
        while at < len(self._text):
            token = _TOKENS.match(self._text, at)
            if token is None:
                if re.match(r"\{[0-9]+(,[0-9]*)?$", self._text[at:]):
                    raise invalid("braces {} not balanced")
                raise invalid(_UNREAD[self._text[at]])
            kind = next(kind for kind in _KINDS if token[kind] is not None)
            pieces.append(self._written(kind, token))
            self._before = kind
            at = token.end()
        if self._depth:
            raise invalid("parentheses () not balanced")
        return pieces

    def _written(self, kind: str, token: re.Match[str]) -> str:
        match kind:
            case "refused":
                raise self._unsupported()
            case "open" | "close":
                self._depth += 1 if kind == "open" else -1
                if self._depth < 0:
                    raise invalid("parentheses () not balanced")
                if self._depth > DEPTH_MAX:
                    raise invalid(TOO_COMPLEX)
                self._groups += token[0] == "("
            case "bar":
                self._first_is_longest = False
            case "anchor":
                return r"\A" if token[0] in ("^", r"\A") else r"\z"
            case "count":
                return self._count(token)
            case "any":
                self._letters += 1
                return "(?s:.)"
            case "brackets":
                self._letters += 1
                body = "".join(map(self._element, _ELEMENTS.finditer(token["inner"])))
                return f"[{token['negated']}{body}]"
            case "letter":
                self._letters += 1
                return self._escape(token[0])
        return token[0]

    def _count(self, token: re.Match[str]) -> str:
        """`*`, `+`, `?`, `{m}`, `{m,}` and `{m,n}`, with `?` behind it where fewer are better."""
        if self._before in ("open", "bar", "anchor", "count"):
            raise invalid(_UNREAD["("])
        counts = [int(token[name]) for name in ("least", "most") if token[name]]
        if counts != sorted(counts) or any(count > COUNT_MAX for count in counts):
            raise invalid(_UNREAD["{"])
        if self._before == "close" or token["fewer"]:
            self._first_is_longest = False
        self._letters -= token[0][0] in "*?" or counts[:1] == [0]
        return re.sub("[0-9]+", lambda count: str(int(count[0])), token[0])  # RE2 takes no {02}

    def replacement(self, text: str, *, everywhere: bool) -> str:
        """Returns a text that replaces a match, or each one `everywhere`, in RE2's syntax. Raises
        SQLError 0A000 where RE2 may have other matches than PostgreSQL."""
        if not self._first_is_longest:
            raise unsupported(
                "regexp_replace() with alternatives, repeated groups or non-greedy quantifiers",
                hint="[ab] is a or b, [^x]*x the least up to an x; one call may be within another.",
            )
        if everywhere and not self._letters:
            raise unsupported(
                "regexp_replace() of all matches, empty ones among them",
                hint="x+ matches one letter at least, where x* matches none as well.",
            )
        return re.sub(r"\\(.?)", self._replaced, text, flags=re.DOTALL)

    def _replaced(self, escape: re.Match[str]) -> str:
        """Returns a backslash and the letter behind it as RE2 has them: `&` is the match, a number
        a group, which is empty where the pattern has no such, and all else stays the two."""
        letter = escape[1]
        if letter == "&":
            return r"\0"
        if letter in tuple("123456789"):
            return escape[0] if int(letter) <= self._groups else ""
        return r"\\" + letter.replace("\\", "")

    def _element(self, element: re.Match[str]) -> str:
        """A letter, a range or a class within brackets."""
        first, low, high = element.start() == 0, element["low"], element["high"]
        if low == "-" and not first and element.end() < len(element.string):
            raise invalid("invalid character range")
        begin = self._letter(element[0] if low is None else low)
        end = begin if high is None else self._letter(high)
        if isinstance(begin, str) and high is None:
            return begin
        if isinstance(begin, str) or isinstance(end, str) or end < begin:
            raise invalid("invalid character range")
        if self._any_case:
            self._cased += end - begin
            if self._cased > CASED_MAX:
                raise invalid(TOO_COMPLEX)
        return _ranges(begin, end, any_case=self._any_case)

    def _escape(self, text: str) -> str:
        """A letter outside of brackets."""
        if text == r"\W":
            return f"[^{CLASSES['word']}]"
        meant = self._letter(text)
        if isinstance(meant, str):
            return f"[{meant}]"
        codes = sorted(_cases(meant)) if self._any_case else [meant]
        letters = "".join(map(written, codes))
        return f"[{letters}]" if len(codes) > 1 else letters

    def _letter(self, text: str) -> int | str:
        """Returns the code of a letter or of an escape; of a class, what stands in brackets."""
        if len(text) == 1:
            return ord(text)
        if text[0] == "[":
            return self._class(text)
        letter = text[1]
        if len(text) > 2:
            code = int(text[2:], 16)
            if code > _CODE_MAX or 0xD800 <= code <= 0xDFFF:
                raise self._unsupported()
            return code
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter in _CLASSES:
            return _CLASSES[letter]
        if not (letter.isascii() and letter.isalnum()):
            return ord(letter)
        raise self._unsupported() if letter in "0123456789mMyYcW" else invalid(_UNREAD["\\"])

    def _class(self, text: str) -> str:
        """Returns a class; `upper` and `lower` are `alpha` where case means nothing."""
        if text[1] != ":":
            raise self._unsupported()
        name = text[2:-2]
        if name not in CLASSES:
            raise invalid("invalid character class")
        return CLASSES["alpha" if self._any_case and name in ("upper", "lower") else name]

    def _unsupported(self) -> SQLError:
        text = self._text
        shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
        return unsupported(
            f'what the regular expression "{shown}" has beyond RE2',
            hint="There are no back references, lookaround, edges of words, comments, octal "
            r"numbers and names of letters: match what is around too, as (^|\W)word(\W|$) does.",
        )


def written(code: int) -> str:
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
        written(low) if low == high else f"{written(low)}-{written(high)}" for low, high in ranges
    )


def invalid(reason: str) -> SQLError:
    """Returns PostgreSQL's error for an invalid pattern (2201B)."""
    return SQLError("2201B", f"invalid regular expression: {reason}")
