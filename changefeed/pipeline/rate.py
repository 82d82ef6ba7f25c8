"""Rates: how fast a feed comes on, over the latest seconds."""

from __future__ import annotations

from collections import deque

RATE_SECONDS = 10.0
"""What is looked back on: longer than a flush of a scan, and short enough to follow a change."""

NOTES_MAX = 64
"""As many notes are kept at least `RATE_SECONDS / NOTES_MAX` apart."""


class Rate:
    """The growth of a number, from notes of it.

    at 0 s 100, at 5 s 600, at 10 s 1,100     100 a second
    """

    def __init__(self) -> None:
        self._notes: deque[tuple[float, float]] = deque()

    def note(self, at: float, value: float) -> None:
        """The number is `value` at `at`, in seconds of a clock that never goes back."""
        notes = self._notes
        while len(notes) > 1 and notes[1][0] <= at - RATE_SECONDS:
            notes.popleft()
        if len(notes) > 1 and at - notes[-2][0] < RATE_SECONDS / NOTES_MAX:
            notes[-1] = (at, value)  # close to the note before it: one will do
        else:
            notes.append((at, value))

    def per_second(self, at: float) -> float | None:
        """The growth a second up to `at`; None where there is too little to tell."""
        if not self._notes:
            return None
        began, first = self._notes[0]
        if at <= began:
            return None
        return (self._notes[-1][1] - first) / (at - began)

    def clear(self) -> None:
        self._notes.clear()
