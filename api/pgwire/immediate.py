"""Answers at once: to what is carried out within the callback that received it.

A client that sends a prepared statement and waits for it sends one piece: Bind, Describe, Execute
and Sync. Where the session carries the statement out at once (`sql.session.immediate`), its answer
is one piece, too, written before the callback returns, or when the commit is durable. The
connection's task is not woken for it. Whatever has come in another form, and whatever takes
waiting, is left in the machine for the task, as if nobody had looked.
"""

from __future__ import annotations

from collections.abc import Callable

from ...catalog.values.column_types import Datum
from ...kvlayer.errors import StoreClosed, TakesWaiting
from ...sql import Session
from ...sql.results.errors import told_of
from ...sql.session.immediate import Outcome
from . import replies
from .bind_form import BindForm
from .channel import Channel
from .extended import Extended, FinishedRun
from .messages import Bind, Malformed, parse_message
from .portals import Border, WireStatement, border_of, parameters_of
from .states import State

_BIND = ord("B")


class ImmediateAnswers:
    """Answers of one connection. `ready` tells the client that the server is."""

    def __init__(
        self,
        session: Session,
        channel: Channel,
        extended: Extended,
        ready: Callable[[], None],
    ) -> None:
        self._session = session
        self._immediate = session.immediate
        self._channel = channel
        self._extended = extended
        self._ready = ready
        self._context = session.context()

    def take(self) -> bool:
        """Carries out what has arrived; says whether it was such, and nothing is left for the
        connection's task. For whoever received it, while the task waits for more."""
        return self._context.run(self._take)

    def _take(self) -> bool:
        machine = self._channel.machine
        run = machine.lone_run()
        try:
            if run is not None:
                self._run(*run)
            elif (body := machine.lone_query()) is not None:
                self._transact(body)
            else:
                return False
        except TakesWaiting:
            return False
        return True

    def _run(self, body: bytes, described: bool) -> None:
        end = body.find(b"\0", 1) + 1
        if not end or body[0] or not self._channel.writable:
            raise TakesWaiting
        try:
            statement = self._extended.statement(body[1 : end - 1].decode())
            form = statement.form
            values = None if form is None else form.values(body, end)
            if form is None or values is None:
                form, values = _of_other_form(body, statement)
        except TakesWaiting:
            raise
        except Exception as error:  # a value, a name: the task tells what is wrong with it
            raise TakesWaiting from error
        self._extended.free_unnamed()
        if statement.border is None:
            outcome = self._immediate.run(statement.prepared, values)
        else:
            outcome = self._cross(statement.border, statement.prepared.text)
        frames = [replies.BIND_COMPLETE]
        if outcome.columns:
            frames += self._content(statement, outcome, form, described=described)
        elif described:
            frames.append(replies.NO_DATA)
        frames.append(replies.command_complete(outcome.tag))
        if outcome.in_transaction:
            self._extended.left = FinishedRun(statement, body, outcome)
        self._answer(frames, outcome)

    def _content(
        self, statement: WireStatement, outcome: Outcome, form: BindForm, *, described: bool
    ) -> list[bytes]:
        try:
            shape = statement.shape_of(outcome.columns, form.result_formats)
            frames = [shape.encode.one(row) for row in outcome.rows]
        except Exception as error:  # of a query, which may be run again: the task tells of it
            self._session.activity.end()
            raise TakesWaiting from error
        return [shape.description, *frames] if described else frames

    def _transact(self, body: bytes) -> None:
        text = body[:-1].decode(errors="replace")
        border = border_of(text)
        if border is None:
            raise TakesWaiting
        outcome = self._cross(border, text)
        self._answer([replies.command_complete(outcome.tag)], outcome)

    def _cross(self, border: Border, text: str) -> Outcome:
        """Runs a transaction's begin or end."""
        if border is Border.BEGIN:
            outcome = self._immediate.begin(text)
        elif self._extended.portal_count:
            raise TakesWaiting
        else:
            outcome = self._immediate.commit(text)
        self._extended.left = None
        return outcome

    def _answer(self, frames: list[bytes], outcome: Outcome) -> None:
        self._channel.machine.take_lone()
        if outcome.release is None:
            self._tell(frames)
        else:
            run = self._context.run
            outcome.release(lambda refusal: run(self._tell_durable, frames, refusal))

    def _tell_durable(self, frames: list[bytes], error: StoreClosed | None) -> None:
        """The commit's way to the disk has ended, and its client may have gone meanwhile."""
        if self._channel.machine.state is not State.BUSY:
            self._session.activity.end()
            return
        if error is not None:
            frames = [replies.error(told_of(error))]
        self._tell(frames)
        if self._channel.machine.buffered_bytes:
            self._channel.wake()

    def _tell(self, frames: list[bytes]) -> None:
        self._channel.write_all(frames)
        self._session.activity.end()
        self._ready()


def _of_other_form(body: bytes, statement: WireStatement) -> tuple[BindForm, list[Datum]]:
    message = parse_message(_BIND, body)
    if isinstance(message, Malformed):
        raise TakesWaiting
    assert isinstance(message, Bind), message
    values = parameters_of(message, statement)
    form = statement.form = BindForm(message, statement.decoders(message.parameter_formats))
    return form, values
