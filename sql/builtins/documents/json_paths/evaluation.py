"""What a path leads to in a document.

Items are found one after the other, and no further than is asked for: whether there is any shows
with the first. An error of a path's own is `PathFailed`: conditions take it for unknown, and
functions that are to be silent for no answer; every other SQLError passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Decimal
from itertools import islice
from typing import Any

from .....catalog.values.errors import SQLError
from ...patterns.options import Options
from ...patterns.pattern import pattern_of
from . import nodes as n
from .numbers import DivisionByZero, computed

Item = Any
"""A Python value of a document: None, bool, int, Decimal, str, list or dict."""
Truth = bool | None
"""None is unknown."""


class PathFailed(SQLError):
    """What a path asks for is not there, or is none of the kind."""


class Evaluation:
    """One path over one document. `last` is the place of the last item of the array whose subscript
    is computed."""

    def __init__(self, path: n.JsonPath, document: Item, variables: Mapping[str, Item]) -> None:
        self._path, self._document, self._variables = path, document, variables
        self._lax = not path.strict
        self._tolerant = self._lax
        self._last = -1

    def items(self) -> Iterator[Item]:
        return self._items(self._path.root, self._document)

    def exists(self) -> bool:
        return self._any(self._path.root, self._document)

    def _any(self, node: n.Node, current: Item) -> bool:
        """Whether there is any item: in strict mode all must be found without an error. Of a sign
        before what is no number nothing is asked."""
        if not self._lax:
            return bool(list(self._items(node, current)))
        if isinstance(node, n.Arithmetic) and node.left is None:
            return any(map(_is_number, self._operands(node.right, current)))
        return any(True for _ in self._items(node, current))

    def _items(self, node: n.Node, current: Item) -> Iterator[Item]:
        match node:
            case n.Constant():
                yield node.value
            case n.Variable():
                yield self._variable(node.name)
            case n.Place.ROOT:
                yield self._document
            case n.Place.CURRENT:
                yield current
            case n.Place.LAST:
                yield self._last
            case n.Arithmetic():
                yield from self._arithmetic(node, current)
            case n.Member() | n.Items() | n.Descendants() | n.Method() | n.Filter():
                for base in self._items(node.base, current):
                    yield from self._accessed(node, base, current)
            case _:
                yield self._truth(node, current)

    def _accessed(self, node: n.Node, base: Item, current: Item) -> Iterator[Item]:
        match node:
            case n.Member():
                return self._members(node, base)
            case n.Items():
                return self._subscripted(node, base, current)
            case n.Descendants():
                return self._descendants(node, base)
            case n.Method():
                return self._method(node.name, base)
            case n.Filter():
                return self._filtered(node, base)
        raise AssertionError(node)

    def _variable(self, name: str) -> Item:
        if name not in self._variables:
            raise SQLError("42704", f'could not find jsonpath variable "{name}"')
        return self._variables[name]

    def _members(self, node: n.Member, base: Item) -> Iterator[Item]:
        if isinstance(base, dict):
            if node.name is None:
                yield from base.values()
            elif node.name in base:
                yield base[node.name]
            elif not self._tolerant:
                raise PathFailed("2203A", f'JSON object does not contain key "{node.name}"')
        elif self._lax and isinstance(base, list):
            for item in base:
                if isinstance(item, dict):
                    yield from self._members(node, item)
        elif not self._tolerant:
            what = "member accessor" if node.name is not None else "wildcard member accessor"
            state = "2203A" if node.name is not None else "2203C"
            raise PathFailed(state, f"jsonpath {what} can only be applied to an object")

    def _filtered(self, node: n.Filter, base: Item) -> Iterator[Item]:
        for item in self._unwrapped(base):
            if self._truth(node.condition, item):
                yield item

    def _unwrapped(self, base: Item) -> Iterator[Item]:
        """In lax mode the items of an array, for what is asked of each."""
        if self._lax and isinstance(base, list):
            yield from base
        else:
            yield base

    def _subscripted(self, node: n.Items, base: Item, current: Item) -> Iterator[Item]:
        if not isinstance(base, list):
            if not self._lax:
                if self._tolerant:
                    return
                what = "array accessor" if node.spans else "wildcard array accessor"
                raise PathFailed("22039", f"jsonpath {what} can only be applied to an array")
            base = [base]
        if not node.spans:
            yield from base
            return
        for first, last in node.spans:
            outer, self._last = self._last, len(base) - 1
            begin = self._place(first, current)
            end = begin if last is None else self._place(last, current)
            self._last = outer
            if not self._tolerant and (begin < 0 or begin > end or end >= len(base)):
                raise PathFailed("22033", "jsonpath array subscript is out of bounds")
            yield from base[max(begin, 0) : max(end + 1, 0)]

    def _place(self, node: n.Node, current: Item) -> int:
        found = list(islice(self._items(node, current), 2))
        if len(found) != 1 or not _is_number(found[0]):
            raise PathFailed("22033", "jsonpath array subscript is not a single numeric value")
        place = int(Decimal(found[0]).to_integral_value(ROUND_DOWN))
        if not -(2**31) <= place < 2**31:
            raise PathFailed("22033", "jsonpath array subscript is out of integer range")
        return place

    def _descendants(self, node: n.Descendants, base: Item) -> Iterator[Item]:
        """What follows is tolerant of what is not there, whatever the mode."""
        for item in _levels(base, node.first, node.last, 0):
            before, self._tolerant = self._tolerant, True
            try:
                yield item
            finally:
                self._tolerant = before

    def _arithmetic(self, node: n.Arithmetic, current: Item) -> Iterator[Item]:
        if node.left is None:
            for item in self._operands(node.right, current):
                if not _is_number(item):
                    raise PathFailed(
                        "2203B",
                        f"operand of unary jsonpath operator {node.sign} is not a numeric value",
                    )
                yield -item if node.sign == "-" and item else item
            return
        found = [list(self._operands(side, current)) for side in (node.left, node.right)]
        left, right = (
            _number(*each, node.sign) for each in zip(found, ("left", "right"), strict=True)
        )
        try:
            yield computed(node.sign, left, right)
        except DivisionByZero as error:
            raise PathFailed(error.sqlstate, error.message) from None

    def _operands(self, node: n.Node, current: Item) -> Iterator[Item]:
        for item in self._items(node, current):
            yield from self._unwrapped(item)

    def _method(self, name: str, base: Item) -> Iterator[Item]:
        if name == "type":
            yield _type_name(base)
        elif name == "size":
            if isinstance(base, list) or self._lax:
                yield len(base) if isinstance(base, list) else 1
            elif not self._tolerant:
                raise PathFailed(
                    "22039", "jsonpath item method .size() can only be applied to an array"
                )
        else:
            for item in self._unwrapped(base):
                yield _METHODS[name](item)

    def _truth(self, node: n.Node, current: Item) -> Truth:
        match node:
            case n.And():
                left = self._truth(node.left, current)
                if left is False:
                    return False
                right = self._truth(node.right, current)
                return left if right is True else right
            case n.Or():
                left = self._truth(node.left, current)
                if left is True:
                    return True
                right = self._truth(node.right, current)
                return left if right is False else right
            case n.Not():
                found = self._truth(node.condition, current)
                return None if found is None else not found
            case n.IsUnknown():
                return self._truth(node.condition, current) is None
            case n.Exists():
                return self._exists(node, current)
        return self._compared(node, current)

    def _exists(self, node: n.Exists, current: Item) -> Truth:
        try:
            return self._any(node.base, current)
        except PathFailed:
            return None

    def _compared(self, node: n.Node, current: Item) -> Truth:
        """In lax mode one pair that is so is enough; in strict mode all of them must be known."""
        right: list[Item] = [None]
        test: Callable[[Item, Item], Truth]
        try:
            match node:
                case n.Comparison():
                    left = list(self._operands(node.left, current))
                    right = list(self._operands(node.right, current))
                    sign = node.sign
                    test = lambda a, b: compared(sign, a, b)  # noqa: E731
                case n.StartsWith():
                    left = list(self._operands(node.base, current))
                    right = list(self._items(node.start, current))
                    test = _starts_with
                case n.LikeRegex():
                    left = list(self._operands(node.base, current))
                    pattern, options = node.pattern, node.options
                    test = lambda a, _: _matches(a, pattern, options)  # noqa: E731
                case _:
                    raise AssertionError(node)
        except PathFailed:
            return None
        found = unknown = False
        for one in left:
            for other in right:
                truth = test(one, other)
                if truth is None:
                    if not self._lax:
                        return None
                    unknown = True
                elif truth:
                    if self._lax:
                        return True
                    found = True
        return True if found else None if unknown else False


def _levels(item: Item, first: int | None, last: int | None, level: int) -> Iterator[Item]:
    """The item and all within it, those of some levels. None twice: what has nothing within."""
    leaf = not isinstance(item, dict | list)
    if first is None:
        if leaf and last is None and level:
            yield item
    elif level >= first:
        yield item
    if leaf or (last is not None and level >= last):
        return
    for inner in item.values() if isinstance(item, dict) else item:
        yield from _levels(inner, first, last, level + 1)


def _number(found: Sequence[Item], side: str, sign: str) -> int | Decimal:
    if len(found) != 1 or not _is_number(found[0]):
        raise PathFailed(
            "22038", f"{side} operand of jsonpath operator {sign} is not a single numeric value"
        )
    number: int | Decimal = found[0]
    return number


def _is_number(item: Item) -> bool:
    return isinstance(item, int | Decimal) and not isinstance(item, bool)


def _type_name(item: Item) -> str:
    for kind, name in ((bool, "boolean"), (str, "string"), (list, "array"), (dict, "object")):
        if isinstance(item, kind):
            return name
    return "null" if item is None else "number"


def compared(sign: str, left: Item, right: Item) -> Truth:
    """Null equals null alone; what is not of one kind, or no scalar, is not comparable."""
    if _type_name(left) != _type_name(right):
        return sign == "!=" if left is None or right is None else None
    if isinstance(left, dict | list):
        return None
    if left is None:
        left = right = 0
    match sign:
        case "==":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
    return bool(left >= right)


def _starts_with(whole: Item, start: Item) -> Truth:
    if not isinstance(whole, str) or not isinstance(start, str):
        return None
    return whole.startswith(start)


def _matches(item: Item, pattern: str, options: Options) -> Truth:
    if not isinstance(item, str):
        return None
    return pattern_of(pattern, options).matches(item)


def _double(item: Item) -> Item:
    if _is_number(item):
        if math.isinf(_float(f"{item}")):
            raise PathFailed(
                "22036",
                "numeric argument of jsonpath item method .double() is out of range for type "
                "double precision",
            )
        return item
    if not isinstance(item, str):
        raise PathFailed(
            "22036",
            "jsonpath item method .double() can only be applied to a string or numeric value",
        )
    number = _float(item)
    if not math.isfinite(number):
        raise PathFailed(
            "22036",
            "string argument of jsonpath item method .double() is not a valid representation of a "
            "double precision number",
        )
    return Decimal(f"{Decimal(f'{number:.15g}'):f}")


def _float(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _numeric(name: str, compute: Callable[[Decimal], Decimal]) -> Callable[[Item], Item]:
    def method(item: Item) -> Item:
        if not _is_number(item):
            raise PathFailed(
                "22036",
                f"jsonpath item method .{name}() can only be applied to a numeric value",
            )
        return +compute(Decimal(item)) if isinstance(item, Decimal) else int(compute(Decimal(item)))

    return method


_METHODS: dict[str, Callable[[Item], Item]] = {
    "abs": _numeric("abs", Decimal.copy_abs),
    "floor": _numeric("floor", lambda number: number.to_integral_value(ROUND_FLOOR)),
    "ceiling": _numeric("ceiling", lambda number: number.to_integral_value(ROUND_CEILING)),
    "double": _double,
}
