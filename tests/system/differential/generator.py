"""Statements out of a seed: expressions over a table `v` that has a column of each type.

    SELECT id, coalesce(i, 3) - 2 FROM v WHERE s LIKE 'a%' OR n > 1.5 ORDER BY id

What is drawn is typed, so that most statements run; the row whose values are extremes is left out
of most of them, since sums that overflow hide everything else.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

COUNT = 900
DEPTH_MAX = 3

_INTEGERS = ("0", "1", "-3", "7", "42")
_DECIMALS = ("0.5", "1.25", "-2.125", "10.0", "3.333")
_TEXTS = ("'apple'", "''", "'a'", "'Pie'", "'x_y%z'", "' pad '", "'an'")
_PATTERNS = ("'a%'", "'%e'", "'_pple'", "'%an%'", "''", "'x\\_y%'", "'%'", "'A%'")
_EXPRESSIONS = ("'p+'", "'^a'", "'e$'", "'[a-c]n'")
_DATES = ("DATE '2020-02-29'", "DATE '1999-12-31'", "DATE '2024-01-01'")
_STAMPS = ("TIMESTAMP '2020-02-29 12:34:56.789'", "TIMESTAMP '2000-01-01 00:00:00'")
_UNITS = ("'year'", "'month'", "'day'", "'hour'", "'week'", "'quarter'")
_FIELDS = ("year", "month", "day", "dow", "doy", "hour", "minute", "quarter")


class Generator:
    """Draws statements. The same seed gives the same ones."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._kinds: dict[str, Callable[[int], str]] = {
            "integer": self._integer,
            "decimal": self._decimal,
            "float": self._float,
            "text": self._text,
            "truth": self._truth,
            "date": self._date,
            "stamp": self._stamp,
        }

    def statement(self) -> str:
        match self._random.randrange(12):
            case 11:
                return self._fields()
            case 0 | 1:
                return self._grouped()
            case 2:
                return self._aggregated()
            case 3:
                return self._windowed()
            case 4:
                return self._constant()
        items = ", ".join(self._any(DEPTH_MAX) for _ in range(self._random.randint(1, 3)))
        return f"SELECT id, {items} FROM v WHERE {self._filter()} ORDER BY id"

    def _filter(self) -> str:
        rows = "" if self._random.random() < 0.1 else "id <> 5 AND "
        return f"{rows}({self._truth(2)})"

    def _constant(self) -> str:
        """Only literals: what is computed before any row is read."""
        kind = self._pick("integer", "decimal", "text")
        literals = {"integer": _INTEGERS, "decimal": _DECIMALS, "text": _TEXTS}[kind]
        left, right = self._pick(*literals), self._pick(*literals)
        if kind == "text":
            return f"SELECT {left} || {right}, length({left}), {left} < {right}, upper({right})"
        sign = self._pick("+", "-", "*", "/", "%")
        comparison = self._pick("=", "<>", "<", "<=", ">", ">=")
        return f"SELECT {left} {sign} {right}, {left} {comparison} {right}, abs({left})"

    def _fields(self) -> str:
        field, moment = self._pick(*_FIELDS), self._pick("ts", "tz", *_STAMPS)
        return f"SELECT id, extract({field} FROM {moment}) FROM v ORDER BY id"

    def _grouped(self) -> str:
        key = self._pick("s", "b", "i % 2", "upper(s)", "d", "n > 0", "length(t)", "i IS NULL")
        return (
            f"SELECT {key}, count(*), {self._aggregate()} FROM v WHERE id <> 5 "
            f"GROUP BY {key} ORDER BY 1"
        )

    def _aggregated(self) -> str:
        return f"SELECT {self._aggregate()}, {self._aggregate()} FROM v WHERE {self._filter()}"

    def _aggregate(self) -> str:
        name = self._pick("min", "max", "sum", "avg", "count", "count(DISTINCT", "string_agg")
        match name:
            case "min" | "max":
                kind = self._pick("integer", "decimal", "float", "text", "date", "stamp")
                return f"{name}({self._kinds[kind](1)})"
            case "sum" | "avg":
                return f"{name}({self._pick('i', 'j', 'n', 'f', 'i + 1', 'n * 2')})"
            case "string_agg":
                return f"string_agg({self._text(1)}, ',' ORDER BY id)"
            case "count":
                return f"count({self._any(1)}) FILTER (WHERE {self._truth(1)})"
        return f"count(DISTINCT {self._pick('s', 'i', 'b', 'd', 'u')})"

    def _windowed(self) -> str:
        function = self._pick(
            "row_number()", "rank()", "dense_rank()", "sum(i)", "count(*)", "lag(s)", "max(n)",
            "lead(i, 1, 0)", "first_value(t)", "avg(n)",
        )  # fmt: skip
        part = self._pick("", "PARTITION BY s ", "PARTITION BY b ")
        order = self._pick("id", "i, id", "s DESC, id", "d NULLS FIRST, id")
        return (
            f"SELECT id, {function} OVER ({part}ORDER BY {order}) FROM v WHERE id <> 5 ORDER BY id"
        )

    def _any(self, depth: int) -> str:
        return self._kinds[self._pick(*self._kinds)](depth)

    def _pick(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _integer(self, depth: int) -> str:
        if depth == 0:
            return self._pick("i", "j", "id", *_INTEGERS)
        inner = self._integer(depth - 1)
        match self._random.randrange(9):
            case 0:
                return f"({inner} {self._pick('+', '-', '*')} {self._integer(depth - 1)})"
            case 1:
                return f"({inner} {self._pick('/', '%')} {self._pick('2', '3', '-5', '7')})"
            case 2:
                return f"abs({inner})"
            case 3:
                return f"length({self._text(depth - 1)})"
            case 4:
                return f"coalesce({inner}, {self._pick(*_INTEGERS)})"
            case 5:
                return (
                    f"CASE WHEN {self._truth(depth - 1)} THEN {inner} ELSE {self._integer(0)} END"
                )
            case 6:
                return f"{self._pick('greatest', 'least')}({inner}, {self._integer(depth - 1)})"
            case 7:
                return f"nullif({inner}, {self._pick(*_INTEGERS)})"
        return f"-({inner})"

    def _decimal(self, depth: int) -> str:
        if depth == 0:
            return self._pick("n", *_DECIMALS)
        inner = self._decimal(depth - 1)
        match self._random.randrange(7):
            case 0:
                return f"({inner} {self._pick('+', '-')} {self._decimal(depth - 1)})"
            case 1:
                return f"({inner} * {self._pick('2', '0.5', '1.25')})"
            case 2:
                return f"round({inner}, {self._pick('0', '1', '2')})"
            case 3:
                return f"{self._pick('abs', 'floor', 'ceil', 'trunc')}({inner})"
            case 4:
                return f"({inner} / {self._pick('3', '7', '2.5', '0.125')})"
            case 5:
                return f"coalesce({inner}, {self._pick(*_DECIMALS)})"
        return f"({inner} % {self._pick('2', '0.7', '3')})"

    def _float(self, depth: int) -> str:
        if depth == 0:
            return self._pick("f", "f", "0.5::FLOAT8", "i::FLOAT8")
        inner = self._float(depth - 1)
        match self._random.randrange(5):
            case 0:
                return f"({inner} {self._pick('+', '-', '*')} {self._float(0)})"
            case 1:
                return f"{self._pick('abs', 'floor', 'ceil', 'round', 'trunc')}({inner})"
            case 2:
                return f"({inner} / {self._pick('2', '0.25::FLOAT8', '3')})"
            case 3:
                return f"coalesce({inner}, 1.5::FLOAT8)"
        return f"-({inner})"

    def _text(self, depth: int) -> str:
        if depth == 0:
            return self._pick("s", "t", *_TEXTS)
        inner = self._text(depth - 1)
        count = self._pick("-1", "0", "2", "3", "9")
        match self._random.randrange(12):
            case 0:
                return f"({inner} || {self._text(depth - 1)})"
            case 1:
                return (
                    f"{self._pick('upper', 'lower', 'trim', 'ltrim', 'rtrim', 'reverse')}({inner})"
                )
            case 2:
                return f"substring({inner} FROM {count} FOR {self._pick('0', '2', '4')})"
            case 3:
                return f"{self._pick('left', 'right')}({inner}, {count})"
            case 4:
                return f"{self._pick('lpad', 'rpad')}({inner}, {count}, 'xy')"
            case 5:
                return f"replace({inner}, {self._pick(*_TEXTS)}, '-')"
            case 6:
                return f"split_part({inner}, {self._pick(*_TEXTS)}, {self._pick('1', '2', '-1')})"
            case 7:
                return f"coalesce({inner}, {self._pick(*_TEXTS)})"
            case 8:
                return f"({inner} || {self._integer(0)})"
            case 9:
                return f"({self._pick('i', 'n', 'b', 'd', 'ts', 'u')})::TEXT"
            case 10:
                return f"repeat({inner}, {self._pick('-1', '0', '2')})"
        return f"CASE WHEN {self._truth(depth - 1)} THEN {inner} END"

    def _truth(self, depth: int) -> str:
        if depth == 0:
            return self._pick("b", "true", "i > 0", "s = 'apple'", "n IS NULL", "id < 4")
        match self._random.randrange(10):
            case 0:
                return (
                    f"({self._truth(depth - 1)} {self._pick('AND', 'OR')} {self._truth(depth - 1)})"
                )
            case 1:
                return f"NOT ({self._truth(depth - 1)})"
            case 2:
                kind = self._pick("integer", "decimal", "text", "date", "stamp", "float")
                made = self._kinds[kind]
                sign = self._pick("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM")
                return f"({made(depth - 1)} {sign} {made(depth - 1)})"
            case 3:
                like = self._pick("LIKE", "NOT LIKE", "ILIKE")
                return f"({self._text(depth - 1)} {like} {self._pick(*_PATTERNS)})"
            case 4:
                return f"({self._any(depth - 1)}) IS {self._pick('', 'NOT ')}NULL"
            case 5:
                return f"{self._integer(depth - 1)} IN (1, {self._pick(*_INTEGERS)}, NULL)"
            case 6:
                symmetric = self._pick("", "SYMMETRIC ")
                return f"({self._decimal(depth - 1)} BETWEEN {symmetric}{self._decimal(0)} AND 2)"
            case 7:
                return f"({self._truth(depth - 1)}) IS {self._pick('', 'NOT ')}TRUE"
            case 8:
                return f"({self._text(0)} ~ {self._pick(*_EXPRESSIONS)})"
        return "u = 'f47ac10b-58cc-4372-a567-0e02b2c3d479'"

    def _date(self, depth: int) -> str:
        if depth == 0:
            return self._pick("d", *_DATES)
        match self._random.randrange(3):
            case 0:
                return f"({self._date(depth - 1)} {self._pick('+', '-')} {self._pick('1', '30')})"
            case 1:
                return f"coalesce({self._date(depth - 1)}, {self._pick(*_DATES)})"
        return f"({self._stamp(depth - 1)})::DATE"

    def _stamp(self, depth: int) -> str:
        if depth == 0:
            return self._pick("ts", "tz", *_STAMPS)
        match self._random.randrange(3):
            case 0:
                return f"date_trunc({self._pick(*_UNITS)}, {self._stamp(depth - 1)})"
            case 1:
                return f"{self._pick('greatest', 'least')}(ts, {self._pick(*_STAMPS)})"
        return f"coalesce(ts, {self._pick(*_STAMPS)})"


def generated_statements(seed: int) -> tuple[str, ...]:
    generator = Generator(seed)
    return tuple(generator.statement() for _ in range(COUNT))
