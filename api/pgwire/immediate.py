"""Answers at once: to what is carried out within the callback that received it.

A client that sends a prepared statement and waits for it sends one piece: Bind, Describe, Execute
and Sync. Where the session carries the statement out at once (`sql.session.immediate`), its answer
is one piece, too, written before the callback returns, or when the commit is durable. The
connection's task is not woken for it, and the machine not given it. Whatever has come in another
form, and whatever takes waiting, is given to the machine for the task, as if nobody had looked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from ...catalog.values.column_types import Datum
from ...kvlayer.access import Release
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
from .states import BUSY, READY, lone_query, lone_run

_BIND = ord("B")
_HEADER_BYTES = 5

GIVEN_SECONDS = 0.0001
"""The time that giving the processor to a client may take for each commit, on average."""


class ImmediateAnswers:
    """Answers of one connection. `answer` sends frames and tells the client that the server is
    ready."""

    def __init__(
        self,
        session: Session,
        channel: Channel,
        extended: Extended,
        answer: Callable[[list[bytes]], None],
    ) -> None:
        self._session = session
        self._immediate = session.immediate
        self._channel = channel
        self._extended = extended
        self._answer = answer
        self._context = session.context()
        self._due: tuple[Release, list[bytes]] | None = None
        """The release of this step's commit, and the frames that answer it. It may be durable in
        this step, and the context is entered once."""
        self._releasing = False
        self._ungiven_count = 0
        """Commits behind which the processor is not given to the client, for it took long."""

    def take(self, data: bytes) -> bool:
        """Carries out what has arrived; says whether it was such, and nothing is left for the
        connection's task. For whoever received it, while the task waits for more and has nothing
        else."""
        self._immediate.heard()
        run = self._context.run
        if not run(self._take, data):
            return False
        due, self._due = self._due, None
        if due is not None:
            release, frames = due
            self._releasing = True
            release(lambda refusal: run(self._tell_durable, frames, refusal))
            self._releasing = False
        return True

    def _take(self, data: bytes) -> bool:
        if self._channel.machine.state is not READY:
            return False
        run = lone_run(data)
        try:
            if run is not None:
                self._run(data, *run)
            elif (body := lone_query(data)) is not None:
                self._transact(body)
            else:
                return False
        except TakesWaiting:
            return False
        return True

    def _run(self, data: bytes, end: int, described: bool) -> None:
        named = data.find(b"\0", _HEADER_BYTES + 1, end) + 1
        if not named or data[_HEADER_BYTES] or not self._channel.writable:
            raise TakesWaiting
        try:
            statement = self._extended.statement(data[_HEADER_BYTES + 1 : named - 1].decode())
            form = statement.form
            values = None if form is None else form.values(data, named, end)
            if form is None or values is None:
                form, values = _of_other_form(data[_HEADER_BYTES:end], statement)
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
            self._extended.left = FinishedRun(statement, data[_HEADER_BYTES:end], outcome)
        self._tell(frames, outcome)

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
        self._tell([replies.command_complete(outcome.tag)], outcome)

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

    def _tell(self, frames: list[bytes], outcome: Outcome) -> None:
        if outcome.release is None:
            self._session.activity.end()
            self._answer(frames)
        else:
            self._channel.machine.busy()
            self._due = outcome.release, frames

    def _tell_durable(self, frames: list[bytes], error: StoreClosed | None) -> None:
        """The commit's way to the disk has ended, and its client may have gone meanwhile."""
        self._session.activity.end()
        machine = self._channel.machine
        if machine.state is not BUSY:
            return
        if error is not None:
            frames = [replies.error(told_of(error))]
        self._answer(frames)
        machine.ready()
        if machine.buffered_bytes:
            self._channel.wake()
        elif self._releasing:
            self._give_processor()

    def _give_processor(self) -> None:
        """Lets a lone client go on before feeds hear of its commit. The kernel may have woken it on
        the loop's own processor, behind the rest of the step and the steps of feeds: half of what a
        commit call takes. Where others wait there, too, all have their turns: after `n` times
        GIVEN_SECONDS the next `n` commits do without."""
        if self._ungiven_count:
            self._ungiven_count -= 1
            return
        began = time.monotonic()
        os.sched_yield()
        self._ungiven_count = int((time.monotonic() - began) / GIVEN_SECONDS)


def _of_other_form(body: bytes, statement: WireStatement) -> tuple[BindForm, list[Datum]]:
    message = parse_message(_BIND, body)
    if isinstance(message, Malformed):
        raise TakesWaiting
    assert isinstance(message, Bind), message
    values = parameters_of(message, statement)
    form = statement.form = BindForm(message, statement.decoders(message.parameter_formats))
    return form, values
