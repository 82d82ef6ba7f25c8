"""pg_proc, pg_operator, pg_cast: the functions, operators and casts that expressions have.

They are those by whose signatures calls are checked (`sql.lower`). INT2 and INT4 are computed
with as INT8, and VARCHAR and CHAR as TEXT, so there is one of each where PostgreSQL has several;
and special forms of its grammar (`coalesce`, `extract`) are no functions there either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache

from ....catalog.values.type_kinds import TypeKind
from ...analyze.calls.oids import PG_CATALOG as NAMESPACE
from ...analyze.calls.oids import derived, user_oid
from ...analyze.types.conversions import CASTS
from ...builtins.known_functions import AGGREGATES, ELSEWHERE, FUNCTIONS, WINDOWS
from ...builtins.session_functions import SESSION_FUNCTIONS
from ...builtins.signatures import IMPLICIT_CASTS, NUMBERS, OPERATORS, Signature
from ...results.client_types import ALL_ROWS, TYPE_ROWS, TypeRow
from ..virtual_table import PG_CATALOG, TAILRACE_INTERNAL, IntrospectionContext, Rows

_INTERNAL_LANGUAGE = 12
_SETS = frozenset(("generate_series", "unnest"))

_PSEUDO = {
    "any": "any", "element": "anyelement", "array": "anyarray", "enum": "anyenum",
    "plain": "anynonarray", "range": "anyarray",
}  # fmt: skip
_BY_NAME = {row.name: row for row in ALL_ROWS}
_SUMS = {"int8": "numeric", "numeric": "numeric", "float4": "float4", "float8": "float8",
         "interval": "interval"}  # fmt: skip
_AVERAGES = {**_SUMS, "float4": "float8"}


@dataclass(frozen=True, slots=True)
class _Function:
    """A function as pg_proc has it."""

    name: str
    types: tuple[tuple[int, str], ...]
    """Of its arguments, and of its result behind them: the oid and the words of each."""
    variadic: bool = False

    @property
    def oid(self) -> int:
        return derived("function", self.name, *(words for _, words in self.types))

    @property
    def argument_text(self) -> str:
        words = [words for _, words in self.types[:-1]]
        if self.variadic:
            words[-1] = f"VARIADIC {words[-1]}"
        return ", ".join(words)

    @property
    def result_text(self) -> str:
        _, text = self.types[-1]
        return f"SETOF {text}" if self.name in _SETS else text

    @property
    def kind(self) -> str:
        return "a" if self.name in AGGREGATES else "w" if self.name in WINDOWS else "f"


def _of_signature(found: Signature) -> _Function:
    result = found.result
    match result:
        case "same":
            result = found.arguments[0]
        case "result":
            result = found.arguments[-1]
        case "sum":
            result = _SUMS[found.arguments[0]]
        case "avg":
            result = _AVERAGES[found.arguments[0]]
    types: list[tuple[int, str]] = []
    for word in (*found.arguments, result):
        row = _BY_NAME[_PSEUDO.get(word, word).removesuffix("[]")]
        array = word.endswith("[]")
        types.append((row.array, f"{row.words}[]") if array else (row.oid, row.words))
    return _Function(found.name, tuple(types), found.variadic)


def _of_rows(name: str, rows: Iterable[TypeRow]) -> _Function:
    return _Function(name, tuple((row.oid, row.words) for row in rows))


@cache
def functions() -> tuple[_Function, ...]:
    """All of them, each once, by name."""
    named = {**FUNCTIONS, **ELSEWHERE}
    found = [_of_signature(one) for name, several in named.items() for one in several]
    for name, function in SESSION_FUNCTIONS.items():
        result = TYPE_ROWS[function.result.kind]
        if function.result.catalog_name:
            result = _BY_NAME["void"]
        for count in function.counts:
            arguments = [TYPE_ROWS[function.argument(place).kind] for place in range(count)]
            found.append(_of_rows(name, (*arguments, result)))
    unique = {function.oid: function for function in found}
    return tuple(sorted(unique.values(), key=lambda one: (one.name, one.argument_text)))


@PG_CATALOG.table("""pg_proc 13
    oid:o proname pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o
    prosupport prokind:c prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:c
    proparallel:c pronargs:i pronargdefaults:i prorettype:o proargtypes:V proallargtypes:O
    proargmodes:S proargnames:S proargdefaults protrftypes:O prosrc probin prosqlbody
    proconfig:S proacl:S""")
async def function_rows(context: IntrospectionContext) -> Rows:
    owner = user_oid("root")
    for one in functions():
        *arguments, result = [oid for oid, _ in one.types]
        yield (
            one.oid, one.name, NAMESPACE, owner, _INTERNAL_LANGUAGE, 1.0,
            1000.0 if one.name in _SETS else 0.0, arguments[-1] if one.variadic else 0, None,
            one.kind, False, False, True, one.name in _SETS, "v", "s", len(arguments), 0,
            result, arguments, None, None, None, None, None, one.name, None, None, None, None,
        )  # fmt: skip


@TAILRACE_INTERNAL.table("functions 6 oid:i arguments result")
async def function_texts(context: IntrospectionContext) -> Rows:
    """Rows of `tailrace_internal.functions`: texts for pg_get_function_arguments()."""
    for one in functions():
        yield (one.oid, one.argument_text, one.result_text)


def _operators() -> Iterator[tuple[str, _Function]]:
    for sign, several in OPERATORS.items():
        yield from ((sign, _of_signature(one)) for one in several)
    truth = TYPE_ROWS[TypeKind.BOOL]
    for kind in CASTS:
        row = TYPE_ROWS[kind]
        for sign in ("=", "<>", "<", "<=", ">", ">="):
            yield sign, _of_rows(sign, (row, row, truth))


@PG_CATALOG.table("""pg_operator 64
    oid:o oprname oprnamespace:o oprowner:o oprkind:c oprcanmerge:b oprcanhash:b oprleft:o
    oprright:o oprresult:o oprcom:o oprnegate:o oprcode oprrest oprjoin""")
async def operator_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_operator. An operator is no function here, so it has no `oprcode`."""
    owner = user_oid("root")
    for sign, one in _operators():
        left, right, result = [oid for oid, _ in one.types]
        yield (
            derived("operator", sign, left, right), sign, NAMESPACE, owner, "b",
            sign == "=", sign == "=", left, right, result, 0, 0, None, None, None,
        )  # fmt: skip


FIRST_CAST = 10_000
"""Ids below 16,384 are of built-in objects, which no dump has."""


@PG_CATALOG.table("""pg_cast 55
    oid:o castsource:o casttarget:o castfunc:o castcontext:c castmethod:c""")
async def cast_rows(context: IntrospectionContext) -> Rows:
    """Rows of pg_cast, without those to and from text, which every type has there and here."""
    oid = FIRST_CAST
    for source, targets in CASTS.items():
        for target in sorted(targets - {source}, key=lambda kind: kind.value):
            pair = TYPE_ROWS[source].oid, TYPE_ROWS[target].oid
            yield (oid, *pair, 0, _context(source, target), "f")
            oid += 1


def _context(source: TypeKind, target: TypeKind) -> str:
    """Implicitly, for what is written into a column, or only where a cast is written."""
    if target in IMPLICIT_CASTS.get(source, ()):
        return "i"
    return "a" if any(source in kinds and target in kinds for kinds in _ASSIGNED) else "e"


_ASSIGNED = (NUMBERS, (TypeKind.DATE, TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMPTZ))
