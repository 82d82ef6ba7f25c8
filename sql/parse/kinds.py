"""Kinds of operands that rules name: names, literals, types, expressions, queries, options.

A kind that has rules of its own stands with the statements that it is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from ...catalog.values.errors import SQLError
from ..syntax.statement import AsOf, ObjectName, Option, TypeName
from ..syntax.statements import Query
from ..syntax.trees import unsupported
from .cursor import RESERVED, Cursor, LexemeKind, Unmatched
from .queries import parse_as_of, parse_query, parse_tree
from .rules import KINDS, Kind, Rules

QUERY_TOKENS = frozenset(
    {TokenType.SELECT, TokenType.WITH, TokenType.VALUES, TokenType.L_PAREN, TokenType.TABLE}
)
"""Words that a query begins with."""
Begins = Callable[[Cursor], bool]
Read = TypeVar("Read", bound=Callable[[Cursor], object])


def define(name: str, read: Read, begins: Begins | None = None, absent: object = None) -> Read:
    """Gives rules a kind of that name; without `begins` it may begin anywhere."""
    KINDS[name] = Kind(read, begins or (lambda cursor: True), absent)
    return read


def kind(name: str, begins: Begins | None = None, absent: object = None) -> Callable[[Read], Read]:
    """Defines the kind that the function below reads."""
    return lambda read: define(name, read, begins, absent)


def define_rules(name: str, rules: Rules, absent: object = None) -> None:
    """Defines a kind that is read by rules."""
    define(name, rules.read, rules.begins, absent)


# Names.


def at_parenthesis(cursor: Cursor) -> bool:
    return cursor.key == "("


def begins_name(cursor: Cursor) -> bool:
    lexeme = cursor.current
    word = lexeme.kind is LexemeKind.WORD and lexeme.text not in RESERVED
    return word or lexeme.kind is LexemeKind.QUOTED


def identifier(cursor: Cursor, what: str) -> str:
    """A name: a word that is not reserved, or anything in double quotes."""
    lexeme = cursor.current
    if begins_name(cursor) and lexeme.text:
        cursor.index += 1
        return lexeme.text
    if lexeme.kind is LexemeKind.WORD:
        cursor.miss(
            cursor.index,
            None,
            f'"{lexeme.text}" is a reserved word: put it in double quotes to use it as a name.',
        )
    cursor.fail(what)


def dotted(cursor: Cursor, what: str) -> str:
    parts = [identifier(cursor, what)]
    while cursor.accept("."):
        parts.append(identifier(cursor, what))
    return ".".join(parts)


def object_name(cursor: Cursor, what: str) -> ObjectName:
    position = cursor.position
    parts = [identifier(cursor, what)]
    while cursor.accept("."):
        parts.append(identifier(cursor, what))
    if len(parts) > 3:
        message = f"improper qualified name (too many dots): {'.'.join(parts)}"
        raise SQLError("42601", message, position=position)
    return ObjectName(tuple(parts), position)


def _named(read: Callable[[Cursor, str], object], names: Mapping[str, str]) -> None:
    for name, what in names.items():
        define(name, lambda cursor, what=what: read(cursor, what), begins_name)


def _article(word: str) -> str:
    return f"{'an' if word[0] in 'aeio' else 'a'} {word.replace('_', ' ')}"


_WORDS = ("savepoint", "cursor", "channel", "subscription", "replication", "relaxed_log",
          "constraint", "index", "column", "user", "database", "schema")  # fmt: skip
_QUALIFIED = ("table", "view", "sequence", "type", "keyspace")
_named(identifier, {word: f"{_article(word)}'s name" for word in _WORDS})
_named(object_name, {word: f"{_article(word)}'s name" for word in _QUALIFIED})
_named(
    identifier,
    {
        "prepared": "a prepared statement's name", "name": "a name",
        "new_name": "a new name", "table_word": "a table's name", "word": "a word",
        "option_word": "an option",
    },
)  # fmt: skip
_named(
    object_name,
    {
        "schema_name": "a schema's name", "index_path": "an index's name",
        "column_name": "a column's name", "database_name": "a database's name",
        "constraints_name": "ALL, or a constraint's name",
    },
)  # fmt: skip
_named(
    dotted,
    {
        "setting": "a setting", "option_name": "an option", "column_path": "a column",
        "parameter_name": "a parameter",
    },
)  # fmt: skip


_NO_VARIABLES = ("role", "transaction", "constraints", "cluster", "time")
"""The words behind SET that have rules of their own."""


@kind("variable", begins_name)
def _variable(cursor: Cursor) -> str:
    if cursor.key in _NO_VARIABLES:
        raise Unmatched
    return dotted(cursor, "a session variable").lower()


@kind("role", begins_name)
def _role(cursor: Cursor) -> str:
    """`[ROLE] name`"""
    cursor.accept("role")
    return identifier(cursor, "a role's name")


@kind("columns", at_parenthesis)
def _columns(cursor: Cursor) -> tuple[str, ...]:
    return cursor.enclosed(lambda cursor: identifier(cursor, "a column's name"))


# Literals.


def at_string(cursor: Cursor) -> bool:
    return cursor.current.kind is LexemeKind.STRING


def at_number(cursor: Cursor) -> bool:
    return cursor.current.kind is LexemeKind.NUMBER or cursor.key == "-"


def string(cursor: Cursor, what: str) -> str:
    if not at_string(cursor):
        cursor.fail(f"{what} in single quotes")
    return cursor.advance().text


def integer(cursor: Cursor, what: str) -> int:
    if cursor.current.kind is not LexemeKind.NUMBER or not cursor.current.text.isdecimal():
        cursor.fail(what)
    return int(cursor.advance().text)


def signed(cursor: Cursor, what: str) -> int:
    return -integer(cursor, what) if cursor.accept("-") else integer(cursor, what)


for _name, _what in {
    "text": "a text", "sink": "the sink's URI", "sink_uri": "a sink URI", "label_text": "a label",
    "replica": "the URI of a replica", "folder": "the URI of a folder", "letter": "a letter's key",
    "backup": "the URI of a backup", "crontab": "a crontab", "password": "a password",
}.items():  # fmt: skip
    define(_name, lambda cursor, what=_what: string(cursor, what), at_string)
define(
    "hours",  # of an interval, which counts to the east as a plain number does in a zone's name
    lambda cursor: string(cursor, "hours and minutes").removesuffix(":00"),
    at_string,
)
for _name, _what in {"job": "a job's id", "schedule_id": "a schedule's id"}.items():
    define(_name, lambda cursor, what=_what: integer(cursor, what), at_number)
define("portion", lambda cursor: integer(cursor, "a number of rows"), at_number)
define("number", lambda cursor: signed(cursor, "a whole number"), at_number)
define("count", lambda cursor: signed(cursor, "a number of rows"), at_number)


def text_or_name(what: str) -> Callable[[Cursor], str]:
    """A name, which may also be written as a text."""
    return lambda cursor: cursor.advance().text if at_string(cursor) else identifier(cursor, what)


def at_text_or_name(cursor: Cursor) -> bool:
    return at_string(cursor) or begins_name(cursor)


define("label", text_or_name("the schedule's label"), at_text_or_name)
define("connection", text_or_name("an external connection's name"), at_text_or_name)
define("role_text", text_or_name("a role's name"), at_text_or_name)


@kind("value")
def value(cursor: Cursor) -> str:
    """The text of a string, a signed number, or a word such as true, which may be in quotes."""
    sign = "-" if cursor.accept("-") else ""
    lexeme = cursor.current
    if lexeme.kind is LexemeKind.NUMBER:
        return sign + cursor.advance().text
    if not sign and lexeme.kind in (LexemeKind.STRING, LexemeKind.WORD, LexemeKind.QUOTED):
        return cursor.advance().text
    cursor.fail("a value")


@kind("values")
def _values(cursor: Cursor) -> str:
    """Texts with commas between them, each a string, a number, or words (`read committed`)."""

    def words(cursor: Cursor) -> str:
        quoted = cursor.current.kind is LexemeKind.QUOTED
        found = [value(cursor)]
        while not quoted and cursor.current.kind is LexemeKind.WORD:
            found.append(cursor.advance().text)
        return " ".join(found)

    return ", ".join(cursor.listed(words))


define_rules("option", Rules(("^ name:option_name [= value:value]", Option)))
define_rules(
    "parameter",  # a name alone is a boolean one, as in Postgres
    Rules(("^ name:parameter_name [= value:value]", Option, {"value": "true"})),
)
define_rules("reset_parameter", Rules(("^ name:parameter_name", Option, {"value": None})))
define_rules(
    "with",
    Rules(
        ("WITH OPTIONS options:(option,…)", lambda options: options),
        ("WITH/OPTIONS options:(option,…)", lambda options: options),
        ("WITH options:option,…", lambda options: options),
    ),
    absent=(),
)


def one_of(choices: Mapping[str, object]) -> Rules:
    """Words, and what each of them means."""
    rows = [(words, lambda meant: meant, {"meant": meant}) for words, meant in choices.items()]
    return Rules(*rows)


Gathered = dict[str, object]


def itself(name: object) -> object:
    """The name itself: what rules make of one with words around it."""
    return name


def gathered(rules: Rules, *, commas: bool = False) -> Callable[[Cursor], Gathered]:
    """Rules that make dictionaries, up to a comma, a parenthesis or the end: the fields of all of
    them. Tuples are put together, of other fields the last one counts. With `commas` there may be
    some between them."""

    def read(cursor: Cursor) -> Gathered:
        found: Gathered = {}
        behind_comma = False
        while behind_comma or not (cursor.finished or cursor.key in (",", ")")):
            given = rules.read(cursor)
            assert isinstance(given, dict), given
            for field, said in given.items():
                before = found.get(field)
                both = isinstance(before, tuple) and isinstance(said, tuple)
                found[field] = before + said if both else said
            behind_comma = commas and cursor.accept(",")
        return found

    return read


# What is refused within a rule.


def refuses(name: str, words: str, what: str | None = None, hint: str | None = None) -> None:
    """Gives rules a kind that raises 0A000 where it is called `what`; the words if that is None."""
    choices = words.lower().split("/")

    def begins(cursor: Cursor) -> bool:
        return cursor.key in choices

    @kind(name, begins)
    def read(cursor: Cursor) -> object:
        if not begins(cursor):
            raise Unmatched
        raise unsupported(what or cursor.current.text.upper(), cursor.position, hint)


def refused(what: str, hint: str | None = None) -> Callable[..., object]:
    """The result of a rule that is understood and not offered: it raises SQLError 0A000."""

    def make(*, position: int, **fields: object) -> object:
        raise unsupported(what, position, hint)

    return make


define("rest", lambda cursor: cursor.rest())
define("whole_text", lambda cursor: cursor.text[cursor.tokens[0].start : cursor.tokens[-1].end + 1])


# Queries and expressions, which sqlglot parses.


def begins_query(cursor: Cursor) -> bool:
    at = cursor.current.token_index
    return not cursor.finished and cursor.tokens[at].token_type in QUERY_TOKENS


@kind("query", begins_query)
def query(cursor: Cursor) -> Query:
    """A query to the end of the statement."""
    if not begins_query(cursor):
        cursor.fail("a query")
    return parse_query(cursor.text, cursor.rest())


def _enclosed(cursor: Cursor, what: str) -> list[Token]:
    """Reads the tokens in parentheses."""
    cursor.expect("(")
    tokens = cursor.until(lambda: cursor.key == ")")
    if not tokens:
        cursor.fail(what)
    cursor.expect(")")
    return tokens


@kind("enclosed_query", at_parenthesis)
def _enclosed_query(cursor: Cursor) -> Query:
    return parse_query(cursor.text, _enclosed(cursor, "a query"))


def padded(cursor: Cursor, what: str) -> str:
    """The text to the end of the statement, with blanks in front so that positions are true."""
    if cursor.finished:
        cursor.fail(what)
    start, end = cursor.current.start, cursor.rest()[-1].end + 1
    return " " * start + cursor.text[start:end]


@kind("query_text")
def _query_text(cursor: Cursor) -> str:
    mark = cursor.index
    query(cursor)
    cursor.index = mark
    return padded(cursor, "a query")


define("statement_text", lambda cursor: padded(cursor, "a statement"))


@kind("parenthesised", at_parenthesis)
def _parenthesised(cursor: Cursor) -> exp.Expr:
    """`(expression)`"""
    return parse_tree(cursor.text, _enclosed(cursor, "an expression"))


_ENDS_EXPRESSION = frozenset(
    """
    not null primary default constraint unique check references generated collate as using
    """.split()  # noqa: SIM905 (a list of words is read as such)
)


@kind("expression")
def _expression(cursor: Cursor) -> exp.Expr:
    """The tokens up to the next constraint, comma or closing parenthesis, as an expression."""
    begun = cursor.index

    def ends() -> bool:
        key = cursor.key
        return key in (",", ")") or (cursor.index > begun and key in _ENDS_EXPRESSION)

    tokens = cursor.until(ends)
    if not tokens:
        cursor.fail("a constant")
    return parse_tree(cursor.text, tokens)


@kind("moment")
def _moment(cursor: Cursor) -> AsOf:
    """The operand of AS OF SYSTEM TIME."""
    as_of, behind = parse_as_of(cursor.text, cursor.tokens, cursor.current.token_index)
    cursor.skip_to_token(behind)
    return as_of


# Types.

_SEVERAL_WORDS = {"double": "precision", "character": "varying"}


@kind("column_type", begins_name)
def type_name(cursor: Cursor, what: str = "a column's type") -> TypeName:
    """`name[.name] [(number, …)] [WITH | WITHOUT TIME ZONE] [[]]`. Raises SQLError 0A000 for arrays
    of several dimensions."""
    position = cursor.position
    if cursor.current.kind not in (LexemeKind.WORD, LexemeKind.QUOTED):
        cursor.fail(what)
    words = [cursor.advance().text]
    while cursor.accept("."):  # a user's type, in its schema
        words[0] += f".{identifier(cursor, 'a type')}"
    following = _SEVERAL_WORDS.get(words[0])
    if following is not None and cursor.accept(following):
        words.append(following)
    arguments: tuple[int, ...] = ()
    if cursor.key == "(":
        arguments = cursor.enclosed(lambda cursor: integer(cursor, "a whole number"))
    zone = cursor.keys[cursor.index : cursor.index + 3]
    if words[0] in ("timestamp", "time") and zone in (
        ["with", "time", "zone"], ["without", "time", "zone"],
    ):  # fmt: skip
        words += zone
        cursor.index += 3
    if _array_marks(cursor):
        words[-1] += "[]"
    return TypeName(" ".join(words), arguments, position)


def _array_marks(cursor: Cursor) -> bool:
    """`[]`, `[3]` (the bound says nothing, as in PostgreSQL) or ARRAY behind a type."""
    if cursor.accept("array"):
        return True
    if not cursor.accept("["):
        return False
    if cursor.current.kind is LexemeKind.NUMBER:
        integer(cursor, "a bound")
    cursor.expect("]")
    if cursor.key == "[":
        raise unsupported("arrays of several dimensions", cursor.position)
    return True


@kind("parameter_type")
def _parameter_type(cursor: Cursor) -> TypeName:
    """A type of PREPARE: `pg_catalog.oid` is `oid`."""
    type = type_name(cursor, "a type")
    return replace(type, name=type.name.removeprefix("pg_catalog."))
