"""Functions about the client's own session: who it is, where it is, and what its settings are.

    current_user, current_role      whose rights it has: SET ROLE
    session_user                    the user who has logged in
    current_database(), current_catalog
    current_schema()                there is one: public
    version()                       as PostgreSQL's, with our name in it
    statement_timestamp()           when the text that runs came in, and never before now()
    cluster_logical_timestamp()     the store's timestamp as of which the statement reads
    pg_backend_pid()                the session's number, as the client was told for cancelling

    current_setting('lock_timeout')               as SHOW: 42704 for an unknown name,
    current_setting('nobody.knows', true)         or NULL where that is allowed
    set_config('lock_timeout', '5s', false)       as SET, and the value that it has then
    set_config('lock_timeout', '5s', true)        as SET LOCAL

Each is evaluated once for a statement, from left to right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlglot import exp

from ....catalog.descriptors.system_tables import DEFAULT_DATABASE, PUBLIC_SCHEMA
from ....catalog.rights.users import ROOT
from ....catalog.values.column_types import INT8, STRING, TIMESTAMPTZ, ColumnType
from ....catalog.values.errors import SQLError
from ....kvlayer.clock import ZERO, Timestamp, format_timestamp
from ....kvlayer.errors import TakesWaiting
from ...builtins.session_functions import STORE_TIMESTAMP
from ...variables.variables import (
    CRDB_COMPAT,
    CRDB_VERSION,
    REGISTRY,
    SERVER_VERSION,
    SessionVariables,
    find,
)

VERSION_TEXT = f"PostgreSQL {SERVER_VERSION} (Tailrace)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFacts:
    """Facts of a session's client. `user` has the rights of the session: see `authorization`."""

    user: str = ROOT
    session_user: str = ROOT
    database: str = DEFAULT_DATABASE
    process_id: int = 0
    statement_began_us: int = 0
    read_at: Timestamp = ZERO
    """The timestamp as of which the statement reads."""
    variables: SessionVariables = field(default_factory=SessionVariables)


SOMEBODY = ClientFacts()
"""The facts of a call that no client made: `root`, in the default database."""


class _Untold(ClientFacts):
    """Facts that nobody has gathered. Raises TakesWaiting to who asks for one."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__"):
            return super().__getattribute__(name)
        raise TakesWaiting


UNTOLD: ClientFacts = _Untold()
"""The client of statements that are carried out at once: those that tell of their client are not
among them, and it would take longer to gather the facts than to read a row."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A function that tells a fact of the session by its evaluated arguments, the fact's type, and
    how many arguments there are."""

    tell: Callable[[ClientFacts, Sequence[object]], str | int | datetime | Decimal | None]
    type: ColumnType = STRING
    counts: tuple[int, ...] = (0,)


def _current_setting(facts: ClientFacts, arguments: Sequence[object]) -> str | None:
    name, *missing_ok = arguments
    known = str(name).lower()
    if name is None or (missing_ok == [True] and known not in REGISTRY):
        return None
    return facts.variables.show(find(known))


def _set_config(facts: ClientFacts, arguments: Sequence[object]) -> str | None:
    name, value, local = arguments
    if name is None:
        raise SQLError("22004", "set_config: the name of a parameter is NULL")
    known = str(name).lower()
    if value is None:
        facts.variables.reset(known)
    else:
        facts.variables.set(known, str(value), local=bool(local))
    return facts.variables.show(find(known))


_FACTS = {
    **dict.fromkeys(("current_user", "current_role"), Fact(lambda facts, _: facts.user)),
    "session_user": Fact(lambda facts, _: facts.session_user),
    **dict.fromkeys(("current_database", "current_catalog"), Fact(lambda facts, _: facts.database)),
    "current_schema": Fact(lambda facts, _: PUBLIC_SCHEMA),
    "version": Fact(
        lambda facts, _: CRDB_VERSION if facts.variables.get(CRDB_COMPAT) else VERSION_TEXT
    ),
    "pg_backend_pid": Fact(lambda facts, _: facts.process_id, INT8),
    "cluster_logical_timestamp": Fact(
        lambda facts, _: Decimal(format_timestamp(facts.read_at)), STORE_TIMESTAMP
    ),
    "statement_timestamp": Fact(lambda facts, _: _moment(facts.statement_began_us), TIMESTAMPTZ),
    "current_setting": Fact(_current_setting, counts=(1, 2)),
    "set_config": Fact(_set_config, counts=(3,)),
}

_NODES: dict[type[exp.Expr], str] = {
    exp.CurrentUser: "current_user",
    exp.SessionUser: "session_user",
    exp.CurrentRole: "current_role",
    exp.CurrentDatabase: "current_database",
    exp.CurrentCatalog: "current_catalog",
    exp.CurrentSchema: "current_schema",
    exp.CurrentVersion: "version",
}

CLIENT_NODES: tuple[type[exp.Expr], ...] = (*_NODES, exp.Anonymous)
"""The kinds of nodes that may be such a function."""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _moment(unix_us: int) -> datetime:
    return _EPOCH + timedelta(microseconds=unix_us)


def client_fact(tree: exp.Expr) -> tuple[Fact, list[exp.Expr]] | None:
    """Returns the fact that a call asks the session for, and its arguments; None for any other
    node. Raises SQLError 42883 for a wrong number of arguments."""
    name = _NODES.get(type(tree))
    if name is not None:
        return None if tree.args.get("this") else (_FACTS[name], [])
    match tree:
        case exp.Anonymous():
            name = tree.name.lower()
            found = _FACTS.get(name)
            if found is None or (found.counts == (0,) and tree.expressions):
                return None
            if len(tree.expressions) not in found.counts:
                raise SQLError(
                    "42883",
                    f"function {name} takes another number of arguments",
                    hint="Write current_setting(name [, missing_ok]) or "
                    "set_config(name, value, is_local).",
                )
            return found, tree.expressions
    return None
