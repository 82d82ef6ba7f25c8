"""The documented classes of differences, each a section of docs/sql-differences.md.

A class covers a difference of which nothing but what its section says is different. Where both
servers answer, the rows are the same values in all of them: `same_values` says in which sense.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from math import isclose

from tailrace.catalog.values.array_text import read_array
from tailrace.catalog.values.json_text import read_json
from tests.system.differential.comparison import Difference
from tests.system.differential.outcome import Cell, Outcome

INT2, INT4, INT8, TEXT, NAME = 21, 23, 20, 25, 19
FLOAT8, NUMERIC, BPCHAR = 701, 1700, 1042
VARCHAR, VARCHAR_ARRAY, BPCHAR_ARRAY = 1043, 1015, 1014
JSON, JSONB, REGTYPE, VOID = 114, 3802, 2206, 2278
INT4_ARRAY, INT8_ARRAY, TEXT_ARRAY, NUMERIC_ARRAY = 1007, 1016, 1009, 1231

_DIGITS = 14
"""Significant digits that a float and a decimal of the same value share."""


@dataclass(frozen=True, slots=True)
class DifferenceClass:
    """`name` is the title of its section; `covers` says whether a difference belongs to it."""

    name: str
    covers: Callable[[Difference], bool]


_WIDER = {
    (INT2, INT8), (INT4, INT8), (INT4_ARRAY, INT8_ARRAY), (INT8, NUMERIC), (INT4, NUMERIC)
}  # fmt: skip
_ELSEWHERE = {
    "Functions of decimals are computed in floats": {
        (NUMERIC, FLOAT8),
        (NUMERIC, INT8),
        (FLOAT8, INT8),
    },
    "Catalog names and void are text": {
        (NAME, TEXT),
        (REGTYPE, TEXT),
        (VOID, TEXT),
        (VARCHAR, TEXT),
        (VARCHAR_ARRAY, TEXT_ARRAY),
        (BPCHAR, TEXT),
        (BPCHAR_ARRAY, TEXT_ARRAY),
    },
    "JSON is JSONB": {(JSON, JSONB)},
}


def same_values(theirs: Outcome, ours: Outcome) -> bool:
    """Whether two results are the same but for types, digits shown and padding."""
    if len(theirs.rows) != len(ours.rows):
        return False
    pairs = [(theirs.rows, ours.rows)]
    pairs.append((_sorted(theirs), _sorted(ours)))
    return any(
        all(
            len(first) == len(second)
            and all(
                _same(cell, other, before, after)
                for cell, other, before, after in zip(
                    first, second, theirs.types, ours.types, strict=True
                )
            )
            for first, second in zip(left, right, strict=True)
        )
        for left, right in pairs
    )


def _sorted(outcome: Outcome) -> tuple[tuple[Cell, ...], ...]:
    return tuple(sorted(outcome.rows, key=lambda row: [(c is None, c or b"") for c in row]))


def _same(theirs: Cell, ours: Cell, before: int, after: int) -> bool:
    if theirs == ours:
        return True
    if theirs is None or ours is None:
        return (before, after) == (VOID, TEXT)
    if before == BPCHAR:
        return theirs.rstrip(b" ") == ours
    if before == BPCHAR_ARRAY:
        return _texts_in(theirs) == _texts_in(ours)
    if (before, after) == (JSON, JSONB):
        return bool(read_json(theirs.decode()) == read_json(ours.decode()))
    if before == after == NUMERIC_ARRAY:
        return _numbers_in(theirs) == _numbers_in(ours)
    if before == REGTYPE:
        return {theirs, ours} == {b"integer", b"bigint"}
    if before not in (NUMERIC, FLOAT8, INT8):
        return False
    try:
        first, second = Decimal(theirs.decode()), Decimal(ours.decode())
    except InvalidOperation:
        return False
    if FLOAT8 in (before, after):
        return isclose(float(first), float(second), rel_tol=2 * 10**-_DIGITS)
    return _same_decimals(first, second)


def _texts_in(array: bytes) -> list[str | None]:
    return [text if text is None else text.rstrip(" ") for text in read_array(array.decode())]


def _numbers_in(array: bytes) -> list[Decimal | None]:
    return [None if text is None else Decimal(text) for text in read_array(array.decode())]


def _same_decimals(first: Decimal, second: Decimal) -> bool:
    """Whether two are equal as far as the one with fewer fractional digits goes."""
    if first == second:
        return True
    digits = min(-_exponent(first), -_exponent(second))
    if digits < 12:
        large = min(abs(first), abs(second)) >= Decimal(10) ** _DIGITS
        return large and abs(first - second) <= Decimal("0.5").scaleb(-digits)
    near = isclose(float(first), float(second), rel_tol=10**-_DIGITS)
    return near or abs(first - second) <= Decimal(1).scaleb(-digits)


def _exponent(number: Decimal) -> int:
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), number
    return exponent


def _type_pairs(difference: Difference) -> set[tuple[int, int]]:
    theirs, ours = difference.theirs.types, difference.ours.types
    if len(theirs) != len(ours):
        return set()
    return {pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]}


def _typed(name: str) -> DifferenceClass:
    """Other types for the same values, beside wider integers."""
    pairs = _ELSEWHERE[name]

    def covers(difference: Difference) -> bool:
        found = _type_pairs(difference)
        return (
            difference.parts <= {"types", "rows"}
            and bool(found & pairs)
            and found <= pairs | _WIDER
            and same_values(difference.theirs, difference.ours)
        )

    return DifferenceClass(name, covers)


def _wider_integers(difference: Difference) -> bool:
    overflowed = ("integer out of range", "smallint out of range")
    if difference.theirs.message in overflowed or _other_integers(difference.theirs.message):
        return difference.ours.sqlstate is None
    if difference.statement == "SELECT to_hex(-1)":
        return difference.parts == {"rows"}
    found = _type_pairs(difference)
    return (
        difference.parts <= {"types", "rows"}
        and bool(found)
        and found <= _WIDER
        and same_values(difference.theirs, difference.ours)
    )


def _other_integers(message: str) -> bool:
    """Integers of eight bytes as lengths and places, and arrays of two widths side by side."""
    if message.startswith("function ") and message.endswith(" does not exist"):
        return "bigint" in message
    words = message.removeprefix("operator does not exist: ").split()
    sides = {words[0], words[2]} if len(words) == 3 else set()
    return sides in ({"integer[]", "bigint[]"}, {"bigint", "date"})


def _shown_otherwise(*shown: int) -> Callable[[Difference], bool]:
    """The same values, of which only those of some types are written otherwise."""

    def covers(difference: Difference) -> bool:
        differing = {
            place
            for row, other in zip(
                _sorted(difference.theirs), _sorted(difference.ours), strict=False
            )
            for place, (cell, found) in enumerate(zip(row, other, strict=False))
            if cell != found
        }
        return (
            difference.parts <= {"rows", "types"}
            and bool(differing)
            and _type_pairs(difference) <= _WIDER | {(BPCHAR, TEXT), (BPCHAR_ARRAY, TEXT_ARRAY)}
            and all(difference.theirs.types[place] in shown for place in differing)
            and same_values(difference.theirs, difference.ours)
        )

    return covers


def _refused(*, sqlstate: str, beginnings: tuple[str, ...]) -> Callable[[Difference], bool]:
    """What works there, and is an error with a clear message here."""
    return lambda difference: (
        difference.theirs.sqlstate is None
        and difference.ours.sqlstate == sqlstate
        and difference.ours.message.startswith(beginnings)
    )


_UNREAD = (
    "syntax error at end of input",  # SELECT, and no columns
    "syntax error: ROWS FROM",
)


def _blanks_in_texts(difference: Difference) -> bool:
    """A text made of a CHAR, which has no blanks."""
    bare = [
        [[cell and cell.replace(b" ", b"") for cell in row] for row in _sorted(outcome)]
        for outcome in (difference.theirs, difference.ours)
    ]
    return difference.parts == {"rows"} and "concat" in difference.statement and bare[0] == bare[1]


def _unread(difference: Difference) -> bool:
    """Not any syntax error: one that is new is a fault."""
    return _refused(sqlstate="42601", beginnings=_UNREAD)(difference)


_FUNCTIONS_MISSING = (
    "regexp_split_to_table string_to_array jsonb_populate_record jsonb_populate_recordset"
)
_MISSING = (
    *(f"function {name} " for name in _FUNCTIONS_MISSING.split()),
    *(f"function {name}(time without time zone)" for name in ("sum", "avg")),
    "operator does not exist: time without time zone",
    "operator does not exist: - time without time zone",
)


def _either(*tests: Callable[[Difference], bool]) -> Callable[[Difference], bool]:
    return lambda difference: any(test(difference) for test in tests)


def _accepted(*statements: str) -> Callable[[Difference], bool]:
    """What is an error there, and has an answer here: the statements are named one by one."""
    return lambda difference: (
        difference.theirs.sqlstate is not None
        and difference.ours.sqlstate is None
        and difference.statement in statements
    )


def _named(difference: Difference) -> bool:
    return (
        difference.parts <= {"names", "types"}
        and difference.statement in _OTHERWISE_NAMED
        and _type_pairs(difference) <= _WIDER | {(NAME, TEXT)}
    )


_OTHERWISE_NAMED = {
    "SELECT |/ 25.0::FLOAT8",
    "SELECT ||/ 27.0::FLOAT8",
    "SELECT -a, - 1, +a FROM n",
    "SELECT * FROM (SELECT 1, 2) t",
    "SELECT 'x'::NAME",
    "SELECT * FROM (SELECT 1 AS a, 2 AS a) t",
}
_STATES = {
    ("42725", "42883"),  # an operator of two unknown texts
    ("22023", "22P02"),  # BYTES that are no hexadecimal digits
    ("22008", "22007"),  # a date that no calendar has
    ("42883", "42601"),  # a function of no arguments that needs some
    ("42846", "42804"),  # alternatives that have no type in common
    ("23505", "42710"),  # a label twice in an enumeration
    ("22023", "0A000"),  # a unit that is no constant, and none
    ("22P02", "0A000"),
    ("22P02", "42883"),  # an operator of a type that does not have it, and a text
    ("42883", "2202E"),  # how many elements to trim, in eight bytes
    ("42883", "0A000"),  # arrays of arrays beside other types
    ("42804", "0A000"),
    ("42846", "0A000"),
    ("42704", "0A000"),  # an array as an element
    ("42704", "22P02"),
    ("2202E", "0A000"),  # arrays of which none could be made one array of several dimensions
}


def _other_state(difference: Difference) -> bool:
    return (difference.theirs.sqlstate, difference.ours.sqlstate) in _STATES


def _begin(difference: Difference) -> bool:
    if difference.statement == "START TRANSACTION":
        return difference.parts == {"tag"}
    return difference.ours.message == "there is already a transaction in progress" or (
        difference.statement == "COMMIT" and difference.parts == {"tag"}
    )


def _ambiguous_order(difference: Difference) -> bool:
    return (
        difference.theirs.sqlstate == "42702"
        and 'ORDER BY "id" is ambiguous' in difference.theirs.message
        and difference.ours.sqlstate is None
    )


def _infinite(difference: Difference) -> bool:
    theirs, ours = difference.theirs, difference.ours
    overflowed = theirs.message.startswith(("value out of range", "bigint out of range"))
    return overflowed and ours.sqlstate is None


def _serial(difference: Difference) -> bool:
    """Ids that are drawn, and the sequences that PostgreSQL draws them from."""
    drawn = difference.statement.startswith("INSERT INTO counted")
    if drawn and difference.parts <= {"rows", "types"}:
        return len(difference.theirs.rows) == len(difference.ours.rows)
    if difference.statement == "SELECT pg_get_serial_sequence('counted', 'id')":
        return difference.ours.rows == ((None,),)
    missing = ('relation "counted_', 'relation "s" does not exist')
    return difference.ours.sqlstate == "42P01" and difference.ours.message.startswith(missing)


def _cursor(difference: Difference) -> bool:
    """An error of a row that nobody fetches, and what is refused behind it."""
    declared = difference.statement.startswith("DECLARE d CURSOR")
    return declared and difference.ours.message == "division by zero"


CLASSES: tuple[DifferenceClass, ...] = (
    DifferenceClass("Integers are computed in 64 bits", _wider_integers),
    *map(_typed, _ELSEWHERE),
    DifferenceClass(
        "CHAR(n) is not padded", _either(_shown_otherwise(BPCHAR, BPCHAR_ARRAY), _blanks_in_texts)
    ),
    DifferenceClass(
        "Decimals show the digits of their type",
        _either(
            _shown_otherwise(NUMERIC, NUMERIC_ARRAY),
            lambda found: "has more digits than a DECIMAL" in found.ours.message,
        ),
    ),
    DifferenceClass(
        "Decimals have no NaN and no infinity",
        _refused(sqlstate="22003", beginnings=("DECIMAL",)),
    ),
    DifferenceClass("Overflow of floats, and within sums", _infinite),
    DifferenceClass("Truths are cast to every integer", _accepted("SELECT true::INT8")),
    DifferenceClass(
        "Dates and times are written in ISO form",
        _either(
            _refused(
                sqlstate="22007",
                beginnings=("invalid input syntax for type", "date ", "time ", "timestamp "),
            ),
            _refused(sqlstate="22008", beginnings=("date/time field value",)),
        ),
    ),
    DifferenceClass(
        "Arrays have one dimension",
        _refused(sqlstate="0A000", beginnings=("arrays of several", "arrays that begin")),
    ),
    DifferenceClass(
        "A bare NUMERIC column has nine fractional digits",
        _refused(
            sqlstate="22003",
            beginnings=('column "wide": NUMERIC without digits', "NUMERIC without digits"),
        ),
    ),
    DifferenceClass("SERIAL has no sequence", _serial),
    DifferenceClass("Cursors are computed when they are declared", _cursor),
    DifferenceClass(
        "Dates end in the years 1 and 9999",
        _refused(sqlstate="22008", beginnings=("DATE out of range", "date out of range")),
    ),
    DifferenceClass(
        "Rows are no values",
        _refused(sqlstate="0A000", beginnings=("not supported: a row as a value",)),
    ),
    DifferenceClass(
        "Functions that are missing",
        _either(
            _refused(sqlstate="42883", beginnings=_MISSING),
            _refused(
                sqlstate="42846",
                beginnings=(
                    "cannot cast type time without",
                    "cannot cast type interval to time",
                    "cannot cast type jsonb to",
                ),
            ),
            _refused(sqlstate="0A000", beginnings=("not supported: ",)),
            _refused(sqlstate="22023", beginnings=("unrecognized encoding",)),
        ),
    ),
    DifferenceClass("Signs that are not read", _unread),
    DifferenceClass(
        "Columns take no number for a text and no fraction for an integer",
        _either(
            _refused(sqlstate="42804", beginnings=("column ",)),
            _refused(sqlstate="22P02", beginnings=("column ",)),
        ),
    ),
    DifferenceClass("BEGIN in a transaction is an error", _begin),
    DifferenceClass("Names of some columns", _named),
    DifferenceClass("Other SQLSTATEs", _other_state),
    DifferenceClass(
        "More is accepted",
        _either(
            _ambiguous_order,
            _accepted(
                "SELECT * FROM (SELECT 1)",
                "SELECT count(*) FROM t JOIN (SELECT 1 AS y) ON true",
                "SELECT * FROM (SELECT 1 AS a) x, (SELECT a AS b) y",
                "SELECT * FROM (SELECT 1 AS a) x JOIN (SELECT x.a AS b) y ON true",
                "SELECT 'a' ~ '^*'", "SELECT 'a' 'b'", "SELECT levenshtein('a', 'b')",
                'SELECT "ID" FROM emp', "SELECT array_agg('x'), ARRAY['1', 2], ARRAY['1', '2']",
            ),
        ),
    ),
    DifferenceClass(
        "The remainder of the least integer",
        _refused(sqlstate="22003", beginnings=("overflow in division",)),
    ),
)  # fmt: skip


def class_of(difference: Difference) -> DifferenceClass | None:
    """The first class that covers a difference."""
    return next((known for known in CLASSES if known.covers(difference)), None)
