"""One client's messages, one after another: carried out, answered, and the state kept.

After an error in a pipeline the rest of it is skipped up to its Sync; after one in a text the rest
of the text is. Whatever was open in the transaction has failed then, also where the error was not
the session's.
"""

from __future__ import annotations

import asyncio
from typing import assert_never

from ...catalog.values.errors import SQLError
from ...sql import Session
from ...sql.results.errors import told_of
from . import replies
from .channel import Channel, HangUp
from .extended import Extended
from .immediate import ImmediateAnswers
from .interruption import Guard, Interruption
from .messages import (
    Bind,
    CancelRequest,
    Close,
    CopyData,
    CopyDone,
    CopyFail,
    Describe,
    EncryptionRequest,
    Execute,
    First,
    Flush,
    Malformed,
    Message,
    Parse,
    Password,
    ProtocolViolation,
    Query,
    Startup,
    Sync,
    Terminate,
)
from .output import Output
from .replies import Severity
from .reported import Reported
from .simple import run_text
from .states import State

WEIGHT_PER_STEP = 16
WEIGHTS: dict[type[object], int] = {Query: 16, Parse: 16, Execute: 4}
"""The weights of messages: messages of `WEIGHT_PER_STEP` in all, a text or a few rows, are one step
of the loop."""


class Conversation:
    """The session of a client that is who it says. `run` returns when the connection ends."""

    def __init__(self, channel: Channel, session: Session) -> None:
        self.guard = Guard()
        self._channel = channel
        self._session = session
        self._output = Output(channel, self.guard, session)
        self._extended = Extended(session, channel, self._output, self.guard)
        self._stopping = False
        self._weight = 0  # of the messages that were taken in this step of the loop
        self._reported = Reported(session)

    def begin(self) -> None:
        """Tells the client what is so before it asks for anything."""
        self._channel.write_all(self._reported.changes())

    async def run(self) -> None:
        """Takes messages until the client is gone. What is open then is rolled back."""
        channel = self._channel
        self._session.follow()  # what is written is in its zone, too
        channel.on_lost = lambda: self.guard.interrupt(Interruption.HANG_UP)
        answers = ImmediateAnswers(self._session, channel, self._extended, self._answer)
        channel.at_once = answers.take
        try:
            self._ready()
            while True:
                message = channel.message_here()
                if message is None:
                    await channel.more()
                    continue
                if isinstance(message, Terminate):
                    return
                await self._take(message)
                if self._gives_way(message):
                    await asyncio.sleep(0)
        except HangUp:
            if self._stopping and not channel.lost:
                stopped = SQLError("57P01", Interruption.SHUTDOWN.value)
                channel.write(replies.error(stopped, Severity.FATAL))
        except ProtocolViolation as violation:
            channel.write(replies.error(violation, Severity.FATAL))
        finally:
            channel.on_lost, channel.at_once = lambda: None, lambda data: False
            await self._extended.close()
            await self._session.close()

    def stop(self) -> None:
        """Ends the conversation: the statement that runs is cut short, and the client told."""
        self._stopping = True
        self.guard.interrupt(Interruption.SHUTDOWN)
        self._channel.end_input()

    def _gives_way(self, message: First | Message) -> bool:
        """Whether others are to work now, within a pipeline: its messages wait for nothing, one
        behind another."""
        if not self._channel.machine.buffered_bytes:
            self._weight = 0
            return False
        self._weight += WEIGHTS.get(type(message), 1)
        if self._weight < WEIGHT_PER_STEP:
            return False
        self._weight = 0
        return True

    async def _take(self, message: First | Message) -> None:
        """Carries a message out. Raises HangUp and ProtocolViolation: other errors are told."""
        try:
            match message:
                case Parse() | Bind() | Describe() | Execute() | Close() | Flush():
                    await self._extended.take(message)
                case Sync():
                    await self._extended.sync()
                case Query(text=text):
                    context = (self._session, self._channel, self._output, self.guard)
                    await run_text(*context, self._extended, text)
                    await self._extended.end_portals()
                case Malformed(error=error):
                    raise error
                case Terminate() | Startup() | EncryptionRequest() | CancelRequest() | Password():
                    raise AssertionError(f"{message} is taken elsewhere")
                case CopyData() | CopyDone() | CopyFail():
                    raise AssertionError(f"{message} outside of COPY")
                case _:
                    assert_never(message)
        except (HangUp, ProtocolViolation):
            raise
        except Exception as fault:
            told = told_of(fault)
            if told is self._session.terminated:
                self._channel.write(replies.error(told, Severity.FATAL))
                self._stopping = False  # its client has been told
                raise HangUp from fault
            await self._fail(told)
        if self._channel.machine.state is State.BUSY:
            self._ready()

    async def _fail(self, error: SQLError) -> None:
        channel, machine = self._channel, self._channel.machine
        await self._session.fail()
        channel.write(replies.error(error))
        if machine.state in (State.COPY_IN, State.PIPELINE_COPY_IN):
            machine.copy_ended()
        if machine.state is State.PIPELINE:
            machine.failed()
        elif machine.state is State.BUSY:
            await self._session.end_batch()

    def _ready(self) -> None:
        self._answer([])
        self._channel.machine.ready()

    def _answer(self, frames: list[bytes]) -> None:
        """Sends the frames, and tells the client that the server is ready."""
        frames += self._reported.changes()
        frames.append(replies.READY[self._session.state])
        self._channel.send(frames)
