"""`@ x`, which is abs(x): a sign that binds less than those of arithmetic, `@ -5 + 3` is 2."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...builtins.macros import PREFIX
from ...syntax.output_marks import CALLED
from ...syntax.walks import find_all

_MARK = f"{PREFIX}absolute"
_SIGNS = frozenset({TokenType.DASH, TokenType.PLUS})
_BETWEEN = _SIGNS | {TokenType.STAR, TokenType.SLASH, TokenType.MOD, TokenType.CARET,
                     TokenType.DOT, TokenType.DCOLON}  # fmt: skip
_CLOSING = {TokenType.L_PAREN: TokenType.R_PAREN, TokenType.L_BRACKET: TokenType.R_BRACKET}


def absolute_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens with a call around what the sign stands before."""
    made = tokens
    places = [place for place, token in enumerate(tokens) if token.text == "@"]
    for place in reversed(places):  # inner ones first
        if made[place].token_type != TokenType.PARAMETER:
            continue
        end = _operand_end(made, place + 1)
        if end > place + 1:
            sign = made[place]
            called = [_like(sign, TokenType.VAR, _MARK), _like(sign, TokenType.L_PAREN, "(")]
            closed = _like(made[end - 1], TokenType.R_PAREN, ")")
            made = [*made[:place], *called, *made[place + 1 : end], closed, *made[end:]]
    return made


def _operand_end(tokens: list[Token], at: int) -> int:
    """Behind the arithmetic that begins at a place."""
    wanted = True
    while at < len(tokens):
        kind = tokens[at].token_type
        if kind in _CLOSING:
            at = _behind(tokens, at)
            wanted = False
        elif wanted and kind in _SIGNS:
            at += 1
        elif wanted and (tokens[at].text[:1].isalnum() or tokens[at].text[:1] == "_"):
            at, wanted = at + 1, False
        elif not wanted and kind in _BETWEEN:
            at, wanted = at + 1, True
        else:
            break
    return at


def _behind(tokens: list[Token], at: int) -> int:
    opened, closing = tokens[at].token_type, _CLOSING[tokens[at].token_type]
    depth = 0
    for place in range(at, len(tokens)):
        depth += (tokens[place].token_type == opened) - (tokens[place].token_type == closing)
        if depth == 0:
            return place + 1
    return len(tokens)


def _like(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)


def plain_absolutes(tree: exp.Expr) -> exp.Expr:
    """The tree with abs() in the place of these calls; it names no column."""
    for node in reversed(list(find_all(tree, exp.Anonymous))):
        if node.name == _MARK and len(node.expressions) == 1:
            made = exp.Abs(this=node.expressions[0])
            made.meta[CALLED] = ""
            if node is tree:
                return made
            node.replace(made)
    return tree
