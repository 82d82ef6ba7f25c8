"""Sessions as others see them: who is connected, what runs, and how it is cut short.

    SELECT pid, state, query FROM pg_stat_activity
    SELECT pg_cancel_backend(pid), pg_terminate_backend(pid)

A node knows its own sessions. Their numbers are of that node and that run of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from datetime import datetime
from enum import Enum
from types import TracebackType
from typing import Protocol
from weakref import ref

from ...catalog.values.errors import SQLError
from ...catalog.values.shown_text import shown_text
from ...kvlayer.access import StoreAccess
from ...kvlayer.clock import Timestamp
from ..results.as_of import datetime_of
from ..variables.variables import SessionVariables

STATEMENT_SHOWN_MAX = 10_000
"""Characters of a statement that are shown: a load of megabytes is known by how it begins."""


LOGGED_MAX = 500
"""Characters of a statement in a line of the log."""

_running: ContextVar[ref[Activity] | None] = ContextVar("running_activity", default=None)
"""The session whose statement a task runs, or ran last. Tasks that outlive the session inherit it,
and do not keep it alive."""


class Activity:
    """One session's part. The session says what it runs; others may interrupt it.

    The task is cancelled only while it is inside `running`, so an interruption that comes between
    two statements changes nothing.
    """

    def __init__(self, number: int, user: str, store: StoreAccess) -> None:
        self.process_id = number % 0x8000_0000
        """The session's number for PostgreSQL's clients: positive, of 31 bits."""
        self.user = user
        self.began_at = store.clock.last
        self.began = datetime_of(self.began_at)
        self.client_address = ""
        self.last_text: str | None = None
        self.text: str | None = None
        self._text_began = store.clock.last
        self.text_began_us = 0
        """The wall's time at which the text that runs came in: statement_timestamp()."""
        self.query_count = 0
        """The statements that have begun."""
        self.committed_at: Timestamp | None = None
        """The timestamp of the session's last commit that wrote something."""
        self.on_terminate: Callable[[], None] | None = None
        """Ends the session's connection, where there is one."""
        self._store = store
        self._task: asyncio.Task[object] | None = None
        self._interrupted = False
        self._why: SQLError | None = None

    @property
    def text_began(self) -> datetime:
        """The time at which the statement that runs began, or the one before."""
        return datetime_of(self._text_began)

    def note_commit(self, at: Timestamp | None) -> None:
        """The session has committed at `at`, if it has."""
        self.committed_at = at or self.committed_at

    def running(self, text: str) -> Activity:
        """`with activity.running(text):` around the work."""
        self.text = text
        return self

    def begin(self, text: str) -> None:
        """A statement that is carried out at once begins. It is not interrupted."""
        self.text = text
        self.query_count += 1
        self._text_began = self._store.clock.last

    def end(self) -> None:
        """Ends the activity that `begin` told of: its client is about to be answered."""
        self.last_text, self.text = self.text, None

    def __enter__(self) -> None:
        self.query_count += 1
        self._text_began = self._store.clock.last
        self.text_began_us = self._store.clock.wall.unix_us()
        self._task = asyncio.current_task()
        _running.set(ref(self))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task = self._task, None
        self.last_text, self.text = self.text, None
        if self._interrupted:
            self._interrupted = False
            assert task is not None, "what did not run was not interrupted"
            task.uncancel()
            if kind is None or kind is asyncio.CancelledError:
                raise self._why or _canceled() from None

    def interrupt(self, why: SQLError | None = None) -> bool:
        """Says whether there was something to interrupt. `why` is what its client is told, if it
        is not that the statement was cancelled. Raises that where a statement interrupts itself."""
        if self._task is None:
            return False
        if self._task is asyncio.current_task():
            raise why or _canceled()
        self._why = why
        if not self._interrupted:
            self._interrupted = True
            self._task.cancel()
        return True


def _canceled() -> SQLError:
    return SQLError("57014", "canceling statement due to user request")


class Sessions:
    """The open sessions of a node."""

    def __init__(self) -> None:
        self._open: dict[int, SessionView] = {}
        self._count = 0

    def next_number(self) -> int:
        self._count += 1
        return self._count

    def add(self, session: SessionView) -> None:
        self._open[session.activity.process_id] = session

    def remove(self, session: SessionView) -> None:
        self._open.pop(session.activity.process_id, None)

    def find_process(self, process_id: int) -> SessionView | None:
        """The session that clients know by this number."""
        return self._open.get(process_id)

    def end_login(self, user: str, at: Timestamp) -> None:
        """Terminates the sessions that a user began before it lost its login."""
        for session in self:
            if session.activity.user == user and session.activity.began_at < at:
                session.terminate()

    def __iter__(self) -> Iterator[SessionView]:
        """In the order in which they began."""
        return iter(list(self._open.values()))


class SessionState(Enum):
    """What ReadyForQuery tells of a session's transaction, in the words of pg_stat_activity for one
    that runs nothing."""

    IDLE = "idle"
    IN_TRANSACTION = "idle in transaction"
    FAILED = "idle in transaction (aborted)"

    __hash__ = object.__hash__  # each answer looks one up, and Enum's is slow


class SessionView(Protocol):
    """A session as others see it, how it is ended, and what its own statements depend on."""

    @property
    def user(self) -> str: ...
    @property
    def database(self) -> str: ...
    @property
    def variables(self) -> SessionVariables: ...
    @property
    def activity(self) -> Activity: ...
    @property
    def state(self) -> SessionState: ...
    @property
    def transaction_opened_at(self) -> datetime | None: ...
    def terminate(self) -> None: ...


def statement_begun(context: Context) -> str | None:
    """The statement that a context's task runs or ran last, with its session and user."""
    running = context.get(_running)
    activity = None if running is None else running()
    if activity is None or (text := activity.text or activity.last_text) is None:
        return None
    return f"session {activity.process_id} of {activity.user}: {shown(text)[:LOGGED_MAX]!r}"


def shown(text: str | None) -> str:
    """The beginning of a statement, without secrets."""
    if text is None:
        return ""
    return shown_text(text[: 2 * STATEMENT_SHOWN_MAX])[:STATEMENT_SHOWN_MAX]
