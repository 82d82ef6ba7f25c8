"""A cursor over the words of one statement of ours.

A *word* is an unquoted word, folded to lower case; keywords are not a kind of their own, because
what is a keyword depends on where it stands (`CREATE TABLE job (...)` is fine).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NoReturn, TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...catalog.values.shown_text import shown_text
from ...kvlayer.fibre import give_way
from ..syntax.names import ObjectName, Option
from .lexer import TOKENS_PER_STEP, is_string

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


class LexemeKind(Enum):
    WORD = "word"  # text is folded to lower case
    QUOTED = "quoted name"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"
    END = "end"


@dataclass(frozen=True, slots=True)
class Lexeme:
    """One word, literal or symbol; `start` and `end` are zero-based offsets, end exclusive."""

    kind: LexemeKind
    text: str
    start: int
    end: int
    token_index: int


def lexemes(text: str, tokens: list[Token]) -> list[Lexeme]:
    """`tokens` as lexemes, keywords of several words taken apart, with an END behind them."""
    found: list[Lexeme] = []
    for index, token in enumerate(tokens):
        if not index % TOKENS_PER_STEP:
            give_way()
        start, end = token.start, token.end + 1
        if is_string(token):
            found.append(Lexeme(LexemeKind.STRING, token.text, start, end, index))
        elif token.token_type == TokenType.IDENTIFIER:
            found.append(Lexeme(LexemeKind.QUOTED, token.text, start, end, index))
        elif token.token_type == TokenType.NUMBER:
            found.append(Lexeme(LexemeKind.NUMBER, token.text, start, end, index))
        elif _wordlike(text[start:end]):
            at = start
            for word in text[start:end].split():
                at = text.index(word, at)
                found.append(Lexeme(LexemeKind.WORD, word.lower(), at, at + len(word), index))
        else:
            found.append(Lexeme(LexemeKind.SYMBOL, token.text, start, end, index))
    end = tokens[-1].end + 1 if tokens else len(text)
    found.append(Lexeme(LexemeKind.END, "", end, end, len(tokens)))
    return found


def _wordlike(written: str) -> bool:
    return written[:1].isalpha() or written[:1] == "_"


class Cursor:
    """Reads lexemes from left to right. `accept_*` say whether they moved; `expect_*` raise."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self._lexemes = lexemes(text, tokens)
        self._index = 0

    @property
    def current(self) -> Lexeme:
        return self._lexemes[self._index]

    @property
    def position(self) -> int:
        """One-based position of the current lexeme."""
        return self.current.start + 1

    @property
    def statement_text(self) -> str:
        """The whole statement as written, without comments around it."""
        return self.text[self.tokens[0].start : self.tokens[-1].end + 1]

    @property
    def finished(self) -> bool:
        return self.current.kind is LexemeKind.END

    def advance(self) -> Lexeme:
        lexeme = self.current
        if lexeme.kind is not LexemeKind.END:
            self._index += 1
        return lexeme

    def mark(self) -> int:
        """Where it stands, for `rewind`."""
        return self._index

    def rewind(self, mark: int) -> None:
        assert mark <= self._index, (mark, self._index)
        self._index = mark

    def skip_to_token(self, token_index: int) -> None:
        """Moves on to the first lexeme of a later token."""
        while self.current.token_index < token_index:
            self.advance()

    def back_to_token(self, token_index: int) -> None:
        """Goes back to the first lexeme of an earlier token."""
        while self._index and self._lexemes[self._index - 1].token_index >= token_index:
            self._index -= 1

    def at_words(self, *words: str) -> bool:
        ahead = self._lexemes[self._index : self._index + len(words)]
        return len(ahead) == len(words) and all(
            lexeme.kind is LexemeKind.WORD and lexeme.text == word
            for lexeme, word in zip(ahead, words, strict=True)
        )

    def accept_words(self, *words: str) -> bool:
        if not self.at_words(*words):
            return False
        self._index += len(words)
        return True

    def expect_words(self, *words: str) -> None:
        for word in words:
            if not self.accept_words(word):
                self.fail(expected=word.upper())

    def at_symbol(self, symbol: str) -> bool:
        return self.current.kind is LexemeKind.SYMBOL and self.current.text == symbol

    def accept_symbol(self, symbol: str) -> bool:
        if not self.at_symbol(symbol):
            return False
        self._index += 1
        return True

    def expect_symbol(self, symbol: str) -> None:
        if not self.accept_symbol(symbol):
            self.fail(expected=f'"{symbol}"')

    def expect_end(self) -> None:
        if not self.finished:
            self.fail(expected="the end of the statement")

    def identifier(self, what: str) -> str:
        """A name: a word that is not reserved, or anything in double quotes."""
        lexeme = self.current
        if lexeme.kind is LexemeKind.QUOTED and lexeme.text:
            return self.advance().text
        if lexeme.kind is LexemeKind.WORD and lexeme.text not in RESERVED:
            return self.advance().text
        hint = None
        if lexeme.kind is LexemeKind.WORD:
            hint = (
                f'"{lexeme.text}" is a reserved word: put it in double quotes to use it as a name.'
            )
        self.fail(expected=what, hint=hint)

    def object_name(self, what: str) -> ObjectName:
        position = self.position
        parts = [self.identifier(what)]
        while self.accept_symbol("."):
            parts.append(self.identifier(what))
        if len(parts) > 3:
            raise SQLError(
                "42601",
                f"improper qualified name (too many dots): {'.'.join(parts)}",
                position=position,
            )
        return ObjectName(tuple(parts), position)

    def dotted_name(self, what: str) -> str:
        parts = [self.identifier(what)]
        while self.accept_symbol("."):
            parts.append(self.identifier(what))
        return ".".join(parts)

    def string(self, what: str) -> str:
        if self.current.kind is not LexemeKind.STRING:
            self.fail(expected=f"{what} in single quotes")
        return self.advance().text

    def integer(self, what: str) -> int:
        if self.current.kind is not LexemeKind.NUMBER or not self.current.text.isdecimal():
            self.fail(expected=what)
        return int(self.advance().text)

    def option_value(self) -> str:
        """The text of a string, a signed number, or a word such as true, which may be in quotes."""
        sign = "-" if self.accept_symbol("-") else ""
        lexeme = self.current
        if lexeme.kind is LexemeKind.NUMBER:
            return sign + self.advance().text
        if not sign and lexeme.kind in (LexemeKind.STRING, LexemeKind.WORD, LexemeKind.QUOTED):
            return self.advance().text
        self.fail(expected="a value")

    def option(self) -> Option:
        position = self.position
        name = self.dotted_name("an option")
        value = self.option_value() if self.accept_symbol("=") else None
        return Option(name, value, position)

    def listed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """One or more items, with commas between them."""
        found = [item()]
        while self.accept_symbol(","):
            found.append(item())
        return tuple(found)

    def enclosed(self, item: Callable[[], T]) -> tuple[T, ...]:
        """`(item, …)`"""
        self.expect_symbol("(")
        found = self.listed(item)
        self.expect_symbol(")")
        return found

    def names(self, what: str) -> tuple[ObjectName, ...]:
        """`name, …`"""
        return self.listed(lambda: self.object_name(what))

    def rest(self) -> list[Token]:
        """The tokens from here on to the end of the statement, which are read with that."""
        if self.finished:
            return []
        tokens = self.tokens[self.current.token_index :]
        self.skip_to_token(len(self.tokens))
        return tokens

    def until(self, ends: Callable[[], bool]) -> list[Token]:
        """The tokens up to where `ends` holds outside of parentheses, or to the end."""
        first, depth = self.current.token_index, 0
        while not self.finished and (depth or not ends()):
            depth += self.at_symbol("(") + self.at_symbol("[")
            depth -= self.at_symbol(")") + self.at_symbol("]")
            self.advance()
        return self.tokens[first : self.current.token_index]

    def fail(self, *, expected: str | None = None, hint: str | None = None) -> NoReturn:
        """Raises the syntax error at the current lexeme."""
        if hint is None and expected is not None:
            hint = f"Expected {expected}."
        raise syntax_error(self.text, self.current.start, self.current.end, hint=hint)


def syntax_error(text: str, start: int, end: int, *, hint: str | None = None) -> SQLError:
    """Returns the error (42601) for `text[start:end]`; an empty range is the end of input."""
    near = shown_text(text[start:end])
    message = f'syntax error at or near "{near}"' if near else "syntax error at end of input"
    return SQLError("42601", message, hint=hint, position=start + 1)
