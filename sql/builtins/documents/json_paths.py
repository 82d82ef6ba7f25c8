"""Paths of SQL/JSON: `jsonb_path_query(doc, '$.items[*] ? (@.price > 10)')`, `@?` and `@@`.

A path is read once, by recursive descent, into functions: an *expression* leads from a `Scope` to
items, a *condition* to a truth, where None is unknown. Paths are lax: an array and its only item
stand for each other, and what is not there is no error.

    path        ['lax'] expression | condition
    expression  ('$' | '@' | constant | $variable) then .name  .*  [*]  [0, 2 to last]
                .size()  .type()  ? (condition)
    condition   && || ! ( )  exists(expression)  expression starts with "text"
                expression like_regex "pattern" [flag "i"]  expression (== != < <= > >=) expression

What else PostgreSQL's paths have (strict, arithmetic, `.**`, other methods, `is unknown`) is
refused: SQL computes it over the items.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from ....catalog.values.errors import SQLError
from ....catalog.values.json_text import read_json, write_json
from ..patterns.options import Options, Syntax
from ..patterns.pattern import pattern_of

Item = Any
"""A Python value of a document: None, bool, int, Decimal, str, list or dict."""
Truth = bool | None

PATHS_MAX = 256
DEPTH_MAX = 40
STEPS_MAX = 150
"""Parentheses within each other, and steps of a path: Python's own stack is what bounds both."""

_TOKEN = re.compile(
    r"""(?:\s|/\*.*?\*/)*(?:
    (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?(?!\w))
    | (?P<variable>\$(?:[^\W\d]\w*|"(?:[^"\\]|\\.)*"))
    | (?P<word>[^\W\d]\w*)
    | (?P<sign>==|!=|<>|<=|>=|&&|\|\||\*\*|[$@.,?!*<>()\[\]{}+/%-])
    | (?P<end>$)
    )""",
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS = {"true": True, "false": False, "null": None}
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "!=": operator.ne, "<>": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_UNSUPPORTED = frozenset({"+", "-", "*", "**", "/", "%", "{"})
_HINT = "Take the items with jsonb_path_query(), and compute with them in SQL."


@dataclass(frozen=True, slots=True)
class Scope:
    """What `$`, `@` and variables stand for where a part of a path is asked."""

    root: Item
    current: Item
    variables: Mapping[str, Item]


@dataclass(frozen=True, slots=True)
class Expression:
    items: Callable[[Scope], Iterator[Item]]

    def operands(self, scope: Scope) -> list[Item]:
        """The items, and those of arrays in the place of these."""
        return [item for found in self.items(scope) for item in _unwrapped(found)]


@dataclass(frozen=True, slots=True)
class Condition:
    truth: Callable[[Scope], Truth]


Part = Expression | Condition
Place = Callable[[Scope, int], int]
"""Where a subscript points to, in an array whose last place is given."""


def exists(document: str, path: str, given: str = "{}", silent: bool = False) -> bool:
    """jsonb_path_exists(): nothing is silent of a path that cannot fail."""
    return any(True for _ in _found(document, path, given))


def matches(document: str, path: str, given: str = "{}", silent: bool = False) -> Truth:
    """jsonb_path_match(). Raises SQLError 22038 for what is not one truth, unless it is silent."""
    found = list(_found(document, path, given))
    if len(found) == 1 and (found[0] is None or isinstance(found[0], bool)):
        return found[0]
    if not silent:
        raise SQLError("22038", "single boolean result is expected")
    return None


def query(document: str, path: str, given: str = "{}", silent: bool = False) -> list[str]:
    """The items of jsonb_path_query()."""
    return [write_json(item) for item in _found(document, path, given)]


def array(document: str, path: str, given: str = "{}", silent: bool = False) -> str:
    """jsonb_path_query_array()."""
    return write_json(list(_found(document, path, given)))


def first(document: str, path: str, given: str = "{}", silent: bool = False) -> str | None:
    """jsonb_path_query_first()."""
    return next((write_json(item) for item in _found(document, path, given)), None)


def exists_silently(document: str, path: str) -> bool:
    """`document @? path`."""
    return exists(document, path)


def matches_silently(document: str, path: str) -> Truth:
    """`document @@ path`."""
    return matches(document, path, silent=True)


def _found(document: str, path: str, given: str) -> Iterator[Item]:
    variables = read_json(given)
    if not isinstance(variables, Mapping):
        raise SQLError(
            "22023",
            '"vars" argument is not an object',
            detail='Jsonpath parameters should be encoded as key-value pairs of "vars" object.',
        )
    root = read_json(document)
    scope = Scope(root, root, variables)
    part = path_of(path)
    yield from part.items(scope) if isinstance(part, Expression) else (part.truth(scope),)


@lru_cache(maxsize=PATHS_MAX)
def path_of(text: str) -> Part:
    """Raises SQLError 42601 for what is no path, and 0A000 for what is not supported."""
    if not text.strip():
        raise SQLError("22P02", f'invalid input syntax for type jsonpath: "{text}"')
    return _Reader(text).path()


class _Reader:
    """One path's text. `_filters` and `_subscripts` count those that are open: `@` and `last` stand
    in them."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._filters = self._subscripts = self._depth = self._steps = 0
        self._kind = self._token = ""
        self._advance()

    def path(self) -> Part:
        self._takes("lax")
        if self._kind == "word" and self._token == "strict":
            raise self._unsupported("strict")
        root = self._or()
        if self._kind != "end":
            raise self._wrong()
        return root

    def _advance(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            raise SQLError("42601", f'syntax error at or near "{self._text[self._at :][:20]}" of '
                           "jsonpath input")  # fmt: skip
        self._at, self._kind = found.end(), found.lastgroup or ""
        self._token = found[self._kind]

    def _takes(self, token: str) -> bool:
        """Whether a sign or a word is here; if so, goes behind it."""
        found = self._kind in ("sign", "word") and self._token.lower() == token
        if found:
            self._steps += 1
            if self._steps > STEPS_MAX:
                raise _nested_too_deeply()
            self._advance()
        return found

    def _expect(self, token: str) -> None:
        if not self._takes(token):
            raise self._wrong()

    def _wrong(self) -> SQLError:
        if self._kind == "end":
            return SQLError("42601", "syntax error at end of jsonpath input")
        if self._kind == "sign" and self._token in _UNSUPPORTED:
            return self._unsupported(f'"{self._token}"')
        return SQLError("42601", f'syntax error at or near "{self._token}" of jsonpath input')

    def _unsupported(self, what: str) -> SQLError:
        return SQLError("0A000", f"not supported: {what} in a jsonpath", hint=_HINT)

    def _or(self) -> Part:
        left = self._and()
        while self._takes("||"):
            left = _either(self._condition(left), self._condition(self._and()), absorbing=True)
        return left

    def _and(self) -> Part:
        left = self._compared()
        while self._takes("&&"):
            right = self._condition(self._compared())
            left = _either(self._condition(left), right, absorbing=False)
        return left

    def _condition(self, part: Part) -> Condition:
        if not isinstance(part, Condition):
            raise self._wrong()
        return part

    def _expression(self, part: Part) -> Expression:
        if not isinstance(part, Expression):
            raise self._wrong()
        return part

    def _compared(self) -> Part:
        if self._takes("!"):
            if not self._takes("exists"):
                self._expect("(")
                return _negated(self._condition(self._in_parentheses()))
            return _negated(self._exists())
        if self._takes("exists"):
            return self._exists()
        left = self._accessed()
        if self._kind == "sign" and self._token in _COMPARISONS:
            sign = self._token
            self._advance()
            right = self._expression(self._accessed())
            return _comparison(sign, self._expression(left), right)
        if self._takes("starts"):
            self._expect("with")
            start = self._expression(self._primary())
            return _tested(self._expression(left), start, _starts_with)
        if self._takes("like_regex"):
            return self._like_regex(self._expression(left))
        if self._takes("is"):
            raise self._unsupported("is unknown")
        return left

    def _exists(self) -> Condition:
        self._expect("(")
        inner = self._expression(self._in_parentheses())
        return Condition(lambda scope: any(True for _ in inner.items(scope)))

    def _in_parentheses(self) -> Part:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise _nested_too_deeply()
        found = self._or()
        self._expect(")")
        self._depth -= 1
        return found

    def _like_regex(self, base: Expression) -> Condition:
        pattern = self._quoted()
        options = self._options() if self._takes("flag") else Options(stops=True)
        known = pattern_of(pattern, options)

        def test(item: Item, _: Item) -> Truth:
            return known.matches(item) if isinstance(item, str) else None

        return _tested(base, _constant(None), test)

    def _options(self) -> Options:
        """Those of XQuery: a dot matches no newline, unless `s` says so."""
        flags = self._quoted()
        if set(flags) - set("ismq"):
            raise SQLError(
                "42601",
                "invalid input syntax for type jsonpath",
                detail=f'Unrecognized flag character in LIKE_REGEX predicate: "{flags}".',
            )
        if "q" in flags:
            return Options(syntax=Syntax.LITERAL, any_case="i" in flags)
        return Options(any_case="i" in flags, stops="s" not in flags, lines="m" in flags)

    def _quoted(self) -> str:
        if self._kind != "text":
            raise self._wrong()
        text = _unquoted(self._token)
        self._advance()
        return text

    def _primary(self) -> Part:
        kind, token = self._kind, self._token
        if self._takes("("):
            return self._in_parentheses()
        if self._takes("-"):
            number = self._number()
            return _constant(-number)
        if kind == "number":
            return _constant(self._number())
        if kind == "text":
            return _constant(self._quoted())
        if kind == "word" and token in _CONSTANTS:
            self._advance()
            return _constant(_CONSTANTS[token])
        if kind == "variable":
            self._advance()
            return _variable(token[1:] if token[1] != '"' else _unquoted(token[1:]))
        if self._takes("$"):
            return Expression(lambda scope: iter((scope.root,)))
        if kind == "sign" and token == "@":
            if not self._filters:
                raise SQLError("42601", "@ is not allowed in root expressions")
            self._advance()
            return Expression(lambda scope: iter((scope.current,)))
        if kind == "word" and token == "last":
            raise SQLError("42601", "LAST is allowed only in array subscripts")
        raise self._wrong()

    def _number(self) -> int | Decimal:
        if self._kind != "number":
            raise self._wrong()
        text = self._token
        if len(text) > 1 and text[0] == "0" and text[1].isdigit():
            raise SQLError("42601", "trailing junk after numeric literal in jsonpath")
        self._advance()
        number: int | Decimal = read_json(text.rstrip("."))
        return number

    def _accessed(self) -> Part:
        part = self._primary()
        while self._kind == "sign" and self._token in (".", "[", "?"):
            base = self._expression(part)
            if self._takes("."):
                part = self._named(base)
            elif self._takes("["):
                part = self._subscripted(base)
            else:
                self._expect("?")
                self._expect("(")
                self._filters += 1
                part = _filtered(base, self._condition(self._in_parentheses()))
                self._filters -= 1
        return part

    def _named(self, base: Expression) -> Expression:
        if self._takes("*"):
            return _members(base, None)
        if self._kind not in ("word", "text"):
            raise self._wrong()
        quoted = self._kind == "text"
        name = _unquoted(self._token) if quoted else self._token
        self._advance()
        if quoted or not self._takes("("):
            return _members(base, name)
        if name not in _METHODS:
            raise self._unsupported(f".{name}()")
        self._expect(")")
        method = _METHODS[name]
        return Expression(lambda scope: (method(item) for item in base.items(scope)))

    def _subscripted(self, base: Expression) -> Expression:
        if self._takes("*"):
            self._expect("]")
            return Expression(lambda scope: iter(base.operands(scope)))
        spans: list[tuple[Place, Place]] = []
        self._subscripts += 1
        while True:
            begin = self._place()
            spans.append((begin, self._place() if self._takes("to") else begin))
            if not self._takes(","):
                break
        self._subscripts -= 1
        self._expect("]")
        return _sliced(base, spans)

    def _place(self) -> Place:
        """A number, a variable, or `last` with a number taken from it."""
        if self._takes("last"):
            back = int(self._number()) if self._takes("-") else 0
            return lambda scope, last: last - back
        number = self._expression(self._primary())

        def place(scope: Scope, last: int) -> int:
            (found,) = number.items(scope)
            if isinstance(found, bool) or not isinstance(found, int | Decimal):
                raise SQLError("22033", "jsonpath array subscript is not a single numeric value")
            return int(found)

        return place


def _nested_too_deeply() -> SQLError:
    return SQLError("54001", "a jsonpath is nested too deeply")


def _unquoted(token: str) -> str:
    try:
        text: str = json.loads(token, strict=False)
    except ValueError:
        raise SQLError("42601", "invalid escape in a text of jsonpath input") from None
    return text


def _constant(value: Item) -> Expression:
    return Expression(lambda scope: iter((value,)))


def _variable(name: str) -> Expression:
    def items(scope: Scope) -> Iterator[Item]:
        if name not in scope.variables:
            raise SQLError("42704", f'could not find jsonpath variable "{name}"')
        yield scope.variables[name]

    return Expression(items)


def _unwrapped(item: Item) -> list[Item]:
    return item if isinstance(item, list) else [item]


def _members(base: Expression, name: str | None) -> Expression:
    """`.name`, or with None `.*`, of objects and of those in an array."""

    def items(scope: Scope) -> Iterator[Item]:
        for item in base.operands(scope):
            if isinstance(item, dict):
                if name is None:
                    yield from item.values()
                elif name in item:
                    yield item[name]

    return Expression(items)


def _sliced(base: Expression, spans: list[tuple[Place, Place]]) -> Expression:
    def items(scope: Scope) -> Iterator[Item]:
        for found in base.items(scope):
            whole = _unwrapped(found)
            for begin, end in spans:
                first = max(begin(scope, len(whole) - 1), 0)
                yield from whole[first : max(end(scope, len(whole) - 1) + 1, 0)]

    return Expression(items)


def _filtered(base: Expression, condition: Condition) -> Expression:
    def items(scope: Scope) -> Iterator[Item]:
        for item in base.operands(scope):
            if condition.truth(Scope(scope.root, item, scope.variables)):
                yield item

    return Expression(items)


def _either(left: Condition, right: Condition, *, absorbing: bool) -> Condition:
    """`||` where True absorbs the other side, `&&` where False does."""

    def truth(scope: Scope) -> Truth:
        one = left.truth(scope)
        if one is absorbing:
            return absorbing
        other = right.truth(scope)
        return one if other is not absorbing and one is None else other

    return Condition(truth)


def _negated(condition: Condition) -> Condition:
    def truth(scope: Scope) -> Truth:
        found = condition.truth(scope)
        return None if found is None else not found

    return Condition(truth)


def _tested(left: Expression, right: Expression, test: Callable[[Item, Item], Truth]) -> Condition:
    """True where any pair of items passes, else unknown where any cannot be told."""

    def truth(scope: Scope) -> Truth:
        others = right.operands(scope)
        found: Truth = False
        for one in left.operands(scope):
            for other in others:
                passed = test(one, other)
                if passed:
                    return True
                found = None if passed is None else found
        return found

    return Condition(truth)


def _comparison(sign: str, left: Expression, right: Expression) -> Condition:
    """Null equals null alone; items of two kinds, arrays and objects are not comparable."""
    compare = _COMPARISONS[sign]

    def test(one: Item, other: Item) -> Truth:
        if _kind(one) != _kind(other):
            return compare is operator.ne if one is None or other is None else None
        if isinstance(one, dict | list):
            return None
        return compare(0, 0) if one is None else compare(one, other)

    return _tested(left, right, test)


def _starts_with(whole: Item, start: Item) -> Truth:
    if not isinstance(whole, str) or not isinstance(start, str):
        return None
    return whole.startswith(start)


def _kind(item: Item) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(item, kind):
            return name
    return "null" if item is None else "number"


_METHODS: dict[str, Callable[[Item], Item]] = {
    "type": _kind,
    "size": lambda item: len(_unwrapped(item)),
}
