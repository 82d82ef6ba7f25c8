"""A cursor over the words of one statement of ours.

A *word* is an unquoted word, folded to lower case; keywords are not a kind of their own, because
what is a keyword depends on where it stands (`CREATE TABLE job (...)` is fine).
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from enum import Enum
from typing import NamedTuple, NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...catalog.values.shown_text import shown_text
from ...kvlayer.process.fibre import give_way
from .lexer import TOKENS_PER_STEP, give_way_for, is_string

T = TypeVar("T")

# fmt: off
RESERVED = frozenset({
    "all", "and", "as", "asc", "between", "case", "check", "constraint", "create", "default",
    "desc", "distinct", "else", "end", "except", "false", "for", "foreign", "from", "group",
    "having", "in", "into", "is", "like", "limit", "not", "null", "offset", "on", "or", "order",
    "primary", "references", "returning", "select", "table", "then", "to", "true", "union",
    "unique", "user", "using", "values", "when", "where", "with"
})
# fmt: on
"""Words that name nothing unless quoted."""

EXPECTED_MAX = 12
"""Words and kinds that a hint lists."""


class LexemeKind(Enum):
    WORD = "word"  # text is folded to lower case
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


class Lexeme(NamedTuple):
    """One word, literal or symbol; `start` and `end` are zero-based offsets, end exclusive."""

    kind: LexemeKind
    text: str
    start: int
    end: int
    token_index: int


class Unmatched(Exception):
    """A rule reads something else than what stands at the cursor, which knows what was missed."""


def lexemes(text: str, tokens: list[Token]) -> list[Lexeme]:
    """`tokens` as lexemes, keywords of several words taken apart, with an END behind them."""
    found: list[Lexeme] = []
    for index, token in enumerate(tokens):
        if not index % TOKENS_PER_STEP:
            give_way()
        start, end = token.start, token.end + 1
        written = text[start:end]
        if is_string(token):
            found.append(Lexeme(LexemeKind.STRING, token.text, start, end, index))
        elif token.token_type == TokenType.IDENTIFIER:
            found.append(Lexeme(LexemeKind.QUOTED, token.text, start, end, index))
        elif token.token_type == TokenType.NUMBER:
            found.append(Lexeme(LexemeKind.NUMBER, token.text, start, end, index))
        elif written[:1].isalpha() or written[:1] == "_":
            at = start
            for word in written.split():
                at = text.index(word, at)
                found.append(Lexeme(LexemeKind.WORD, word.lower(), at, at + len(word), index))
        else:
            found.append(Lexeme(LexemeKind.SYMBOL, token.text, start, end, index))
    end = tokens[-1].end + 1 if tokens else len(text)
    found.append(Lexeme(LexemeKind.END, "", end, end, len(tokens)))
    return found


_FIXED = (LexemeKind.WORD, LexemeKind.SYMBOL)


class Cursor:
    """Reads lexemes from left to right, and back again where another rule is tried."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.lexemes = lexemes(text, tokens)
        give_way_for(tokens)
        self.keys = [each.text if each.kind in _FIXED else "" for each in self.lexemes]
        """Words and symbols by their lexemes, empty for names in quotes and literals."""
        self.index = 0
        self.missed_at = -1
        """The furthest place where something else was expected, and what that is."""
        self._missed: list[str] = []
        self._hint: str | None = None

    @property
    def current(self) -> Lexeme:
        return self.lexemes[self.index]

    @property
    def key(self) -> str:
        """The current word or symbol; empty at a name in quotes and at a literal."""
        return self.keys[self.index]

    @property
    def position(self) -> int:
        """One-based position of the current lexeme."""
        return self.lexemes[self.index].start + 1

    @property
    def finished(self) -> bool:
        return self.current.kind is LexemeKind.END

    def advance(self) -> Lexeme:
        lexeme = self.lexemes[self.index]
        if lexeme.kind is not LexemeKind.END:
            self.index += 1
        return lexeme

    def accept(self, word: str) -> bool:
        """Moves behind a word or symbol, if it is at one."""
        if self.key != word:
            return False
        self.index += 1
        return True

    def listed(self, item: Callable[[Cursor], T]) -> tuple[T, ...]:
        """One or more items, with commas between them."""
        found = [item(self)]
        while self.accept(","):
            found.append(item(self))
        return tuple(found)

    def enclosed(self, item: Callable[[Cursor], T]) -> tuple[T, ...]:
        """`(item, …)`"""
        self.expect("(")
        found = self.listed(item)
        self.expect(")")
        return found

    def expect(self, symbol: str) -> None:
        if not self.accept(symbol):
            self.fail(f'"{symbol}"')

    def skip_to_token(self, token_index: int) -> None:
        """Moves on to the first lexeme of a later token."""
        while self.current.token_index < token_index:
            self.index += 1

    def rest(self) -> list[Token]:
        """The tokens from here on to the end of the statement, which are read with that."""
        tokens = self.tokens[self.current.token_index :]
        self.index = len(self.lexemes) - 1
        return tokens

    def until(self, ends: Callable[[], bool]) -> list[Token]:
        """The tokens up to where `ends` holds outside of parentheses, or to the end."""
        first, depth = self.current.token_index, 0
        while not self.finished and (depth or not ends()):
            depth += (self.key in ("(", "[")) - (self.key in (")", "]"))
            self.index += 1
        return self.tokens[first : self.current.token_index]

    def miss(self, at: int, expected: str | None, hint: str | None = None) -> None:
        """Notes what was expected at a lexeme; what was missed before it is of no interest then."""
        if at > self.missed_at:
            self.missed_at, self._missed, self._hint = at, [], None
        if at == self.missed_at:
            if expected is not None and expected not in self._missed:
                self._missed.append(expected)
            self._hint = hint or self._hint

    def fail(self, expected: str | None = None) -> NoReturn:
        self.miss(self.index, expected)
        raise Unmatched

    def error(self) -> SQLError:
        """The syntax error at the furthest place that was reached."""
        missed = self.lexemes[max(self.missed_at, 0)]
        hint = self._hint
        near = get_close_matches(missed.text.upper(), self._missed, n=1, cutoff=0.8)
        if near and missed.kind is LexemeKind.WORD:
            hint = f"Did you mean {near[0]}?"
        elif self._missed:
            *others, last = self._missed
            if len(others) >= EXPECTED_MAX:
                others, last = others[:EXPECTED_MAX], "others"
            said = f"{', '.join(others)} or {last}" if others else last
            hint = f"Expected {said}." + (f" {hint}" if hint else "")
        return syntax_error(self.text, missed.start, missed.end, hint=hint)


def syntax_error(text: str, start: int, end: int, *, hint: str | None = None) -> SQLError:
    """Returns the error (42601) for `text[start:end]`; an empty range is the end of input."""
    near = shown_text(text[start:end])
    message = f'syntax error at or near "{near}"' if near else "syntax error at end of input"
    return SQLError("42601", message, hint=hint, position=start + 1)
