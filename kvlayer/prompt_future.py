"""Futures whose waiters go on in the step that has the result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class PromptFuture(asyncio.Future[T]):
    """A future that runs its waiters within `set_result` and `set_exception`.

    An asyncio.Future has them run in the loop's next turn, and a turn is a call of the selector
    and more. What each statement awaits, and a callback of the loop sets (of a socket, of a
    thread's end), is one of these: a commit takes four turns instead of six.

    Where a task sets it, the waiters run in the next turn after all: a task's step cannot run
    within another's. A callback that sets it is run into by the waiters, and so has its own state
    in order before.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._waiters: list[tuple[Callable[[Any], object], Context]] = []

    def add_done_callback(
        self, callback: Callable[[Any], object], /, *, context: Context | None = None
    ) -> None:
        if self.done():
            super().add_done_callback(callback, context=context)
        else:
            self._waiters.append((callback, copy_context() if context is None else context))

    def remove_done_callback(self, callback: Callable[[Any], object], /) -> int:
        kept = [waiter for waiter in self._waiters if waiter[0] != callback]
        removed, self._waiters = len(self._waiters) - len(kept), kept
        return removed + super().remove_done_callback(callback)

    def set_result(self, result: T, /) -> None:
        super().set_result(result)
        self._run_waiters(prompt=asyncio.current_task() is None)

    def set_exception(self, exception: type | BaseException, /) -> None:
        super().set_exception(exception)
        self._run_waiters(prompt=asyncio.current_task() is None)

    def cancel(self, msg: Any = None) -> bool:
        cancelled = super().cancel(msg)
        if cancelled:
            self._run_waiters(prompt=False)
        return cancelled

    def _run_waiters(self, *, prompt: bool) -> None:
        waiters, self._waiters = self._waiters, []
        for callback, context in waiters:
            if prompt:  # as the loop would, so that whoever watches its steps sees this one too
                asyncio.Handle(callback, (self,), self.get_loop(), context)._run()
            else:
                super().add_done_callback(callback, context=context)
