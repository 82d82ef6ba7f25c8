"""Tokens that say what PostgreSQL would read, where sqlglot would read something else.

    $1::oid[]               an array, which sqlglot does not read
    mood 'sad'              'sad'::mood, for types that sqlglot does not know
    INTERVAL '3 days 02:47'     '3 days 02:47'::INTERVAL: sqlglot reads no further than the days

A tree that was parsed so is said in PostgreSQL's words again by `as_written`.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ....catalog.values.errors import SQLError
from ....kvlayer.fibre import give_way
from ...builtins.macros import PREFIX
from ...syntax.refusals import unsupported
from ...syntax.walks import find_all
from ..lexer import LITERALS, TOKENS_PER_STEP, is_string, like

OID = TokenType.UINT
"""A type that PostgreSQL lacks, and so is free to stand for OID, of which sqlglot reads no
arrays."""

_INTERVAL_UNITS = frozenset({"year", "month", "day", "hour", "minute", "second"})


def meant_tokens(tokens: list[Token]) -> list[Token]:
    """The tokens as they are to be parsed."""
    made: list[Token] = []
    kinds = [None, *(token.token_type for token in tokens), None]
    for place, token in enumerate(tokens):
        before, kind, following = kinds[place : place + 3]
        if not place % TOKENS_PER_STEP:
            give_way()
        listed = kind in _LISTED and following in _LISTED
        if listed or (kind not in _CHANGED and following not in LITERALS):
            made.append(token)
            continue
        if kind == TokenType.NUMBER and following in _WORDS:
            _refuse_junk(token, tokens[place + 1])
        if kind == TokenType.OBJECT_IDENTIFIER and following == TokenType.L_BRACKET:
            made.append(like(token, OID if token.text.lower() == "oid" else kind, token.text))
        elif kind == TokenType.INTERVAL and _whole_interval(tokens, place):
            pass  # its type comes behind it
        elif kind == TokenType.INTERVAL:
            _refuse_fields(tokens, place)
            made.append(token)
        elif is_string(token) and place and _whole_interval(tokens, place - 1):
            interval = tokens[place - 1]
            made += [token, like(token, TokenType.DCOLON, "::"), interval]
        elif kind == TokenType.VAR and _names_type(tokens, place):
            made.append(like(token, TokenType.L_PAREN, "("))
        elif is_string(token) and before == TokenType.VAR and _names_type(tokens, place - 1):
            word = tokens[place - 1]
            made += [token, like(token, TokenType.DCOLON, "::"), word]
            made.append(like(token, TokenType.R_PAREN, ")"))
        else:
            made.append(token)
    return made


_CHANGED = LITERALS | {
    TokenType.NUMBER, TokenType.OBJECT_IDENTIFIER, TokenType.INTERVAL,
}  # fmt: skip
"""Tokens that mean something else for what they are; others do before a literal."""
_LISTED = (TokenType.COMMA, TokenType.NUMBER)
_WORDS = (TokenType.VAR, TokenType.NUMBER)


def _refuse_junk(number: Token, behind: Token) -> None:
    """`123abc` and `1_000` are no numbers, and no number with a name behind it."""
    if behind.start == number.end + 1:
        raise SQLError(
            "42601",
            f'trailing junk after numeric literal at or near "{number.text}{behind.text}"',
            position=number.start + 1,
        )


_NO_TYPES = frozenset(
    {"both", "leading", "trailing", "placing", "zone", "escape", "system", "symmetric"}
    | {"asymmetric"}
)
"""Words that stand before a text and name no type."""


def _names_type(tokens: list[Token], place: int) -> bool:
    """`mood 'sad'`, which is `'sad'::mood`: nothing else is a name and a text behind it."""
    return (
        place + 1 < len(tokens)
        and tokens[place + 1].token_type == TokenType.STRING
        and tokens[place].text.lower() not in _NO_TYPES
        and (place == 0 or tokens[place - 1].token_type != TokenType.DOT)
    )


def _whole_interval(tokens: list[Token], place: int) -> bool:
    """`INTERVAL '…'` without a unit behind it."""
    if tokens[place].token_type != TokenType.INTERVAL or place + 1 >= len(tokens):
        return False
    behind = tokens[place + 2].text.lower() if place + 2 < len(tokens) else ""
    return is_string(tokens[place + 1]) and behind not in _INTERVAL_UNITS


_WHOLE, _SECONDS = re.compile(r"\s*[+-]?[0-9]+\s*"), re.compile(r"\s*[+-]?[0-9]+(\.[0-9]*)?\s*")


def _refuse_fields(tokens: list[Token], place: int) -> None:
    """Raises SQLError 0A000 for fields of an interval behind a text that says more than they keep:
    `INTERVAL '2' DAY` and `INTERVAL '1.5' SECOND` alone have a field there."""
    if place + 2 >= len(tokens) or not is_string(tokens[place + 1]):
        return
    several = place + 3 < len(tokens) and tokens[place + 3].text.lower() == "to"
    kept = _SECONDS if tokens[place + 2].text.lower() == "second" else _WHOLE
    if several or not kept.fullmatch(tokens[place + 1].text):
        raise unsupported(
            "fields of an interval behind its text",
            tokens[place].start + 1,
            "INTERVAL '1 year 2 mons' and '1 day 02:00' say them within.",
        )


def as_written(tree: exp.Expr) -> exp.Expr:
    """A copy of the tree with functions and types by PostgreSQL's names."""
    made = tree.copy()
    for node in find_all(made, exp.Anonymous, exp.DataType):
        if isinstance(node, exp.Anonymous):
            node.set("this", node.name.removeprefix(PREFIX))
        elif node.this == exp.DataType.Type.MEDIUMINT:
            node.replace(exp.DataType(this=exp.DataType.Type.USERDEFINED, kind="INT4"))
        elif isinstance(name := node.args.get("kind"), exp.Identifier) and not name.quoted:
            # Written in quotes it would be a type of that very case.
            if name.name.upper() == "BYTES":
                node.replace(exp.DataType(this=exp.DataType.Type.VARBINARY))
            else:
                name.set("this", name.name.lower())
    return made
