"""Statements about transactions and session variables, as the parser hands them on."""

from __future__ import annotations

from dataclasses import dataclass

from ...kvlayer.transaction_modes import Isolation
from .as_of_clause import AsOf


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionModes:
    """Modes in BEGIN or SET TRANSACTION; None for a mode that is not given."""

    isolation: Isolation | None = None
    read_only: bool | None = None
    deferrable: bool | None = None
    as_of: AsOf | None = None


@dataclass(frozen=True, slots=True)
class Begin:
    modes: TransactionModes


@dataclass(frozen=True, slots=True)
class Commit:
    pass


@dataclass(frozen=True, slots=True)
class Rollback:
    pass


@dataclass(frozen=True, slots=True)
class MakeSavepoint:
    name: str


@dataclass(frozen=True, slots=True)
class ReleaseSavepoint:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class RollbackTo:
    name: str
    position: int


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """SET TRANSACTION: the modes of the open transaction."""

    modes: TransactionModes


@dataclass(frozen=True, slots=True)
class SetCharacteristics:
    """SET SESSION CHARACTERISTICS AS TRANSACTION: the modes of those to come."""

    modes: TransactionModes


@dataclass(frozen=True, slots=True, kw_only=True)
class SetVariable:
    """SET [LOCAL] name = value, and RESET name where the value is None.

    The value is its text; of a list, the texts with commas between. RESET ALL has the name `all`.
    """

    name: str
    value: str | None
    local: bool
    position: int


TransactionStatement = (
    Begin
    | Commit
    | Rollback
    | MakeSavepoint
    | ReleaseSavepoint
    | RollbackTo
    | SetTransaction
    | SetCharacteristics
    | SetVariable
)
