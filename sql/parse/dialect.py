"""sqlglot's Postgres, told what PostgreSQL is.

    SHOW a.b, EXPLAIN …     tokens: sqlglot's *commands* are a keyword, and a string with the rest
    $1,$2                   parameters: a dollar would begin a quoted text, which `pieces` finds
    '7'::INT4               MEDIUMINT, which PostgreSQL lacks: INT, of 64 bits, has no other name
    substr(s, -1)           a call of `postgres_substr`, which only `sql.lower` knows
    f(doc -> 'a')           a member of a document, and no lambda
    a[k]                    the place as it is written: sqlglot counts from zero, where it can tell

Dialect and parser are composed with, and tables of the parser's replaced in its class: the compiled
build refuses interpreted subclasses of it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.tokenizer_core import Token, TokenType

from ...kvlayer.fibre import give_way
from ..builtins.macros import CALLED, PREFIX


class Tokenizer(Postgres.Tokenizer):
    COMMANDS: ClassVar[set[TokenType]] = set()
    HEREDOC_STRINGS: ClassVar[list[str | tuple[str, str]]] = []
    SINGLE_TOKENS: ClassVar[dict[str, TokenType]] = {
        **Postgres.Tokenizer.SINGLE_TOKENS,
        "$": TokenType.PARAMETER,
    }
    KEYWORDS: ClassVar[dict[str, TokenType]] = {
        **Postgres.Tokenizer.KEYWORDS,
        "INT4": TokenType.MEDIUMINT,
    }


class _GivingWay(dict[TokenType, object]):
    """A table of the parser's that is asked for each operand of an expression, and gives way:
    sqlglot parses a text in one call, and its compiled code calls back nothing else that is
    ours."""

    def __contains__(self, key: object) -> bool:
        give_way(2)
        return super().__contains__(key)


def _call(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    return exp.Anonymous(this=f"{PREFIX}{name}", expressions=arguments)


def _postgres() -> Postgres:
    made = Postgres()
    made.INDEX_OFFSET = 0
    parser = type(made.parser())
    own: dict[str, Callable[..., exp.Expr]] = {
        name.upper(): partial(_call, name) for name in CALLED
    }
    parser.FUNCTIONS = {**parser.FUNCTIONS, **own}
    syntax = parser.FUNCTION_PARSERS.items()
    parser.FUNCTION_PARSERS = {name: read for name, read in syntax if name not in own}
    lambdas = parser.LAMBDAS.items()
    parser.LAMBDAS = {sign: read for sign, read in lambdas if sign is not TokenType.ARROW}
    parser.UNARY_PARSERS = _GivingWay(parser.UNARY_PARSERS)  # type: ignore[assignment]
    return made


POSTGRES = _postgres()


def tokens_of(text: str, start: int, end: int) -> list[Token]:
    """The tokens of a part of a text. Raises TokenError."""
    tokens = Tokenizer(POSTGRES).tokenize(text[start:end])
    for token in tokens if start else ():
        token.start += start
        token.end += start
    return tokens
