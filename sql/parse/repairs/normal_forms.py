"""`x IS NOT NFC NORMALIZED`, which sqlglot does not read.

It is parsed as `x IS DISTINCT FROM normal_form('NFC')`, which binds as it does, and then said as a
call: `NOT is_normalized(x, 'NFC')`.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...builtins.macros import PREFIX
from ...syntax.walks import find_all

_WORD = "normalized"
_FORMS = frozenset({"nfc", "nfd", "nfkc", "nfkd"})
_MARK = f"{PREFIX}normal_form"


def form_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens with the comparison in the place of the words."""
    if not any(token.text.lower() == _WORD for token in tokens):
        return tokens
    made: list[Token] = []
    at = 0
    while at < len(tokens):
        found = _test(tokens, at)
        if found is None:
            made.append(tokens[at])
            at += 1
        else:
            negated, form, at = found
            made += _comparison(tokens[at - 1], form, negated=negated)
    return made


def _test(tokens: list[Token], at: int) -> tuple[bool, str, int] | None:
    """Whether the test that begins here is negated, its form, and where it ends."""
    if tokens[at].token_type != TokenType.IS:
        return None
    at += 1
    negated = at < len(tokens) and tokens[at].token_type == TokenType.NOT
    at += negated
    words = [token.text.lower() for token in tokens[at : at + 2]]
    if words[:1] == [_WORD]:
        return negated, "NFC", at + 1
    if words[1:] == [_WORD] and words[0] in _FORMS:
        return negated, words[0].upper(), at + 2
    return None


def _comparison(near: Token, form: str, *, negated: bool) -> list[Token]:
    words = [(TokenType.IS, "IS")] + ([] if negated else [(TokenType.NOT, "NOT")])
    words += [(TokenType.DISTINCT, "DISTINCT"), (TokenType.FROM, "FROM"), (TokenType.VAR, _MARK)]
    words += [(TokenType.L_PAREN, "("), (TokenType.STRING, form), (TokenType.R_PAREN, ")")]
    return [Token(kind, text, near.line, near.col, near.start, near.end) for kind, text in words]


def plain_forms(tree: exp.Expr) -> exp.Expr:
    """The tree with calls in the place of these comparisons."""
    for mark in list(find_all(tree, exp.Anonymous)):
        test = mark.parent
        if mark.name != _MARK or not isinstance(test, exp.NullSafeEQ | exp.NullSafeNEQ):
            continue
        made: exp.Expr = exp.Anonymous(
            this=f"{PREFIX}is_normalized", expressions=[test.this, mark.expressions[0]]
        )
        if isinstance(test, exp.NullSafeNEQ):
            made = exp.Not(this=made)
        if test is tree:
            return made
        test.replace(made)
    return tree
