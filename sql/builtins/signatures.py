"""The choice of the function or operator that a call means, by the types of its arguments.

A signature is written as PostgreSQL's own error messages write it:

    length(text) int8
    lpad rpad(text, int8, text?) text
    array_append(array, element) array

`resolve` chooses among those of one name as PostgreSQL does ("Function Type Resolution" of its
manual): a value is converted implicitly along INT8, DECIMAL, FLOAT4, FLOAT8 and along DATE,
TIMESTAMP, TIMESTAMPTZ; the signature with the most exact matches wins, then the one with the most
preferred types; a text literal or NULL fits everything, and takes a text where there is one to
take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from sqlglot import exp

from ...catalog.values.column_types import ColumnType, array_of
from ...catalog.values.type_kinds import TypeKind
from ..results.client_types import TYPE_ROWS


class Given(Enum):
    """Operands whose type is not a type."""

    LITERAL = "unknown"  # a text literal or NULL: of whatever type is wanted
    ANYTHING = "anything"  # nothing is known: it fits, and decides nothing


Argument = ColumnType | Given

_KINDS = {row.name: kind for kind, row in TYPE_ROWS.items()}
_ANY, _ELEMENT, _ARRAY, _ENUM, _PLAIN = "any", "element", "array", "enum", "plain"
"""Words for several types: any type; an array and its element type; an enumeration; any type but
an array."""

IMPLICIT_CASTS = {
    TypeKind.INT8: (TypeKind.DECIMAL, TypeKind.FLOAT4, TypeKind.FLOAT8),
    TypeKind.DECIMAL: (TypeKind.FLOAT4, TypeKind.FLOAT8),
    TypeKind.FLOAT4: (TypeKind.FLOAT8,),
    TypeKind.DATE: (TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ),
    TypeKind.TIMESTAMP: (TypeKind.TIMESTAMPTZ,),
}
_PREFERRED = (TypeKind.FLOAT8, TypeKind.STRING, TypeKind.TIMESTAMPTZ, TypeKind.INTERVAL,
              TypeKind.BOOL)  # fmt: skip
_CATEGORIES = {
    TypeKind.INT8: "N", TypeKind.DECIMAL: "N", TypeKind.FLOAT4: "N", TypeKind.FLOAT8: "N",
    TypeKind.STRING: "S", TypeKind.DATE: "D", TypeKind.TIMESTAMP: "D", TypeKind.TIMESTAMPTZ: "D",
    TypeKind.TIME: "D", TypeKind.INTERVAL: "T", TypeKind.BOOL: "B",
}  # fmt: skip
NUMBERS = (TypeKind.INT8, TypeKind.DECIMAL, TypeKind.FLOAT4, TypeKind.FLOAT8)


class Ambiguous(Exception):
    """Several signatures fit equally well. Never reaches a client."""


@dataclass(frozen=True, slots=True)
class Signature:
    """`result` is a word as in `arguments`, or `same` for the type of the first argument. A
    variadic signature takes its last word any number of times."""

    name: str
    arguments: tuple[str, ...]
    result: str
    variadic: bool = False

    def words(self, count: int) -> tuple[str, ...] | None:
        """The words for so many operands; None where it does not take that many."""
        if self.variadic and count >= len(self.arguments) - 1:
            missing = count - len(self.arguments) + 1
            return self.arguments[:-1] + self.arguments[-1:] * missing
        return self.arguments if count == len(self.arguments) else None


@dataclass(frozen=True, slots=True)
class Chosen:
    """A signature, with the type that it wants of each operand (None where any will do)."""

    signature: Signature
    wanted: tuple[ColumnType | None, ...]
    result: ColumnType | None

    def takes_array_as_element(self, given: Sequence[Argument]) -> bool:
        """Whether an array would become an element of another."""
        words = self.signature.words(len(given)) or ()
        return _ARRAY in words and any(
            word == _ELEMENT and isinstance(one, ColumnType) and one.element is not None
            for word, one in zip(words, given, strict=True)
        )


def signatures(text: str) -> dict[str, tuple[Signature, ...]]:
    """Reads lines such as `lpad rpad(text, int8, text?) text`: of several names, with a bar between
    words of the same line, and a question mark behind what may be left out."""
    found: dict[str, list[Signature]] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        names, _, rest = line.partition("(")
        written, _, result = rest.partition(")")
        words = [word.strip() for word in written.split(",") if word.strip()]
        variadic = bool(words) and words[-1].startswith("*")
        plain = [word.strip("*?") for word in words]
        least = len([word for word in words if not word.endswith("?")])
        for name in names.split():
            for count in range(least, len(words) + 1):
                for made in _alternatives(plain[:count]):
                    signature = Signature(name, made, result.strip(), variadic)
                    found.setdefault(name, []).append(signature)
    return {name: tuple(several) for name, several in found.items()}


def _alternatives(words: list[str]) -> Iterable[tuple[str, ...]]:
    made: list[tuple[str, ...]] = [()]
    for word in words:
        made = [(*before, one) for before in made for one in word.split("|")]
    return made


def resolve(candidates: Sequence[Signature], given: Sequence[Argument]) -> Chosen | None:
    """The signature that a call means; None where none fits. Raises Ambiguous."""
    fitting = [
        (signature, words)
        for signature in candidates
        if (words := signature.words(len(given))) is not None and _fits(words, given)
    ]
    if not fitting:
        return None
    fitting = _best(fitting, lambda words: _exact(words, given))
    fitting = _best(fitting, lambda words: _preferred(words, given))
    if len(fitting) > 1:
        fitting = _by_literals(fitting, given)
    results = {signature.result for signature, _ in fitting}
    if len(fitting) > 1 and Given.ANYTHING not in given:
        raise Ambiguous
    signature, words = fitting[0]
    result = _result(signature, words, given) if len(results) == 1 else None
    certain = len(fitting) == 1
    return Chosen(signature, _wanted(words, given, certain=certain), result)


Fitting = list[tuple[Signature, tuple[str, ...]]]


def _best(fitting: Fitting, score: Callable[[tuple[str, ...]], int]) -> Fitting:
    scores = [score(words) for _, words in fitting]
    return [one for one, points in zip(fitting, scores, strict=True) if points == max(scores)]


def _fits(words: Sequence[str], given: Sequence[Argument]) -> bool:
    element = _element(words, given)
    return all(_accepts(word, one, element) for word, one in zip(words, given, strict=True))


def _element(words: Sequence[str], given: Sequence[Argument]) -> Argument:
    """The type of `element`: of the array's elements, or else of the first operand for it."""
    for word, one in zip(words, given, strict=True):
        if word == _ARRAY and isinstance(one, ColumnType):
            return one.element or Given.ANYTHING
    singles = [one for word, one in zip(words, given, strict=True) if word == _ELEMENT]
    return next((one for one in singles if isinstance(one, ColumnType)), Given.ANYTHING)


def _accepts(word: str, given: Argument, element: Argument) -> bool:
    if isinstance(given, Given) or word == _ANY:
        return True
    match word:
        case "array":
            return given.element is not None and (
                not isinstance(element, ColumnType) or related(given.element, element)
            )
        case "element":
            return not isinstance(element, ColumnType) or related(given, element)
        case "enum":
            return given.enum is not None
        case "plain":
            return given.element is None
        case "text[]":
            return given.element is not None and given.element.kind is TypeKind.STRING
        case "int8[]":
            return given.element is not None and given.element.kind is TypeKind.INT8
    kind = _KINDS[word]
    return given.kind is kind or kind in IMPLICIT_CASTS.get(given.kind, ())


def related(left: ColumnType, right: ColumnType) -> bool:
    """Whether two types are one and the same, but for digits of decimals and kinds of numbers."""
    if left.kind in NUMBERS and right.kind in NUMBERS:
        return True
    if left.element is not None and right.element is not None:
        return related(left.element, right.element)
    return left == right


def _exact(words: Sequence[str], given: Sequence[Argument]) -> int:
    pairs = zip(words, given, strict=True)
    return sum(isinstance(one, ColumnType) and _KINDS.get(word) is one.kind for word, one in pairs)


def _preferred(words: Sequence[str], given: Sequence[Argument]) -> int:
    """The number of typed operands that are taken as they are or as the preferred type."""
    return sum(
        isinstance(one, ColumnType)
        and (_KINDS.get(word) is one.kind or _KINDS.get(word) in _PREFERRED)
        for word, one in zip(words, given, strict=True)
    )


def _by_literals(fitting: Fitting, given: Sequence[Argument]) -> Fitting:
    """Narrows the candidates by text literals: to text, else to the preferred type where all
    candidates are of one category."""
    for place, one in enumerate(given):
        if one is not Given.LITERAL or len(fitting) == 1:
            continue
        kinds = [_KINDS.get(words[place]) for _, words in fitting]
        known = [kind for kind in kinds if kind is not None]
        categories = {_CATEGORIES.get(kind, kind.value) for kind in known}
        if "S" in categories:
            wanted: Iterable[TypeKind] = (TypeKind.STRING,)
        elif len(categories) == 1 and any(kind in _PREFERRED for kind in known):
            wanted = _PREFERRED
        else:
            continue
        kept = [pair for pair, kind in zip(fitting, kinds, strict=True) if kind in tuple(wanted)]
        fitting = kept or fitting
    return fitting


def _wanted(
    words: Sequence[str], given: Sequence[Argument], *, certain: bool
) -> tuple[ColumnType | None, ...]:
    if not certain:
        return (None,) * len(words)
    element = _element(words, given)
    return tuple(_type(word, element) for word in words)


def _type(word: str, element: Argument) -> ColumnType | None:
    if word in (_ELEMENT, _ARRAY):
        if not isinstance(element, ColumnType):
            return None
        return element if word == _ELEMENT else array_of(element)
    if word.endswith("[]"):
        return array_of(ColumnType(_KINDS[word.removesuffix("[]")]))
    kind = _KINDS.get(word)
    return None if kind is None else ColumnType(kind)


def _result(
    signature: Signature, words: Sequence[str], given: Sequence[Argument]
) -> ColumnType | None:
    if signature.result == "same":
        first = given[0] if given else Given.ANYTHING
        return first if isinstance(first, ColumnType) else _type(words[0], Given.ANYTHING)
    if signature.result == _ARRAY:
        arrays = [one for word, one in zip(words, given, strict=True) if word == _ARRAY]
        known = next((one for one in arrays if isinstance(one, ColumnType)), None)
        if known is not None:
            return known
    return _type(signature.result, _element(words, given))


def type_name(type: Argument) -> str:
    """Returns the name of a type in PostgreSQL's error messages."""
    if isinstance(type, Given):
        return "unknown"
    if type.element is not None:
        return f"{type_name(type.element)}[]"
    return TYPE_ROWS[type.kind].words if type.enum is None else type.enum.name


# The operators whose operands and results are known, beside those on numbers alone.

OPERATORS: dict[str, tuple[Signature, ...]] = signatures(
    """
    + - * / %(int8, int8) int8
    + - * / %(numeric, numeric) numeric
    + - * /(float4, float4) float4
    + - * /(float4, float8) float8
    + - * /(float8, float4|float8) float8
    + -(date, int8) date
    +(int8, date) date
    -(date, date) int8
    + -(date, interval) timestamp
    +(interval, date) timestamp
    +(date, time) timestamp
    +(time, date) timestamp
    + -(time, interval) time
    +(interval, time) time
    -(time, time) interval
    + -(timestamp, interval) timestamp
    +(interval, timestamp) timestamp
    -(timestamp, timestamp) interval
    + -(timestamptz, interval) timestamptz
    +(interval, timestamptz) timestamptz
    -(timestamptz, timestamptz) interval
    + -(interval, interval) interval
    * /(interval, float8) interval
    *(float8, interval) interval
    -(jsonb, text) jsonb
    ||(text, text) text
    ||(bytea, bytea) bytea
    ||(jsonb, jsonb) jsonb
    ||(array, array) array
    ||(array, element) array
    ||(element, array) array
    ||(text, plain) text
    ||(plain, text) text
    ~~ ~~* ~ ~*(text, text) bool
    @> <@ &&(array, array) bool
    @> <@(jsonb, jsonb) bool
    """
)

SIGNS: dict[type[exp.Expr], str] = {
    exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/", exp.Mod: "%", exp.DPipe: "||",
    exp.Like: "~~", exp.ILike: "~~*", exp.RegexpLike: "~", exp.RegexpILike: "~*",
    exp.ArrayContainsAll: "@>", exp.ArrayContainedBy: "<@", exp.ArrayOverlaps: "&&",
    exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
    exp.NullSafeEQ: "=", exp.NullSafeNEQ: "=", exp.In: "=", exp.Between: ">=",
}  # fmt: skip
ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_KEPT_MAX = 4096
"""Signs with types of operands whose meaning is kept."""
COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)


@lru_cache(_KEPT_MAX)
def operation(sign: str, left: Argument, right: Argument) -> Chosen | None:
    """Returns the signature of an operator by the types of its operands; None where none fits.
    Raises Ambiguous.

    A literal beside a type is of that type, if there is an operator for two of it.
    """
    candidates = OPERATORS[sign]
    other = right if left is Given.LITERAL else left
    if Given.LITERAL in (left, right) and isinstance(other, ColumnType):
        try:
            same = resolve(candidates, [other, other])
        except Ambiguous:
            same = None
        kinds = [None if wanted is None else wanted.kind for wanted in same.wanted] if same else []
        if kinds == [other.kind, other.kind]:
            return same
    return resolve(candidates, [left, right])


_FAMILIES: dict[TypeKind, str] = {
    TypeKind.INT8: "number",
    TypeKind.DECIMAL: "number",
    TypeKind.FLOAT4: "number",
    TypeKind.FLOAT8: "number",
    TypeKind.DATE: "moment",
    TypeKind.TIMESTAMP: "moment",
    TypeKind.TIMESTAMPTZ: "moment",
}


def comparable(left: Argument, right: Argument) -> bool:
    """Whether values of the two can be compared, as far as that is known."""
    if isinstance(left, Given) or isinstance(right, Given):
        return True
    if left.element is not None and right.element is not None:
        # No element is converted for the sake of another array's.
        return left.element.kind is right.element.kind and left.element.enum == right.element.enum
    if left.enum is not None and right.enum is not None:
        return left.enum.id == right.enum.id
    families = [_FAMILIES.get(kind, kind.value) for kind in (left.kind, right.kind)]
    return families[0] == families[1]
