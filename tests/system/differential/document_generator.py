"""Statements on documents out of a seed, over a table `g` of documents of every kind.

    SELECT id, (a -> 'n') || jsonb_build_array(b), b @> a FROM g WHERE a = b ORDER BY id

Some of what is drawn is an error in both, for a scalar has no members: the same error, then.
"""

from __future__ import annotations

from random import Random
from typing import TypeVar

_T = TypeVar("_T")

COUNT = 350
DEPTH_MAX = 3

_DOCUMENTS = (
    "'1'", "'1.0'", "'-2.50'", "'1e2'", "'\"x\"'", "'\"1\"'", "'null'", "'true'", "'[]'", "'{}'",
    "'[1, 2.0, \"x\"]'", "'[1.0]'", "'{\"n\": 1}'", "'{\"n\": 1.00, \"s\": \"x\"}'",
    "'{\"d\": {\"n\": 4.50, \"l\": [1, null]}}'", "'[[1], {\"n\": 2.50}]'",
    "'{\"bb\": 1, \"a\": null, \"ab\": [0.10]}'", "'9007199254740993'",
)  # fmt: skip
_NAMES = ("'n'", "'s'", "'d'", "'l'", "'a b'", "'0'", "'zz'", "k")
_PLACES = ("0", "1", "-1", "7", "n")
_PATHS = ("'{n}'", "'{d,n}'", "'{d,l,0}'", "'{0}'", "'{-1,n}'", "'{}'", "'{l}'", "ARRAY['d', k]")


class DocumentGenerator:
    """Draws statements. The same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def statement(self) -> str:
        match self._random.randrange(11):
            case 0:
                key = self._document(1)
                return f"SELECT count(*), min(id) FROM g GROUP BY {key} ORDER BY 1, 2"
            case 1:
                return f"SELECT id FROM g ORDER BY ({self._document(2)})::TEXT {self._way()}, id"
            case 2:
                return (
                    f"SELECT jsonb_agg({self._document(1)} ORDER BY id), "
                    f"count(DISTINCT {self._document(1)}) FROM g WHERE {self._truth(1)}"
                )
            case 3:
                return (
                    f"SELECT id, e FROM g, jsonb_array_elements({self._list()}) AS e "
                    f"ORDER BY id, e::TEXT"
                )
            case 4:
                literals = [self._pick(*_DOCUMENTS) + "::JSONB" for _ in range(2)]
                return f"SELECT {self._over(*literals)}, {self._over(*literals)}"
            case 5:
                return (
                    f"SELECT id, count(*) OVER (PARTITION BY {self._document(1)}) FROM g "
                    "ORDER BY id"
                )
        items = ", ".join(self._any(DEPTH_MAX) for _ in range(self._random.randint(1, 3)))
        return f"SELECT id, {items} FROM g WHERE {self._truth(2)} ORDER BY id"

    def _any(self, depth: int) -> str:
        return self._pick(self._document, self._document, self._text, self._truth, self._number)(
            depth
        )

    def _over(self, left: str, right: str) -> str:
        """Of two documents, whatever they are."""
        sign = self._pick("=", "<>", "@>", "<@", "||", "IS DISTINCT FROM")
        return f"{left} {sign} {right}"

    def _document(self, depth: int) -> str:
        if depth == 0:
            return self._pick("a", "b", "a", "b", self._pick(*_DOCUMENTS) + "::JSONB")
        inner, other = self._document(depth - 1), self._document(0)
        match self._random.randrange(17):
            case 0 | 1 | 2:
                return f"({inner} -> {self._pick(*_NAMES)})"
            case 3 | 4:
                return f"({inner} -> {self._pick(*_PLACES)})"
            case 4:
                return f"({inner} #> {self._pick(*_PATHS)})"
            case 5:
                return f"({inner} || {other})"
            case 7:
                return f"({self._object()} - {self._pick(*_NAMES)})"
            case 8:
                return f"({self._list()} - {self._pick(*_NAMES)})"
            case 9:
                return f"jsonb_build_array({inner})"
            case 10:
                return f"jsonb_build_array({inner}, {self._scalar()})"
            case 11:
                return f"jsonb_build_object('p', {inner}, k, {self._scalar()})"
            case 12:
                return f"to_jsonb({self._scalar()})"
            case 13:
                path = self._pick("'{n}'", "'{d,n}'", "'{zz}'", "ARRAY[k]")
                return f"jsonb_set({self._object()}, {path}, {other})"
            case 14:
                return f"coalesce({inner}, {self._pick(*_DOCUMENTS)})"
            case 15:
                return f"CASE WHEN {self._truth(depth - 1)} THEN {inner} ELSE {other} END"
        return f"nullif({inner}, {self._pick(*_DOCUMENTS)})"

    def _object(self) -> str:
        column = self._pick("a", "b")
        return f"CASE jsonb_typeof({column}) WHEN 'object' THEN {column} ELSE '{{}}' END"

    def _list(self) -> str:
        column = self._pick("a", "b")
        return f"CASE WHEN jsonb_typeof({column}) = 'array' THEN {column} ELSE '[]' END"

    def _scalar(self) -> str:
        return self._pick(
            "id", "n", "k", "m", "m * 2", "n > 1", "f", "NULL::INT8", "1.50", "l", "d"
        )

    def _text(self, depth: int) -> str:
        inner = self._document(depth - 1) if depth else "a"
        match self._random.randrange(6):
            case 0 | 1:
                return f"({inner} ->> {self._pick(*_NAMES, *_PLACES)})"
            case 2:
                return f"({inner} #>> {self._pick(*_PATHS)})"
            case 3:
                return f"jsonb_typeof({inner})"
            case 4:
                return f"to_jsonb({inner})::TEXT"
        return f"({inner})::TEXT"

    def _number(self, depth: int) -> str:
        if self._random.random() < 0.5:
            return f"jsonb_array_length({self._list()})"
        inner = self._document(max(depth - 1, 0))
        number = f"({inner} #>> '{{}}')::NUMERIC(30,4)"
        return f"CASE WHEN jsonb_typeof({inner}) = 'number' THEN {number} END"

    def _truth(self, depth: int) -> str:
        if depth == 0:
            return self._pick("id < 9", "n > 1", "a IS NULL", "k = 'n'", "true")
        inner, other = self._document(depth - 1), self._document(0)
        match self._random.randrange(9):
            case 0 | 1 | 2:
                sign = self._pick("=", "<>", "IS DISTINCT FROM")
                return f"{inner} {sign} {other}"
            case 3:
                return f"{inner} {self._pick('@>', '<@')} {other}"
            case 4:
                return f"{inner} ? {self._pick(*_NAMES)}"
            case 4:
                return f"{inner} {self._pick('?|', '?&')} ARRAY['n', k]"
            case 5:
                return f"{inner} IN ({self._pick(*_DOCUMENTS)}, {other})"
            case 7:
                sign = self._pick("AND", "OR")
                return f"({self._truth(depth - 1)} {sign} {self._truth(depth - 1)})"
        return f"({inner}) IS {self._pick('', 'NOT ')}NULL"

    def _way(self) -> str:
        return self._pick("", "DESC", "NULLS FIRST", "DESC NULLS LAST")

    def _pick(self, *choices: _T) -> _T:
        return self._random.choice(choices)


def generated_documents(seed: int) -> tuple[str, ...]:
    generator = DocumentGenerator(seed)
    return tuple(generator.statement() for _ in range(COUNT))
