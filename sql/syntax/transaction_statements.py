"""Statements about transactions and session variables, as the parser hands them on."""

from __future__ import annotations

from ...kvlayer.transaction_modes import Isolation
from .names import AsOf
from .statement import Statement, Syntax


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
    """SET SESSION CHARACTERISTICS AS TRANSACTION: the modes of those to come."""

    modes: TransactionModes


class SetVariable(TransactionStatement):
    """SET [LOCAL] name = value, and RESET name where the value is None.

    The value is its text; of a list, the texts with commas between. RESET ALL has the name `all`.
    """

    grammar = (
        (  # the server's, LOCAL, is UTC, as is the default
            "SET [local:LOCAL | SESSION] ^ TIME ZONE ( LOCAL/DEFAULT | value:values )",
            {"name": "timezone"},
        ),
        ("RESET ^ TIME ZONE", {"name": "timezone"}),
        ("RESET ^ ALL", {"name": "all"}),
        "RESET ^ name:variable",
    )
    name: str
    value: str | None = None
    local: bool = False
    position: int
