"""What a path says, as a tree. An expression leads to items; a condition is true, false or unknown,
and may stand for the item that is."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import Enum

from ...patterns.options import Options


@dataclass(frozen=True, slots=True)
class Constant:
    value: bool | int | Decimal | str | None


@dataclass(frozen=True, slots=True)
class Variable:
    name: str


class Place(Enum):
    """Where an expression begins, beside constants and variables."""

    ROOT = "$"
    CURRENT = "@"
    LAST = "last"


@dataclass(frozen=True, slots=True)
class Member:
    """`.name`; None for `.*`, which is all of them."""

    base: Node
    name: str | None


@dataclass(frozen=True, slots=True)
class Items:
    """`[1, 3 to last]`, pairs of a first and a last place; no pairs for `[*]`."""

    base: Node
    spans: tuple[tuple[Node, Node | None], ...]


@dataclass(frozen=True, slots=True)
class Descendants:
    """`.**{2 to 3}`: what is so many levels within. None is the last level."""

    base: Node
    first: int | None
    last: int | None


@dataclass(frozen=True, slots=True)
class Method:
    """`.size()` and its like."""

    base: Node
    name: str


@dataclass(frozen=True, slots=True)
class Filter:
    """`? (condition)`."""

    base: Node
    condition: Node


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """Of two numbers, or with a sign (`left` None) of each number."""

    sign: str
    left: Node | None
    right: Node


@dataclass(frozen=True, slots=True)
class Comparison:
    sign: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class StartsWith:
    base: Node
    start: Node


@dataclass(frozen=True, slots=True)
class LikeRegex:
    base: Node
    pattern: str
    options: Options


@dataclass(frozen=True, slots=True)
class Exists:
    base: Node


@dataclass(frozen=True, slots=True)
class IsUnknown:
    condition: Node


@dataclass(frozen=True, slots=True)
class Not:
    condition: Node


@dataclass(frozen=True, slots=True)
class And:
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class Or:
    left: Node
    right: Node


Condition = Comparison | StartsWith | LikeRegex | Exists | IsUnknown | Not | And | Or
Expression = (
    Constant | Variable | Place | Member | Items | Descendants | Method | Filter | Arithmetic
)
Node = Expression | Condition
CONDITIONS = (Comparison, StartsWith, LikeRegex, Exists, IsUnknown, Not, And, Or)


@dataclass(frozen=True, slots=True)
class JsonPath:
    """A whole path: strict, or else lax."""

    root: Node
    strict: bool
