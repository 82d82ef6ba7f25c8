"""VALUES with many rows of constants: all but the first are kept as they are written.

    INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)

is tokenized and parsed as `INSERT INTO t VALUES (1, 'a')`; the tree's VALUES has the other rows in
its meta. They are of the same columns, so that all that is asked of a tree is asked of the first
one, and neither a token nor a node is made of each constant.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.fibre import give_way

ROWS = "constant_rows"
"""Where VALUES keeps the rows behind its first one."""
_ROWS_MIN = 50
"""Shorter lists are worth no second way; and among them are those that plans by shape are for."""


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
_TEXT = r"[^']*+(?:''[^']*+)*+"
_WORD = r"(?i:null|true|false)"
_BLANKS = r"[ \t\r\n]*+"
_CONSTANT = rf"{_BLANKS}(?:-?{_NUMBER}|'{_TEXT}'|{_WORD}){_BLANKS}"
_ROW = re.compile(rf"{_BLANKS}\({_CONSTANT}(?:,{_CONSTANT})*+\)")
_NEXT_ROW = re.compile(rf"{_BLANKS},{_ROW.pattern}")
_BEHIND_ROWS = re.compile(rf"{_BLANKS}(?:[;)]|\Z|(?i:on|returning)\b)")
_BEGINNING = re.compile(rf"{_BLANKS},{_BLANKS}\({_BLANKS}")
_ITEM = re.compile(rf"(?:(-?)({_NUMBER})|'({_TEXT})'|({_WORD})){_BLANKS}(?:,{_BLANKS}|(?P<end>\)))")


def further_rows(text: str, at: int) -> tuple[int, int] | None:
    """Where the rows behind the first one begin and end, in a text that has VALUES before `at`.
    None where a row is of more than constants, there are few, or they are part of something."""
    first = _ROW.match(text, at)
    if first is None:
        return None
    begin = end = first.end()
    count = 1
    while (found := _NEXT_ROW.match(text, end)) is not None:
        give_way()
        end = found.end()
        count += 1
    if count < _ROWS_MIN or _BEHIND_ROWS.match(text, end) is None:
        return None
    return begin, end


def rows_behind(text: str, tokens: list[Token]) -> tuple[Row, ...]:
    """The rows of an INSERT's VALUES for which there are no tokens. Raises SQLError 42601."""
    place = _behind_values(tokens)
    if place is None:
        return ()
    count = 1
    while place < len(tokens) and tokens[place].token_type != TokenType.R_PAREN:
        count += tokens[place].token_type == TokenType.COMMA
        place += 1
    behind = tokens[place + 1].token_type if place + 1 < len(tokens) else None
    if place == len(tokens) or behind == TokenType.COMMA:
        return ()
    return _rows(text, tokens[place].end + 1, count)


def _rows(text: str, at: int, width: int) -> tuple[Row, ...]:
    rows: list[Row] = []
    while (begun := _BEGINNING.match(text, at)) is not None:
        give_way()
        at = begun.end()
        items: list[Constant] = []
        ended = False
        while not ended:
            found = _ITEM.match(text, at)
            assert found is not None, "these are rows that `further_rows` has seen"
            sign, number, quoted, word, end = found.groups()
            if number is not None:
                items.append(Constant(TokenType.NUMBER, number, found.start(2), sign == "-"))
            elif quoted is not None:
                items.append(Constant(TokenType.STRING, quoted.replace("''", "'"), at))
            else:
                items.append(Constant(_WORDS[word.lower()], word, at))
            at, ended = found.end(), end is not None
        if len(items) != width:
            raise ragged(items[0].start + 1)
        rows.append(tuple(items))
    return tuple(rows)


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
