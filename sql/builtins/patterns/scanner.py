"""A place in the text of a pattern, and what is wrong with a pattern there."""

from __future__ import annotations

from collections.abc import Callable

from ....catalog.values.errors import SQLError
from ...syntax.refusals import unsupported
from .options import Options

SHOWN_MAX = 60
"""Letters of a pattern that an error message repeats."""


class Scanner:
    """The letters of a pattern from `at` on, read by `options`, which its beginning may set."""

    __slots__ = ("at", "groups", "options", "text")

    def __init__(self, text: str, options: Options) -> None:
        self.text = text
        self.at = 0
        self.options = options
        self.groups = 0  # how many have begun

    @property
    def ended(self) -> bool:
        return self.at >= len(self.text)

    @property
    def letter(self) -> str:
        """The letter here, or none at the end."""
        return self.text[self.at : self.at + 1]

    def sees(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def takes(self, text: str) -> bool:
        """Whether that is here; if so, goes behind it."""
        found = self.sees(text)
        self.at += len(text) if found else 0
        return found

    def take(self) -> str:
        taken = self.letter
        self.at += 1
        return taken

    def take_while(self, wanted: Callable[[str], bool], most: int) -> str:
        begin = self.at
        while not self.ended and self.at - begin < most and wanted(self.letter):
            self.at += 1
        return self.text[begin : self.at]

    def skip_blanks(self) -> None:
        """Goes behind what an expanded pattern has between its parts."""
        while self.options.expanded and not self.ended:
            if self.letter in " \t\n\v\f\r":
                self.at += 1
            elif self.letter == "#":
                end = self.text.find("\n", self.at)
                self.at = end if end >= 0 else len(self.text)
            else:
                return

    def skip_comments(self) -> None:
        """Goes behind blanks and every `(?#…)`."""
        self.skip_blanks()
        while self.sees("(?#"):
            end = self.text.find(")", self.at)
            self.at = end + 1 if end >= 0 else len(self.text)
            self.skip_blanks()

    def unsupported(self, what: str, hint: str) -> SQLError:
        return unsupported(f"{what} in the regular expression {shown(self.text)}", hint=hint)

    def word_edge(self) -> SQLError:
        return self.unsupported(
            "the edge of a word", r"Match what may stand beside the word: (^|\W)word(\W|$)."
        )


def shown(pattern: str) -> str:
    """A pattern in quotes, cut where it is long."""
    return f'"{pattern if len(pattern) <= SHOWN_MAX else pattern[:SHOWN_MAX] + "…"}"'


def invalid(reason: str) -> SQLError:
    """Returns PostgreSQL's error for an invalid pattern (2201B)."""
    return SQLError("2201B", f"invalid regular expression: {reason}")


BAD_ESCAPE = "invalid escape \\ sequence"
BAD_RANGE = "invalid character range"
BAD_BRACKETS = "brackets [] not balanced"
BAD_PARENTHESES = "parentheses () not balanced"
BAD_BRACES = "braces {} not balanced"
BAD_COUNT = "invalid repetition count(s)"
BAD_OPERAND = "quantifier operand invalid"
BAD_CLASS = "invalid character class"
BAD_ELEMENT = "invalid collating element"
BAD_REFERENCE = "invalid backreference number"
BAD_OPTION = "invalid embedded option"
BAD_ARGUMENT = "invalid argument to regex function"
TOO_COMPLEX = "regular expression is too complex"
