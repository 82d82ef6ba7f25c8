"""Transactions, session variables, prepared statements, cursors, and what keeps a PostgreSQL in
shape, for which a store of this kind has nothing to do."""

from __future__ import annotations

from dataclasses import asdict, replace

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from ....catalog.values.errors import SQLError
from ...syntax import cursor_statements as c
from ...syntax import statements as s
from ...syntax import transaction_statements as t
from ...syntax.changefeed_statements import FetchSubscription
from ...syntax.names import Option
from ...syntax.rights_statements import ActAs
from ...variables.variables import LEVELS
from ..cursor import Cursor, syntax_error
from ..kinds import define, define_rules, gathered, itself, one_of, refused, refuses
from ..lexer import like
from ..queries import parse_tree
from ..rules import Row, Rules

define_rules(
    "isolation",
    one_of(
        {name.upper(): level for name, level in LEVELS.items()},
        "SERIALIZABLE, REPEATABLE READ or READ COMMITTED",
    ),
)
refuses(
    "priority",
    "PRIORITY",
    "priorities of transactions",
    "SET lock_timeout bounds how long a statement waits for others.",
)
_modes_given = gathered(
    Rules(
        ("ISOLATION LEVEL isolation:isolation", dict),
        ("READ ONLY", dict, {"read_only": True}),
        ("READ WRITE", dict, {"read_only": False}),
        ("DEFERRABLE", dict, {"deferrable": True}),
        ("NOT DEFERRABLE", dict, {"deferrable": False}),
        ("_:priority", dict),
        ("AS OF SYSTEM TIME as_of:moment", dict),
        expected="ISOLATION LEVEL, READ ONLY, READ WRITE, DEFERRABLE or AS OF SYSTEM TIME",
    ),
    commas=True,
)


def _modes(cursor: Cursor) -> t.TransactionModes:
    modes = t.TransactionModes(**_modes_given(cursor))  # type: ignore[arg-type]
    if modes.as_of is None:
        return modes
    if modes.read_only is False:
        raise SQLError("25006", "AS OF SYSTEM TIME reads only", position=modes.as_of.position)
    return replace(modes, read_only=True)


def _some_modes(cursor: Cursor) -> t.TransactionModes:
    if cursor.finished:
        cursor.fail("a transaction mode")
    return _modes(cursor)


def _characteristics(position: int, modes: t.TransactionModes) -> t.SetCharacteristics:
    if modes.as_of is not None:
        raise SQLError(
            "0A000",
            "AS OF SYSTEM TIME is for one transaction, not for a session",
            position=position,
            hint="SET TRANSACTION AS OF SYSTEM TIME sets it in a transaction.",
        )
    return t.SetCharacteristics(modes=modes)


define("modes", _modes)
define("some_modes", _some_modes)


def _variable(
    name: str, value: str | None, local: bool, position: int
) -> t.SetVariable | s.UseDatabase:
    if name == "database" and value is not None and not local:
        return s.UseDatabase(name=value)
    return t.SetVariable(name=name, value=value, local=local, position=position)


def _zone(value: str, local: bool, position: int) -> t.SetVariable:
    hours = value.removesuffix(":00")
    return t.SetVariable(name="timezone", value=hours, local=local, position=position)


def _role(name: str | None, local: bool, position: int) -> ActAs:
    named = None if name == "none" else name
    return ActAs(name=named, local=local, position=position)


TRANSACTIONS: tuple[Row, ...] = (
    ("BEGIN [WORK/TRANSACTION] modes:modes", t.Begin),
    ("START TRANSACTION modes:modes", t.Begin),
    ("COMMIT/END [WORK/TRANSACTION]", t.Commit),
    ("ROLLBACK/ABORT [WORK/TRANSACTION]", t.Rollback),
    ("ROLLBACK/ABORT [WORK/TRANSACTION] TO [SAVEPOINT] ^ name:savepoint", t.RollbackTo),
    ("SAVEPOINT name:savepoint", t.MakeSavepoint),
    ("RELEASE [SAVEPOINT] ^ name:savepoint", t.ReleaseSavepoint),
    ("SET TRANSACTION modes:some_modes", t.SetTransaction),
    ("SET SESSION CHARACTERISTICS AS TRANSACTION ^ modes:some_modes", _characteristics),
    (
        "SET CONSTRAINTS ( ALL | names:constraints_name,… ) ( deferred:DEFERRED | IMMEDIATE )",
        s.SetConstraints,
    ),
)
VARIABLES: tuple[Row, ...] = (
    ("SET CLUSTER SETTING ^ name:setting TO/= ( DEFAULT | value:value )", s.SetClusterSetting),
    ("RESET CLUSTER SETTING ^ name:setting", s.SetClusterSetting, {"value": None}),
    *(
        (
            f"SET {words} [TO/=] ^ ( DEFAULT | name:role_text )",
            ActAs,
            {"session": True},
        )
        for words in (
            "SESSION AUTHORIZATION",
            "[local:LOCAL | SESSION] SESSION AUTHORIZATION",
            "[local:LOCAL | SESSION] SESSION_AUTHORIZATION",
        )
    ),
    ("SET [local:LOCAL | SESSION] ROLE [TO/=] ^ ( DEFAULT | NONE | name:role_text )", _role),
    ("SET [local:LOCAL | SESSION] ^ TIME ZONE INTERVAL value:hours [HOUR TO MINUTE]", _zone),
    (  # the server's, LOCAL, is UTC, as is the default
        "SET [local:LOCAL | SESSION] ^ TIME ZONE ( LOCAL/DEFAULT | value:values )",
        t.SetVariable,
        {"name": "timezone"},
    ),
    ("SET [local:LOCAL | SESSION] ^ name:variable TO/= ( DEFAULT | value:values )", _variable),
    ("RESET ^ ROLE", ActAs, {"reset": True}),
    ("RESET ^ SESSION AUTHORIZATION", ActAs, {"reset": True, "session": True}),
    ("RESET ^ SESSION_AUTHORIZATION", ActAs, {"reset": True, "session": True}),
    ("RESET ^ TIME ZONE", t.SetVariable, {"name": "timezone"}),
    ("RESET ^ ALL", t.SetVariable, {"name": "all"}),
    ("RESET ^ name:variable", t.SetVariable),
    ("USE name:database", s.UseDatabase),
)


# Prepared statements.


def _arguments(cursor: Cursor) -> tuple[exp.Expr, ...]:
    """The list in parentheses that ends the statement, read by sqlglot as items of a SELECT."""
    tokens = cursor.rest()
    last = tokens[-1]
    if last.token_type != TokenType.R_PAREN:
        end = last.end + 1
        raise syntax_error(cursor.text, end, end, hint="Expected a closing parenthesis.")
    if len(tokens) == 2:
        return ()
    first = tokens[0]
    tree = parse_tree(cursor.text, [like(first, TokenType.SELECT, "SELECT"), *tokens[1:-1]])
    if not isinstance(tree, exp.Select) or any(
        part for name, part in tree.args.items() if name != "expressions"
    ):
        raise syntax_error(cursor.text, first.start, first.end + 1)
    return tuple(tree.expressions)


define("arguments", _arguments, lambda cursor: cursor.keys[cursor.index] == "(", absent=())


PREPARED: tuple[Row, ...] = (
    ("PREPARE name:name [types:(parameter_type,…)] AS text:statement_text", s.Prepare),
    ("EXECUTE ^ name:prepared [arguments:arguments]", s.ExecutePrepared),
    ("DEALLOCATE [PREPARE] ( ALL | name:name )", s.Deallocate),
    *(
        (f"DISCARD {words}", s.Discard, {"target": f"DISCARD {words.partition('/')[0]}"})
        for words in ("ALL", "PLANS", "SEQUENCES", "TEMP/TEMPORARY")
    ),
    ("CLOSE ALL", s.Discard, {"target": "CLOSE CURSOR ALL"}),
    ("UNLISTEN ( * | _:channel )", s.Discard, {"target": "UNLISTEN"}),
)


# Cursors.


def _counted(count: int | None) -> c.Direction:
    number = 1 if count is None else count
    return c.Direction(count=number, single=number == 0, backward=number < 0)


def _backward(count: int | None) -> c.Direction:
    return _counted(-1 if count is None else -count)


define_rules(
    "direction",
    Rules(
        ("count:count", _counted),
        ("NEXT", c.Direction),
        ("PRIOR", _counted, {"count": -1}),
        ("FIRST", c.Direction, {"origin": c.From.START, "count": 1, "single": True}),
        ("LAST", c.Direction, {"origin": c.From.START, "count": -1, "single": True}),
        ("ABSOLUTE count:count", c.Direction, {"origin": c.From.START, "single": True}),
        ("RELATIVE count:count", c.Direction, {"single": True}),
        ("ALL", c.Direction, {"count": None}),
        ("FORWARD ALL", c.Direction, {"count": None}),
        ("FORWARD [count:count]", _counted),
        ("BACKWARD ALL", c.Direction, {"count": None, "backward": True}),
        ("BACKWARD [count:count]", _backward),
    ),
    absent=c.Direction(),
)


def _fetched(
    position: int, name: str, direction: c.Direction, moves: bool = False
) -> c.FetchCursor:
    return c.FetchCursor(**asdict(direction), name=name, moves=moves, position=position)


def _of_subscription(
    position: int, name: str, direction: c.Direction, options: tuple[Option, ...]
) -> FetchSubscription:
    if direction.origin is not c.From.HERE or direction.single or direction.backward:
        raise SQLError(
            "42601",
            "a subscription is not fetched in that direction",
            hint="A subscription is read forwards: FETCH 100, or FETCH ALL.",
            position=position,
        )
    for option in (*options[1:], *(one for one in options if one.name != "timeout")):
        raise SQLError(
            "42601",
            f'option "{option.name}" of FETCH is not known',
            hint="Expected one option, timeout.",
            position=option.position,
        )
    timeout = options[0] if options else None
    return FetchSubscription(name=name, count=direction.count, timeout=timeout, position=position)


define_rules("scroll", one_of({"NO SCROLL": False, "SCROLL": True}, "SCROLL"))

CURSORS: tuple[Row, ...] = (
    (
        "DECLARE ^ name:cursor [INSENSITIVE/ASENSITIVE] [scroll:scroll] CURSOR "
        "[hold:WITH HOLD | WITHOUT HOLD] FOR text:query_text",
        c.DeclareCursor,
    ),
    (
        "DECLARE _:cursor ^ BINARY _:rest",
        refused("binary cursors", "The format of rows is the protocol's: leave BINARY out."),
    ),
    (
        "FETCH [direction:direction] [FROM/IN] SUBSCRIPTION ^ name:subscription [options:with]",
        _of_subscription,
    ),
    ("FETCH [direction:direction] [FROM/IN] ^ name:cursor", _fetched),
    ("FETCH ^ name:cursor", _fetched, {"direction": c.Direction()}),
    ("MOVE [direction:direction] [FROM/IN] ^ name:cursor", _fetched, {"moves": True}),
    ("MOVE ^ name:cursor", _fetched, {"direction": c.Direction(), "moves": True}),
    ("CLOSE ^ name:cursor", c.CloseCursor),
)


# Chores.


define_rules("cleaned", Rules(("name:table [_:(column,…)]", itself)))
define_rules("locked", Rules(("[ONLY] name:table", itself)))
define_rules("chore_option", Rules(("_:option_word [_:value]", dict)))
_ONLY_SHARED = (
    "Serializable transactions need no table locks. SELECT … FOR UPDATE locks rows, "
    "and pg_advisory_xact_lock(n) whatever all agree on."
)

CHORES: tuple[Row, ...] = (
    (
        "VACUUM [_:(chore_option,…)] [FULL] [FREEZE] [VERBOSE] [ANALYZE/ANALYSE] "
        "[tables:cleaned,…]",
        s.Maintain,
        {"chore": s.Chore.VACUUM},
    ),
    (
        "ANALYZE/ANALYSE [_:(chore_option,…)] [VERBOSE] [tables:cleaned,…]",
        s.Maintain,
        {"chore": s.Chore.ANALYZE},
    ),
    (
        "LOCK [TABLE] tables:locked,… IN ACCESS SHARE MODE [NOWAIT]",
        s.Maintain,
        {"chore": s.Chore.LOCK},
    ),
    (
        "LOCK ^ [TABLE] _:locked,… [IN _:rest]",
        refused("LOCK TABLE but IN ACCESS SHARE MODE", _ONLY_SHARED),
    ),
)
