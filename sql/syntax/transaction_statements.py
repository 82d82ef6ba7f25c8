"""Statements about transactions, session variables and cursors, as the parser hands them on."""

from __future__ import annotations

from ...kvlayer.transaction_modes import Isolation
from .statement import AsOf, NamedStatement, Statement, Syntax


class TransactionStatement(Statement):
    """A statement about transactions, or about the variables that they go by."""


class TransactionModes(Syntax):
    """Modes in BEGIN or SET TRANSACTION; None for a mode that is not given."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    as_of: AsOf | None = None


class Begin(TransactionStatement):
    grammar = ("BEGIN [WORK/TRANSACTION] modes:modes", "START TRANSACTION modes:modes")
    modes: TransactionModes


class Commit(TransactionStatement):
    grammar = "COMMIT/END [WORK/TRANSACTION]"


class Rollback(TransactionStatement):
    grammar = "ROLLBACK/ABORT [WORK/TRANSACTION]"


class RollbackTo(TransactionStatement):
    grammar = "ROLLBACK/ABORT [WORK/TRANSACTION] TO [SAVEPOINT] ^ name:savepoint"
    name: str
    position: int


class MakeSavepoint(TransactionStatement):
    grammar = "SAVEPOINT name:savepoint"
    name: str


class ReleaseSavepoint(TransactionStatement):
    grammar = "RELEASE [SAVEPOINT] ^ name:savepoint"
    name: str
    position: int


class SetTransaction(TransactionStatement):
    """The modes of the open transaction."""

    grammar = "SET TRANSACTION modes:some_modes"
    modes: TransactionModes


class SetCharacteristics(TransactionStatement):
    """The modes of the transactions to come."""

    grammar = "SET SESSION CHARACTERISTICS AS TRANSACTION modes:lasting_modes"
    modes: TransactionModes


class SetVariable(TransactionStatement):
    """SET [LOCAL] name = value, and RESET name where the value is None.

    The value is its text; of a list, the texts with commas between. RESET ALL has the name `all`.
    """

    grammar = (
        (  # Sequelize's
            "SET [local:LOCAL | SESSION] ^ TIME ZONE INTERVAL value:hours [HOUR TO MINUTE]",
            {"name": "timezone"},
        ),
        (  # the server's, LOCAL, is UTC, as is the default
            "SET [local:LOCAL | SESSION] ^ TIME ZONE ( LOCAL/DEFAULT | value:values )",
            {"name": "timezone"},
        ),
        "SET [local:LOCAL | SESSION] ^ name:variable TO/= ( DEFAULT | value:values )",
        ("RESET ^ TIME ZONE", {"name": "timezone"}),
        ("RESET ^ ALL", {"name": "all"}),
        "RESET ^ name:variable",
    )
    name: str
    value: str | None = None
    local: bool = False
    position: int


# Cursors.


class DeclareCursor(NamedStatement):
    """`text` is the query, with blanks in front so that its positions are true."""

    grammar = (
        "DECLARE ^ name:cursor [INSENSITIVE/ASENSITIVE] [NO SCROLL | _:scroll] CURSOR "
        "[hold:WITH HOLD | WITHOUT HOLD] FOR text:query_text"
    )
    text: str
    hold: bool


class Direction(Syntax):
    """The next `count` rows, or all of them where it is None; the one row that has this number of
    all where it is `absolute`. What is below 1 lies behind."""

    grammar = (
        "NEXT",
        ("ABSOLUTE count:count", {"absolute": True}),
        ("ALL", {"count": None}),
        ("FORWARD ALL", {"count": None}),
        "FORWARD count:count",
        "FORWARD",
        ("PRIOR/LAST", {"count": 0}),
        ("BACKWARD [ALL | _:count]", {"count": 0}),
        "count:count",
    )
    count: int | None = 1
    absolute: bool = False


class FetchCursor(NamedStatement, Direction):
    """FETCH, or MOVE."""

    moves: bool


class CloseCursor(NamedStatement):
    grammar = "CLOSE ^ name:cursor"


CursorStatement = DeclareCursor | FetchCursor | CloseCursor
