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
    modes: TransactionModes


class Commit(TransactionStatement):
    pass


class Rollback(TransactionStatement):
    pass


class MakeSavepoint(TransactionStatement):
    name: str


class ReleaseSavepoint(TransactionStatement):
    name: str
    position: int


class RollbackTo(TransactionStatement):
    name: str
    position: int


class SetTransaction(TransactionStatement):
    """SET TRANSACTION: the modes of the open transaction."""

    modes: TransactionModes


class SetCharacteristics(TransactionStatement):
    """SET SESSION CHARACTERISTICS AS TRANSACTION: the modes of those to come."""

    modes: TransactionModes


class SetVariable(TransactionStatement):
    """SET [LOCAL] name = value, and RESET name where the value is None.

    The value is its text; of a list, the texts with commas between. RESET ALL has the name `all`.
    """

    name: str
    value: str | None = None
    local: bool = False
    position: int
