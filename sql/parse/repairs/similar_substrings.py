"""`substring(s SIMILAR pattern ESCAPE e)`, which sqlglot does not read, by its older form.

substring(s SIMILAR 'a#"b#"' ESCAPE '#')        substring(s FROM 'a#"b#"' FOR '#')
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token, TokenType

_DEEPER = {TokenType.L_PAREN: 1, TokenType.L_BRACKET: 1, TokenType.R_PAREN: -1,
           TokenType.R_BRACKET: -1}  # fmt: skip


def plain_substrings(tokens: list[Token]) -> list[Token]:
    """The tokens with each such call in that form. (`SIMILAR TO` is a token by itself.)"""
    for place, token in enumerate(tokens):
        if token.token_type == TokenType.VAR and token.text.lower() == "similar":
            escape = _escape_behind(tokens, place)
            if escape is not None:
                tokens = [*tokens]
                tokens[place] = _word(token, TokenType.FROM, "FROM")
                tokens[escape] = _word(tokens[escape], TokenType.FOR, "FOR")
    return tokens


def _escape_behind(tokens: list[Token], place: int) -> int | None:
    """Where the ESCAPE stands that belongs to a SIMILAR: within the same parentheses."""
    depth = 0
    for behind in range(place + 1, len(tokens)):
        depth += _DEEPER.get(tokens[behind].token_type, 0)
        if depth < 0:
            return None
        if depth == 0 and tokens[behind].token_type == TokenType.ESCAPE:
            return behind
    return None


def _word(token: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, token.line, token.col, token.start, token.end)
