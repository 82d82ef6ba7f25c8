"""VALUES with many rows of constants: all but the first are kept as they are written.

    INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)

is tokenized and parsed as `INSERT INTO t VALUES (1, 'a')`; the tree's VALUES has the other rows in
its meta. They are of the same columns, so that all that is asked of a tree is asked of the first
one, and neither a token nor a node is made of each constant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.fibre import give_way

ROWS = "constant_rows"
"""Where VALUES keeps the rows behind its first one."""
_PIECES_MIN = 4
"""Shorter lists, of less than 50 rows, are worth no second way; and among them are those that plans
by shape are for."""


class Constant(NamedTuple):
    """A number, a text, or one of the words; where it begins in the statement."""

    kind: TokenType
    text: str
    start: int
    negative: bool = False

    @property
    def tree(self) -> exp.Expr:
        """The tree that the parser would have made of the rows."""
        match self.kind:
            case TokenType.NULL:
                return exp.null()
            case TokenType.TRUE | TokenType.FALSE:
                return exp.Boolean(this=self.kind is TokenType.TRUE)
        text = self.kind is TokenType.STRING
        literal = exp.Literal(this=self.text, is_string=text)
        literal.meta["start"] = self.start
        return exp.Neg(this=literal) if self.negative else literal


Row = tuple[Constant, ...]

_WORDS = {"null": TokenType.NULL, "true": TokenType.TRUE, "false": TokenType.FALSE}
_NUMBER = r"[0-9]{1,100}(?:\.[0-9]{1,100})?"
_TEXT = r"'[^']*+(?:''[^']*+)*+'"
_WORD = r"(?i:null|true|false)"
_BLANKS = r"[ \t\r\n]*+"
_CONSTANT = rf"{_BLANKS}(?:-?{_NUMBER}|{_TEXT}|{_WORD}){_BLANKS}"
_ROW = re.compile(rf"{_BLANKS}\({_CONSTANT}(?:,{_CONSTANT})*+\)")
_NEXT_ROW = re.compile(rf"{_BLANKS},{_ROW.pattern}")
_ROWS_PER_STEP = 16
_NEXT_ROWS = re.compile(rf"(?:{_NEXT_ROW.pattern}){{1,{_ROWS_PER_STEP}}}+")
_CHARACTERS_PER_STEP = 512
"""Characters of rows that are looked at in a step of a slice."""
_BEHIND_ROWS = re.compile(rf"{_BLANKS}(?:[;)]|\Z|(?i:on|returning)\b)")
_ITEM = re.compile(rf"-?{_NUMBER}|{_TEXT}|{_WORD}")
_ROW_OR_ITEM = re.compile(rf"\(|{_ITEM.pattern}")


@dataclass(frozen=True, slots=True)
class ConstantRows:
    """Rows as they are written: `statement[begin:end]`, which begins with a comma. `columns` are
    their constants by column, each as it is written."""

    statement: str
    begin: int
    end: int
    columns: tuple[list[str], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def rows(self) -> Iterator[Row]:
        """The rows with the places of their constants."""
        at = self.begin
        while (found := _NEXT_ROW.match(self.statement, at, self.end)) is not None:
            give_way()
            at = found.end()
            items = _ITEM.finditer(self.statement, found.start(), at)
            yield tuple([constant(item.group(), item.start()) for item in items])


def constant(written: str, start: int) -> Constant:
    """Returns what is written at a place of the statement."""
    if written[0] == "'":
        return Constant(TokenType.STRING, written[1:-1].replace("''", "'"), start)
    word = _WORDS.get(written.lower())
    if word is not None:
        return Constant(word, written, start)
    negative = written[0] == "-"
    return Constant(TokenType.NUMBER, written[negative:], start + negative, negative)


def further_rows(text: str, at: int) -> tuple[int, int] | None:
    """The begin and end of the rows behind the first one, in a text that has VALUES before `at`.
    None where a row is of more than constants, there are few, or they are part of something."""
    first = _ROW.match(text, at)
    if first is None:
        return None
    pieces = list(_pieces(text, first.end()))
    if len(pieces) < _PIECES_MIN or _BEHIND_ROWS.match(text, pieces[-1][1]) is None:
        return None
    return first.end(), pieces[-1][1]


def _pieces(text: str, at: int) -> Iterator[tuple[int, int]]:
    """The begin and end of each `_ROWS_PER_STEP` further rows, or of the rest."""
    while (found := _NEXT_ROWS.match(text, at)) is not None:
        give_way(1 + (found.end() - at) // _CHARACTERS_PER_STEP)
        yield at, found.end()
        at = found.end()


def rows_behind(text: str, tokens: list[Token]) -> ConstantRows | None:
    """The rows of an INSERT's VALUES for which there are no tokens. Raises SQLError 42601."""
    place = _behind_values(tokens)
    if place is None:
        return None
    count = 1
    while place < len(tokens) and tokens[place].token_type != TokenType.R_PAREN:
        count += tokens[place].token_type == TokenType.COMMA
        place += 1
    behind = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    if place == len(tokens) or behind == TokenType.COMMA:
        return None
    return _rows(text, tokens[place].end + 1, count)


def _rows(text: str, begin: int, width: int) -> ConstantRows | None:
    columns: tuple[list[str], ...] = tuple([] for _ in range(width))
    end = begin
    for start, end in _pieces(text, begin):
        give_way((end - start) // _CHARACTERS_PER_STEP)
        found = _ROW_OR_ITEM.findall(text, start, end)
        if len(found) % (width + 1) or set(found[:: width + 1]) != {"("}:
            _refuse_ragged(text, start, width)
        for number, column in enumerate(columns, start=1):
            column += found[number :: width + 1]
    return ConstantRows(text, begin, end, columns) if columns[0] else None


def _refuse_ragged(text: str, at: int, width: int) -> None:
    """Raises SQLError 42601 for the first row that is of another width."""
    while (found := _NEXT_ROW.match(text, at)) is not None:
        items = list(_ITEM.finditer(text, at, found.end()))
        if len(items) != width:
            raise ragged(items[0].start() + (items[0].group()[0] == "-") + 1)
        at = found.end()


def ragged(position: int | None) -> SQLError:
    return SQLError("42601", "VALUES lists must all be the same length", position=position)


def _behind_values(tokens: list[Token]) -> int | None:
    depth = 0
    for place, token in enumerate(tokens):
        kind = token.token_type
        if kind == TokenType.L_PAREN:
            depth += 1
        elif kind == TokenType.R_PAREN:
            depth -= 1
        elif depth == 0 and kind == TokenType.VALUES:
            return place + 1
        elif depth == 0 and kind in (TokenType.SELECT, TokenType.WITH):
            return None
    return None
