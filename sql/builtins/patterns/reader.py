"""A pattern written in RE2's syntax, token by token.

a.c        a(?s:.)c
(?n)^a.$   (?m:^)a[^\\x{a}](?m:$)
(?i)k      [Kk]

The grammar is that of PostgreSQL's "advanced regular expressions" (section 9.7.3), with the words
of its errors. No option of RE2 changes what the text means.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from .classes import CLASSES, NO_DIGIT, NO_SPACE, written
from .options import Options, with_letter

COUNT_MAX = 255
"""PostgreSQL's limit of a quantifier in braces."""
DEPTH_MAX = 50
"""Parentheses in parentheses."""
LENGTH_MAX = 1 << 16
"""Letters of a pattern. What is longer is a list of words, for which there are joins."""
SHOWN_MAX = 60
"""Letters of a pattern that an error message repeats."""
TOO_COMPLEX = "regular expression is too complex"
_CODE_MAX = 0x10FFFF
_CASED_END = 0x1E944
"""Behind it no letter has another case."""

_ESCAPE = r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]+|[^uUx])"
_NAME = r"\[(?P<{0}>[:.=])[^\]]*(?P={0})\]"
_TOKENS = re.compile(
    rf"""
      (?P<around> \(\?<?[=!])
    | (?P<edge> \[\[:[<>]:\]\])
    | (?P<open> \(\?: | \((?!\?))
    | (?P<close> \))
    | (?P<bar> \|)
    | (?P<anchor> [\^$] | \\[AZ])
    | (?P<count> (?: [*+?] | \{{(?P<least>[0-9]+)(?P<ranged>,(?P<most>[0-9]*))?\}})(?P<lazy>\??))
    | (?P<any> \.)
    | (?P<brackets> \[(?P<negated>\^?+)(?P<inner>
        \]?+(?: {_NAME.format("kind")} | {_ESCAPE} | \[(?![:.=]) | [^\[\]\\] )*+
      )\])
    | (?P<escape> {_ESCAPE})
    | (?P<letter> \{{(?![0-9]) | [^\\\[({{])
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
_UNREAD = {
    "(": "quantifier operand invalid",
    "[": "brackets [] not balanced",
    "\\": "invalid escape \\ sequence",
    "{": "invalid repetition count(s)",
}
"""The error of a place where no token begins, by its letter."""
_LETTERS = {"a": 7, "b": 8, "B": 0x5C, "e": 0x1B, "f": 0xC, "n": 0xA, "r": 0xD, "t": 9, "v": 0xB}
_CLASSES = {
    "d": CLASSES["digit"],
    "w": CLASSES["word"],
    "s": CLASSES["space"],
    "D": NO_DIGIT,
    "S": NO_SPACE,
}


class Reader:
    """Reads one pattern. Raises SQLError 2201B for what is no pattern, and 0A000 for what is not
    supported.

    `native` is the pattern in RE2's syntax and `groups` the number of its capturing groups. `lazy`
    and `greedy` count the quantifiers of each kind that are of a variable number of times.
    """

    def __init__(self, text: str, options: Options) -> None:
        self._text = text
        self._options = options
        self._depth = 0
        self._before = "open"  # the kind of the token before
        self.groups = self.lazy = self.greedy = 0
        self.alternatives = self.repeats_groups = False
        if len(text) > LENGTH_MAX:
            raise invalid(TOO_COMPLEX)
        if text.startswith("***"):
            raise self._unsupported("***", "Write the pattern without it.")
        self.native = "".join(self._pieces(self._prefix()))

    def _prefix(self) -> int:
        """Reads the options at the beginning; returns where the pattern goes on."""
        prefix = re.match(r"\(\?([a-zA-Z]+)(\)?)", self._text)
        if prefix is None:
            return 0
        for letter in prefix[1]:
            said = with_letter(self._options, letter)
            if said is None:
                raise invalid("invalid embedded option")
            self._options = said
        if not prefix[2]:
            raise invalid("invalid embedded option")
        return prefix.end()

    def _pieces(self, at: int) -> list[str]:
        pieces: list[str] = []
        while at < len(self._text):
            token = _TOKENS.match(self._text, at)
            if token is None:
                raise self._unread(at)
            kind = self._kind(token)
            pieces.append(_WRITERS[kind](self, token))
            self._before = kind
            at = token.end()
        if self._depth:
            raise invalid("parentheses () not balanced")
        return pieces

    @staticmethod
    def _kind(token: re.Match[str]) -> str:
        return next(kind for kind in _WRITERS if token[kind] is not None)

    def _unread(self, at: int) -> SQLError:
        if self._text.startswith("(?#", at):
            return self._unsupported("a comment", "Leave it out.")
        if re.match(r"\{[0-9]+(,[0-9]*)?$", self._text[at:]):
            return invalid("braces {} not balanced")
        return invalid(_UNREAD[self._text[at]])

    def _around(self, token: re.Match[str]) -> str:
        raise self._unsupported(
            "lookaround", "Match what is around as well, and take a group or a second condition."
        )

    def _edge(self, token: re.Match[str]) -> str:
        raise self._unsupported(
            "the edge of a word", r"Match what may stand beside the word: (^|\W)word(\W|$)."
        )

    def _open(self, token: re.Match[str]) -> str:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise invalid(TOO_COMPLEX)
        self.groups += token[0] == "("
        return token[0]

    def _close(self, token: re.Match[str]) -> str:
        self._depth -= 1
        if self._depth < 0:
            raise invalid("parentheses () not balanced")
        return ")"

    def _bar(self, token: re.Match[str]) -> str:
        self.alternatives = True
        return "|"

    def _anchor(self, token: re.Match[str]) -> str:
        if token[0] in ("^", "$") and self._options.lines:
            return f"(?m:{token[0]})"
        return r"\A" if token[0] in ("^", r"\A") else r"\z"

    def _count(self, token: re.Match[str]) -> str:
        """`*`, `+`, `?`, `{m}`, `{m,}` and `{m,n}`, with `?` behind it where fewer are better."""
        if self._before in ("open", "bar", "anchor", "count"):
            raise invalid(_UNREAD["("])
        counts = [int(token[name]) for name in ("least", "most") if token[name]]
        if counts != sorted(counts) or any(count > COUNT_MAX for count in counts):
            raise invalid(_UNREAD["{"])
        fixed = bool(counts) and (token["ranged"] is None or counts == [counts[0]] * 2)
        if self._before == "close" and not (fixed and counts[0] == 1):
            self.repeats_groups = True
        if token["lazy"] and (not counts or token["ranged"]):
            self.lazy += 1
        elif not fixed:
            self.greedy += 1
        return re.sub("[0-9]+", lambda count: str(int(count[0])), token[0])  # RE2 takes no {02}

    def _any(self, token: re.Match[str]) -> str:
        return r"[^\x{a}]" if self._options.stops else "(?s:.)"

    def _brackets(self, token: re.Match[str]) -> str:
        body = "".join(map(self._element, _ELEMENTS.finditer(token["inner"])))
        newline = r"\x{a}" if token["negated"] and self._options.stops else ""
        return f"[{token['negated']}{body}{newline}]"

    def _element(self, element: re.Match[str]) -> str:
        """A letter, a range or a class within brackets."""
        first, low, high = element.start() == 0, element["low"], element["high"]
        if low is None:
            return self._class(self._named(element[0]))
        if low == "-" and not first and element.end() < len(element.string):
            raise invalid("invalid character range")
        begin = self._letter(low)
        if isinstance(begin, str):
            if high is not None:
                raise invalid("invalid character range")
            return begin
        end = begin if high is None else self._letter(high)
        if isinstance(end, str) or end < begin:
            raise invalid("invalid character range")
        return _ranges(begin, end, any_case=self._options.any_case)

    def _named(self, text: str) -> str:
        """The name in `[:alpha:]`."""
        if text[1] != ":":
            raise self._unsupported("the name of a letter", "Write the letter.")
        if text[2:-2] not in CLASSES:
            raise invalid("invalid character class")
        return text[2:-2]

    def _class(self, name: str) -> str:
        """Returns a class by its name; `upper` and `lower` are `alpha` where case means nothing."""
        cased = self._options.any_case and name in ("upper", "lower")
        return CLASSES["alpha" if cased else name]

    def _escape(self, token: re.Match[str]) -> str:
        if token[0] == r"\W":
            return f"[^{CLASSES['word']}]"
        meant = self._letter(token[0])
        return f"[{meant}]" if isinstance(meant, str) else self._one(meant)

    def _plain(self, token: re.Match[str]) -> str:
        return self._one(ord(token[0]))

    def _one(self, code: int) -> str:
        codes = sorted(_cases(code)) if self._options.any_case else [code]
        letters = "".join(map(written, codes))
        return f"[{letters}]" if len(codes) > 1 else letters

    def _letter(self, text: str) -> int | str:
        """Returns the code of a letter or of an escape; of a class, what stands in brackets."""
        if len(text) == 1:
            return ord(text)
        if text[0] == "[":
            return CLASSES[self._named(text)]
        letter = text[1]
        if len(text) > 2:
            code = int(text[2:], 16)
            if code > _CODE_MAX or 0xD800 <= code <= 0xDFFF:
                raise self._unsupported("a letter outside of Unicode", "Leave it out.")
            return code
        if letter in _LETTERS:
            return _LETTERS[letter]
        if letter in _CLASSES:
            return _CLASSES[letter]
        if not (letter.isascii() and letter.isalnum()):
            return ord(letter)
        raise self._refused_escape(letter)

    def _refused_escape(self, letter: str) -> SQLError:
        if letter.isdigit():
            return self._unsupported(
                "a back reference or an octal number",
                "Take the groups with regexp_match(), and compare its elements.",
            )
        if letter in "mMyY":
            return self._unsupported(
                "the edge of a word", r"Match what may stand beside the word: (^|\W)word(\W|$)."
            )
        if letter in "cW":
            return self._unsupported(
                f"\\{letter}{' in brackets' if letter == 'W' else ''}",
                r"Write a control letter as \x and its number, and \W beside brackets, with a |.",
            )
        return invalid(_UNREAD["\\"])

    def _unsupported(self, what: str, hint: str) -> SQLError:
        text = self._text
        shown = text if len(text) <= SHOWN_MAX else f"{text[:SHOWN_MAX]}…"
        return unsupported(f'{what} in the regular expression "{shown}"', hint=hint)


_WRITERS: dict[str, Callable[[Reader, re.Match[str]], str]] = {
    "around": Reader._around,
    "edge": Reader._edge,
    "open": Reader._open,
    "close": Reader._close,
    "bar": Reader._bar,
    "anchor": Reader._anchor,
    "count": Reader._count,
    "any": Reader._any,
    "brackets": Reader._brackets,
    "escape": Reader._escape,
    "letter": Reader._plain,
}


def _cases(code: int) -> set[int]:
    """A letter and what it is in lower and in upper case, one step in each direction."""
    letter = chr(code)
    return {code, *(ord(each) for each in (letter.lower(), letter.upper()) if len(each) == 1)}


def _ranges(low: int, high: int, *, any_case: bool) -> str:
    """A range within brackets; with `any_case`, with the other cases of its letters."""
    ranges = [(low, high)]
    if any_case:
        found = {each for code in range(low, min(high + 1, _CASED_END)) for each in _cases(code)}
        ranges += [(code, code) for code in sorted(found) if not low <= code <= high]
    return "".join(
        written(low) if low == high else f"{written(low)}-{written(high)}" for low, high in ranges
    )


def invalid(reason: str) -> SQLError:
    """Returns PostgreSQL's error for an invalid pattern (2201B)."""
    return SQLError("2201B", f"invalid regular expression: {reason}")
