"""A path's text as a tree, by recursive descent.

What binds least is read first: `||`, `&&`, comparisons, `+ -`, `* / %`, signs, accessors. Whether
what stands in parentheses is a condition or an expression shows when it has been read.
"""

from __future__ import annotations

from functools import lru_cache

from .....catalog.values.errors import SQLError
from ...patterns.options import Options, Syntax
from ...patterns.pattern import pattern_of
from . import nodes as n
from .scanner import Token, TokenKind, tokens_of

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})
_METHODS = frozenset({"abs", "size", "type", "floor", "double", "ceiling", "keyvalue", "datetime"})
_NOT_SUPPORTED = frozenset({"keyvalue", "datetime"})
_CONSTANTS = {"true": True, "false": False, "null": None}
_FLAGS = frozenset("ismxq")
_LEVEL_MAX = 2**31 - 1
PATHS_MAX = 256
DEPTH_MAX = 40
STEPS_MAX = 150
"""Of parentheses and filters within each other, and of accessors and operators one after the other:
Python's own stack is what bounds both."""


@lru_cache(maxsize=PATHS_MAX)
def path_of(text: str) -> n.JsonPath:
    """Raises SQLError 42601, and 0A000 for methods that are not supported."""
    if not text.strip():
        raise SQLError("22P02", f'invalid input syntax for type jsonpath: "{text}"')
    return _Reader(tokens_of(text)).path()


def _nested_too_deeply() -> SQLError:
    return SQLError("54001", "a jsonpath is nested too deeply")


def _options(flags: str) -> Options:
    """Those of XQuery: a dot matches no newline, unless `s` says so."""
    if "q" in flags:
        return Options(syntax=Syntax.LITERAL, any_case="i" in flags)
    return Options(any_case="i" in flags, stops="s" not in flags, lines="m" in flags)


class _Reader:
    """`_filters` and `_subscripts` count those that are open: `@` and `last` stand in them."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens, self._at = tokens, 0
        self._filters = self._subscripts = self._depth = self._steps = 0

    def path(self) -> n.JsonPath:
        strict = self._takes_word("strict")
        if not strict:
            self._takes_word("lax")
        root = self._or()
        if self._token.kind is not TokenKind.END:
            raise self._wrong()
        return n.JsonPath(root, strict)

    @property
    def _token(self) -> Token:
        return self._tokens[self._at]

    def _wrong(self) -> SQLError:
        if self._token.kind is TokenKind.END:
            return SQLError("42601", "syntax error at end of jsonpath input")
        return SQLError("42601", f'syntax error at or near "{self._token.text}" of jsonpath input')

    def _takes(self, sign: str) -> bool:
        found = self._token.kind is TokenKind.SIGN and self._token.text == sign
        self._at += found
        self._steps += found
        if self._steps > STEPS_MAX:
            raise _nested_too_deeply()
        return found

    def _takes_word(self, word: str) -> bool:
        found = self._token.kind is TokenKind.WORD and self._token.text.lower() == word
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._takes(sign):
            raise self._wrong()

    def _or(self) -> n.Node:
        left = self._and()
        while self._takes("||"):
            left = n.Or(self._condition(left), self._condition(self._and()))
        return left

    def _and(self) -> n.Node:
        left = self._compared()
        while self._takes("&&"):
            left = n.And(self._condition(left), self._condition(self._compared()))
        return left

    def _condition(self, node: n.Node) -> n.Node:
        if not isinstance(node, n.CONDITIONS):
            raise self._wrong()
        return node

    def _expression(self, node: n.Node) -> n.Node:
        if isinstance(node, n.CONDITIONS):
            raise self._wrong()
        return node

    def _compared(self) -> n.Node:
        if self._takes("!"):
            return self._negated()
        left = self._sum()
        token = self._token
        if token.kind is TokenKind.SIGN and token.text in _COMPARISONS:
            self._at += 1
            right = self._expression(self._sum())
            return n.Comparison(token.text, self._expression(left), right)
        if self._takes_word("starts"):
            if not self._takes_word("with"):
                raise self._wrong()
            return n.StartsWith(self._expression(left), self._start())
        if self._takes_word("like_regex"):
            return self._like_regex(self._expression(left))
        return left

    def _negated(self) -> n.Node:
        if self._token.kind is TokenKind.WORD and self._token.text.lower() == "exists":
            return n.Not(self._primary())
        self._expect("(")
        return n.Not(self._within_parentheses(condition=True))

    def _within_parentheses(self, *, condition: bool = False) -> n.Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _nested_too_deeply()
        found = self._or()
        self._expect(")")
        self._depth -= 1
        return self._condition(found) if condition else found

    def _start(self) -> n.Node:
        token = self._token
        self._at += 1
        if token.kind is TokenKind.TEXT:
            return n.Constant(token.text)
        if token.kind is TokenKind.VARIABLE:
            return n.Variable(token.text)
        self._at -= 1
        raise self._wrong()

    def _like_regex(self, base: n.Node) -> n.Node:
        pattern = self._text()
        flags = self._text() if self._takes_word("flag") else ""
        for flag in flags:
            if flag not in _FLAGS:
                raise SQLError(
                    "42601",
                    "invalid input syntax for type jsonpath",
                    detail=f'Unrecognized flag character "{flag}" in LIKE_REGEX predicate.',
                )
        if "x" in flags and "q" not in flags:
            raise SQLError(
                "0A000", 'XQuery "x" flag (expanded regular expressions) is not implemented'
            )
        options = _options(flags)
        pattern_of(pattern, options)  # what is no pattern is an error of the path
        return n.LikeRegex(base, pattern, options)

    def _text(self) -> str:
        if self._token.kind is not TokenKind.TEXT:
            raise self._wrong()
        self._at += 1
        return self._tokens[self._at - 1].text

    def _sum(self) -> n.Node:
        left = self._product()
        while self._token.kind is TokenKind.SIGN and self._token.text in ("+", "-"):
            sign = self._token.text
            self._takes(sign)
            right = self._expression(self._product())
            left = n.Arithmetic(sign, self._expression(left), right)
        return left

    def _product(self) -> n.Node:
        left = self._signed()
        while self._token.kind is TokenKind.SIGN and self._token.text in ("*", "/", "%"):
            sign = self._token.text
            self._takes(sign)
            right = self._expression(self._signed())
            left = n.Arithmetic(sign, self._expression(left), right)
        return left

    def _signed(self) -> n.Node:
        for sign in ("+", "-"):
            if self._takes(sign):
                return n.Arithmetic(sign, None, self._expression(self._signed()))
        return self._accessed(self._primary())

    def _primary(self) -> n.Node:
        token = self._token
        self._at += 1
        match token.kind:
            case TokenKind.NUMBER:
                return n.Constant(token.value)
            case TokenKind.TEXT:
                return n.Constant(token.text)
            case TokenKind.VARIABLE:
                return n.Variable(token.text)
            case TokenKind.WORD if token.text in _CONSTANTS:
                return n.Constant(_CONSTANTS[token.text])
            case TokenKind.WORD if token.text.lower() == "last":
                if not self._subscripts:
                    raise SQLError("42601", "LAST is allowed only in array subscripts")
                return n.Place.LAST
            case TokenKind.WORD if token.text.lower() == "exists":
                self._expect("(")
                return n.Exists(self._expression(self._within_parentheses()))
            case TokenKind.SIGN if token.text == "$":
                return n.Place.ROOT
            case TokenKind.SIGN if token.text == "@":
                if not self._filters:
                    raise SQLError("42601", "@ is not allowed in root expressions")
                return n.Place.CURRENT
            case TokenKind.SIGN if token.text == "(":
                return self._parenthesized()
        self._at -= 1
        raise self._wrong()

    def _parenthesized(self) -> n.Node:
        found = self._within_parentheses()
        if isinstance(found, n.CONDITIONS) and self._takes_word("is"):
            if not self._takes_word("unknown"):
                raise self._wrong()
            return n.IsUnknown(found)
        return found

    def _accessed(self, base: n.Node) -> n.Node:
        while True:
            if self._takes("."):
                base = self._named(base)
            elif self._takes("["):
                base = self._subscripted(base)
            elif self._takes("?"):
                self._expect("(")
                self._filters += 1
                base = n.Filter(base, self._within_parentheses(condition=True))
                self._filters -= 1
            else:
                return base

    def _named(self, base: n.Node) -> n.Node:
        if self._takes("*"):
            return n.Member(base, None)
        if self._takes("**"):
            return self._descendants(base)
        token = self._token
        if token.kind not in (TokenKind.WORD, TokenKind.TEXT):
            raise self._wrong()
        self._at += 1
        called = token.kind is TokenKind.WORD and token.text.lower() in _METHODS
        if called and self._takes("("):
            name = token.text.lower()
            if name in _NOT_SUPPORTED:
                raise SQLError("0A000", f"not supported: the jsonpath method .{name}()")
            self._expect(")")
            return n.Method(base, name)
        return n.Member(base, token.text)

    def _descendants(self, base: n.Node) -> n.Node:
        if not self._takes("{"):
            return n.Descendants(base, 0, None)
        first = last = self._level()
        if self._takes_word("to"):
            last = self._level()
        self._expect("}")
        return n.Descendants(base, first, last)

    def _level(self) -> int | None:
        if self._takes_word("last"):
            return None
        token = self._token
        if token.kind is not TokenKind.NUMBER or not isinstance(token.value, int):
            raise self._wrong()
        self._at += 1
        if token.value > _LEVEL_MAX:
            raise SQLError("22003", f'value "{token.text}" is out of range for type integer')
        return token.value

    def _subscripted(self, base: n.Node) -> n.Node:
        if self._takes("*"):
            self._expect("]")
            return n.Items(base, ())
        spans: list[tuple[n.Node, n.Node | None]] = []
        self._subscripts += 1
        while True:
            first = self._expression(self._sum())
            last = self._expression(self._sum()) if self._takes_word("to") else None
            spans.append((first, last))
            if not self._takes(","):
                break
        self._subscripts -= 1
        self._expect("]")
        return n.Items(base, tuple(spans))
