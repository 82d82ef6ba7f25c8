"""VALUES with many rows of constants: all but the first are kept as they are written.

    INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)

is parsed as `INSERT INTO t VALUES (1, 'a')`; the tree's VALUES has the other rows in its meta. They
are of the same columns, so that all that is asked of a tree is asked of the first one, and no pass
over trees meets a node for each constant.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....kvlayer.fibre import give_way

ROWS = "constant_rows"
"""Where VALUES keeps the rows behind its first one."""
_ROWS_MIN = 50
"""Shorter lists are worth no second way; and among them are those that plans by shape are for."""
_ITEMS_PER_STEP = 16


class Constant(NamedTuple):
    """A number, a text, or one of the words; where it begins in the statement."""

    kind: TokenType
    text: str
    start: int
    negative: bool = False

    @property
    def tree(self) -> exp.Expr:
        """What the parser would have made of it."""
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

_CONSTANTS = frozenset(
    {TokenType.NUMBER, TokenType.STRING, TokenType.NULL, TokenType.TRUE, TokenType.FALSE}
)


def cut_constant_rows(tokens: list[Token]) -> tuple[list[Token], tuple[Row, ...]]:
    """The tokens of an INSERT without all rows of its VALUES but the first, and these rows; all
    tokens where a row is of more than constants, or there are few."""
    place = _behind_values(tokens)
    if place is None:
        return tokens, ()
    rows: list[Row] = []
    first_end = place
    while True:
        row = _row(tokens, place)
        if row is None or (rows and len(row) != len(rows[0])):
            return tokens, ()
        place += 1 + 2 * len(row) + sum(item.negative for item in row)
        rows.append(row)
        if len(rows) == 1:
            first_end = place
        if place + 1 >= len(tokens) or tokens[place].token_type != TokenType.COMMA:
            break
        place += 1
    if len(rows) < _ROWS_MIN:
        return tokens, ()
    return tokens[:first_end] + tokens[place:], tuple(rows[1:])


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


def _row(tokens: list[Token], place: int) -> Row | None:
    """The constants between the parenthesis at `place` and its end; None for anything else."""
    if place >= len(tokens) or tokens[place].token_type != TokenType.L_PAREN:
        return None
    items: list[Constant] = []
    last = len(tokens) - 1
    while place + 2 <= last:
        if not len(items) % _ITEMS_PER_STEP:
            give_way()
        token = tokens[place + 1]
        kind = token.token_type
        negative = kind == TokenType.DASH
        if negative:
            place += 1
            token = tokens[place + 1]
            kind = token.token_type
        if kind not in _CONSTANTS or (negative and kind != TokenType.NUMBER):
            return None
        items.append(Constant(kind, token.text, token.start, negative))
        place += 2
        if place > last:
            return None
        behind = tokens[place].token_type
        if behind == TokenType.R_PAREN:
            return tuple(items)
        if behind != TokenType.COMMA:
            return None
    return None
