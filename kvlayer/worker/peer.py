"""Calls between a server and its worker, over a channel.

    call      named, with arguments; answered by a result or an error, in any order
    tell      the same without an answer: for what must not wait
    cancel    of a call whose caller was cancelled: it still ends before its caller goes on

Frames are pickles: both sides are one program, of one version, and one is the other's child.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .channel import Channel

Handler = Callable[..., Any]
"""What a peer may be asked by name. It is entered in the order in which frames came; what it
returns is awaited, if it is awaitable, while others are entered."""


class WorkerGone(Exception):
    """The process behind a peer has ended."""


# What a frame is. Plain numbers: pickle would look an enumeration's class up in each frame.
_CALL = 0  # number, name, arguments
_TELL = 1  # name, arguments
_CANCEL = 2  # number
_RESULT = 3  # number, value
_ERROR = 4  # number, the error taken apart


class Peer:
    """One side of a pair that call each other."""

    def __init__(self, channel: Channel, handlers: Mapping[str, Handler]) -> None:
        self._channel = channel
        self._handlers = handlers
        self._asked: dict[int, asyncio.Future[Any]] = {}
        """The calls of this side that were not answered yet."""
        self._served: dict[int, asyncio.Task[None]] = {}
        """The calls of the other side that have not ended yet."""
        self._number = 0
        self._gone: str | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the other side is gone, or was told that this one is."""
        channel.start(self._take, self._ended)

    @property
    def gone(self) -> bool:
        return self._gone is not None

    async def call(self, name: str, *arguments: Any) -> Any:
        """The result of the other side's handler. Raises what that raises, and WorkerGone.

        Who is cancelled goes on when the call has ended there.
        """
        self._number += 1
        number = self._number
        outcome = self.begin_call(number, name, arguments)
        try:
            return await asyncio.shield(outcome)
        except asyncio.CancelledError:
            if not outcome.done():
                self._send((_CANCEL, number))
                await asyncio.wait([outcome])
            if not outcome.cancelled():
                outcome.exception()
            raise

    def begin_call(self, number: int, name: str, arguments: tuple[Any, ...]) -> asyncio.Future[Any]:
        """Sends a call in this step; the future is its outcome."""
        if self._gone is not None:
            raise WorkerGone(self._gone)
        outcome: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = outcome
        try:
            self._send((_CALL, number, name, arguments))
        except BaseException:
            del self._asked[number]
            raise
        return outcome

    def tell(self, name: str, *arguments: Any) -> None:
        """The other side's handler hears of it when the next call is sent, or soon; never, where
        the other side is gone."""
        if self._gone is None:
            self._send((_TELL, name, arguments), rings=False)

    def end(self, why: str) -> None:
        """Ends all calls, of either side. The other side is gone, or hears that this one is."""
        if self._gone is not None:
            return
        self._gone = why
        self._channel.close()
        self._ended()
        asked, self._asked = self._asked, {}
        for outcome in asked.values():
            if not outcome.done():
                outcome.set_exception(WorkerGone(why))
        for task in self._served.values():
            task.cancel()

    def _ended(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def _send(self, message: tuple[Any, ...], *, rings: bool = True) -> None:
        frame = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
        self._channel.send(frame, rings=rings)

    # What comes

    def _take(self, frame: bytearray) -> None:
        kind, *message = pickle.loads(frame)
        if kind == _TELL:
            name, arguments = message
            self._handlers[name](*arguments)
        elif kind == _CALL:
            self._enter(*message)
        elif kind == _CANCEL:
            if (task := self._served.get(message[0])) is not None:
                task.cancel()
        else:
            number, outcome = message
            asked = self._asked.pop(number)
            if kind == _ERROR:
                self._fail(asked, outcome)
            elif not asked.done():
                asked.set_result(outcome)

    def _fail(self, outcome: asyncio.Future[Any], error: _Apart) -> None:
        if outcome.done():
            return
        found = _together(error)
        if isinstance(found, asyncio.CancelledError):
            outcome.cancel()
        else:
            outcome.set_exception(found)

    def _enter(self, number: int, name: str, arguments: tuple[Any, ...]) -> None:
        try:
            work = self._handlers[name](*arguments)
        except Exception as error:
            self._answer(number, error)
            return
        if not isinstance(work, Awaitable):
            self._send((_RESULT, number, work))
            return
        task = asyncio.ensure_future(self._serve(number, work))
        self._served[number] = task
        # Also one that was cancelled before its first step.
        task.add_done_callback(lambda done: self._leave(number, done))

    async def _serve(self, number: int, work: Awaitable[Any]) -> None:
        try:
            result = await work
        except Exception as error:
            self._answer(number, error)
        else:
            self._send((_RESULT, number, result))

    def _leave(self, number: int, done: asyncio.Task[None]) -> None:
        del self._served[number]
        if done.cancelled():
            self._answer(number, asyncio.CancelledError())
        elif (error := done.exception()) is not None:
            self._answer(number, error)  # a result that cannot be sent

    def _answer(self, number: int, error: BaseException) -> None:
        self._send((_ERROR, number, _apart(error)))


_Apart = tuple[type[BaseException], tuple[Any, ...], dict[str, Any]]
"""An error's class, arguments and attributes: what its own `__init__` takes is another matter, so
that pickle would not put it together again."""


def _apart(error: BaseException) -> _Apart:
    found = type(error), error.args, dict(vars(error))
    try:
        pickle.dumps(found)
    except Exception:
        return RuntimeError, (f"{type(error).__name__}: {error}",), {}
    return found


def _together(parts: _Apart) -> BaseException:
    kind, arguments, attributes = parts
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(attributes)
    return error
