"""sqlglot's Postgres, told what PostgreSQL is.

    SHOW a.b, EXPLAIN …       tokens: sqlglot's *commands* are a keyword, and a string with the rest
    $1,$2                     parameters: a dollar would begin a quoted text, which `pieces` finds
    '7'::INT4                 MEDIUMINT, which PostgreSQL lacks: INT has 64 bits, and no other name
    substr(s, -1)             a call of `postgres_substr`, which only `sql.lower` knows
    nextval('s'::regclass)    nextval('s'): the name is looked for when it is called
    user, current_role        CURRENT_USER in a column of that name: reserved words, not names
    1 = ALL (a)               no call of a function all(a)
    DATE '2025-01-01'::TEXT   a text of a date: the type's name binds tighter
    f(doc -> 'a')             a member of a document, and no lambda
    a[k], a[:k]               places as they are written: sqlglot counts from zero where it can
                              tell, and takes :k for a parameter

Dialect and parser are composed with, and tables of the parser's replaced in its class: the compiled
build refuses interpreted subclasses of it. The class is RisingWave's, which reads queries as its
parent does, PostgreSQL's: a program that uses sqlglot for PostgreSQL beside the store finds that as
it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from threading import get_ident
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.postgres import Postgres
from sqlglot.dialects.risingwave import RisingWave
from sqlglot.tokenizer_core import Token, TokenType

from ...kvlayer.process.fibre import give_way
from ..builtins.macros import CALLED, PREFIX
from ..syntax.trees import CALLED as COLUMN_NAME


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


_SETS: dict[str, type[exp.Expr]] = {"all": exp.All, "some": exp.Any}
_SEQUENCES = ("nextval", "currval", "setval")


def _call(name: str, arguments: list[exp.Expr]) -> exp.Expr:
    """Returns the tree of a call, which depends on the function's name."""
    if name in CALLED:
        return exp.Anonymous(this=f"{PREFIX}{name}", expressions=arguments)
    first = arguments[0] if arguments else None
    if name in _SETS and len(arguments) == 1:
        return _SETS[name](this=exp.Paren(this=arguments[0]))
    if name in _SEQUENCES and isinstance(first, exp.Cast):
        literal = first.this.unnest()
        arguments[:1] = [literal if isinstance(literal, exp.Literal) else first]
    return exp.Anonymous(this=name, expressions=arguments)


def _typed_literal(parser: object, tree: exp.Expr, type: exp.DataType) -> exp.Expr:
    """Returns the tree of a type's name before a literal, with whatever casts are behind it."""
    literal = tree
    while not isinstance(literal, exp.Literal):
        assert isinstance(literal, exp.Cast | exp.Bracket | exp.Dot), tree
        literal = literal.this
    cast = exp.Cast(this=literal.copy(), to=type)
    if literal is tree:
        return cast
    literal.replace(cast)
    return tree


def _user(word: str, parser: object) -> exp.Expr:
    made = exp.CurrentUser()
    made.meta[COLUMN_NAME] = word
    return made


def _postgres() -> Postgres:
    made = Postgres()
    made.INDEX_OFFSET = 0
    made.parser_class = parser = RisingWave.parser_class
    names = (*CALLED, *_SETS, *_SEQUENCES)
    own: dict[str, Callable[..., exp.Expr]] = {name.upper(): partial(_call, name) for name in names}
    parser.FUNCTIONS = {**parser.FUNCTIONS, **own}
    words = {word.upper(): partial(_user, word) for word in ("user", "current_role")}
    parser.NO_PAREN_FUNCTION_PARSERS = {**parser.NO_PAREN_FUNCTION_PARSERS, **words}
    syntax = parser.FUNCTION_PARSERS.items()
    parser.FUNCTION_PARSERS = {name: read for name, read in syntax if name not in own}
    lambdas = parser.LAMBDAS.items()
    parser.LAMBDAS = {sign: read for sign, read in lambdas if sign is not TokenType.ARROW}
    placeholders = parser.PLACEHOLDER_PARSERS.items()
    parser.PLACEHOLDER_PARSERS = {
        sign: read for sign, read in placeholders if sign is not TokenType.COLON
    }
    literals = dict.fromkeys(exp.DType, _typed_literal)
    parser.TYPE_LITERAL_PARSERS = {**literals, **parser.TYPE_LITERAL_PARSERS}
    parser.UNARY_PARSERS = _GivingWay(parser.UNARY_PARSERS)  # type: ignore[assignment]
    return made


POSTGRES = _postgres()


@lru_cache
def _tokenizer(thread: int) -> Tokenizer:
    """Returns the tokenizer of a thread: to make one takes as long as to read a short text."""
    return Tokenizer(POSTGRES)


_EXPONENT = re.compile(r"[0-9.][eE][0-9]+(?=[+-][0-9])")
"""An exponent without a sign, behind which a sign is an operator: `1e9+3`."""


def tokens_of(text: str, start: int, end: int) -> list[Token]:
    """The tokens of a part of a text. Raises TokenError."""
    tokens = _tokenizer(get_ident()).tokenize(text[start:end])
    for token in tokens if start else ():
        token.start += start
        token.end += start
    if not _EXPONENT.search(text, start, end):
        return tokens
    # To sqlglot such an operator is a part of the number.
    numbers = [token for token in tokens if token.token_type is TokenType.NUMBER]
    found = [_EXPONENT.search(text, token.start, token.end + 1) for token in numbers]
    cuts = [each.end() for each in found if each is not None]
    if not cuts:
        return tokens
    parts = pairwise([start, *cuts, end])
    return [token for begin, stop in parts for token in tokens_of(text, begin, stop)]
