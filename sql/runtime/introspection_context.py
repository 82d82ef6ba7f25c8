"""The context from which rows of virtual tables are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ...catalog.leases import LeaseManager
from ...catalog.store.catalog import Catalog
from ...catalog.values.column_types import ColumnType
from ...kvlayer.access import StoreAccess
from ...kvlayer.txn import Transaction
from ..variables.variables import SessionVariables
from .activity import SessionView
from .jobs import Jobs


class IntrospectedTable(Protocol):
    """A virtual table, as far as tables about tables need it."""

    @property
    def id(self) -> int: ...
    @property
    def schema(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Mapping[str, ColumnType]: ...


class IntrospectedServices(Protocol):
    """A node's services, as far as tables about them need them."""

    @property
    def store(self) -> StoreAccess: ...
    @property
    def catalog(self) -> Catalog: ...
    @property
    def leases(self) -> LeaseManager: ...
    @property
    def sessions(self) -> Iterable[SessionView]: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def virtual_tables(self) -> Iterable[IntrospectedTable]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionContext:
    """`reader` is the statement's transaction: what it reads is as of its read timestamp.
    `user` is whose it is, `variables` what the session has set."""

    services: IntrospectedServices
    database: str
    user: str
    variables: SessionVariables
    reader: Transaction
    process_id: int = 0

    @property
    def session(self) -> SessionView | None:
        """Whose statement it is, if it is a session's."""
        sessions = self.services.sessions
        own = (s for s in sessions if s.activity.process_id == self.process_id)
        return next(own, None)
