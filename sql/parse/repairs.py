"""Repairs of sqlglot's parser: forms of PostgreSQL that it reads otherwise, or not at all.

Tokens are changed before sqlglot reads them, and the tree behind it. A form that sqlglot learns
leaves this module.

    $1::oid[]               an array, which sqlglot does not read
    mood 'sad'              ('sad'::mood), for types that sqlglot does not know
    INTERVAL '3 days 02:47'     ('3 days 02:47'::INTERVAL): sqlglot reads no further than the days

A tree that was parsed so is said in PostgreSQL's words again by `as_written`. In trees:

    1 = ANY (ARRAY(SELECT …))           1 = ANY (SELECT …)
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ...kvlayer.process.fibre import give_way
from ..builtins.macros import PREFIX
from ..syntax.trees import find_all, unsupported
from .lexer import LITERALS, TOKENS_PER_STEP, is_string, like

OID = TokenType.UINT
"""A type that PostgreSQL lacks, and so is free to stand for OID, of which sqlglot reads no
arrays."""


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
        elif kind in _TYPES and _names_type(tokens, place):
            made.append(like(token, TokenType.L_PAREN, "("))
        elif is_string(token) and before in _TYPES and _names_type(tokens, place - 1):
            word = tokens[place - 1]
            made += [token, like(token, TokenType.DCOLON, "::"), word]
            made.append(like(token, TokenType.R_PAREN, ")"))
        else:
            made.append(token)
    return made


_CHANGED = LITERALS | {TokenType.NUMBER, TokenType.OBJECT_IDENTIFIER}
"""Tokens that mean something else for what they are; others do before a literal."""
_LISTED = (TokenType.COMMA, TokenType.NUMBER)
_WORDS = (TokenType.VAR, TokenType.NUMBER)
_TYPES = (TokenType.VAR, TokenType.INTERVAL)


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
_FIELDS = frozenset({"year", "month", "day", "hour", "minute", "second"})


def _names_type(tokens: list[Token], place: int) -> bool:
    """Whether a text behind a word is of the type that the word names. Fields behind an interval
    (`INTERVAL '2' DAY`) are left to sqlglot, whose node is refused."""
    if place + 1 >= len(tokens) or tokens[place + 1].token_type != TokenType.STRING:
        return False
    if tokens[place].token_type == TokenType.INTERVAL:
        behind = tokens[place + 2].text.lower() if place + 2 < len(tokens) else ""
        return behind not in _FIELDS
    plain = place == 0 or tokens[place - 1].token_type != TokenType.DOT
    return plain and tokens[place].text.lower() not in _NO_TYPES


def as_written(tree: exp.Expr) -> exp.Expr:
    """A copy of the tree with functions and types by PostgreSQL's names."""
    made = tree.copy()
    for node in find_all(made, exp.Anonymous, exp.DataType, exp.Uuid):
        if isinstance(node, exp.Uuid):  # which sqlglot writes in capitals
            call = exp.Anonymous(this="gen_random_uuid")
            if node is made:
                return call
            node.replace(call)
        elif isinstance(node, exp.Anonymous):
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


# Arrays.

_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


def plain_arrays(tree: exp.Expr) -> exp.Expr:
    """The tree with queries in the place of arrays of them: `= ANY (ARRAY(SELECT …))` asks for a
    row of the query, which DuckDB would take the array for. Patterns are asked for in an array."""
    for some in list(find_all(tree, exp.Any, exp.All)):
        inner = some.this.unnest()
        if isinstance(inner, exp.Values):
            raise unsupported("ANY and ALL of VALUES", some, "IN (VALUES (1), (2)) asks for each.")
        listed = isinstance(inner, exp.Array) and len(inner.expressions) == 1
        query = inner.expressions[0] if listed else None
        if isinstance(query, exp.Query) and isinstance(some.parent, _COMPARISONS):
            some.set("this", query if isinstance(query, exp.Subquery) else exp.Subquery(this=query))
    return tree
