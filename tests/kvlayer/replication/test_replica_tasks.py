"""Tasks of a replica: who sends which keys, and what all of them have resolved."""

from __future__ import annotations

from random import Random

import msgspec

from tailrace.kvlayer.clock import ZERO, Timestamp
from tailrace.kvlayer.replication.replica_tasks import ReplicaTask, Tasks, least_resolved, opened
from tailrace.kvlayer.span import Span

WHOLE = Span(b"a", b"z")


def span(text: str) -> Span:
    return Span(text[0].encode(), text[1].encode())


def shown(tasks: Tasks) -> list[str]:
    return [f"{(t.start + t.end).decode()} {t.epoch} {t.resolved} {t.note!r}" for t in tasks]


def moved(tasks: Tasks, epoch: int, resolved: int, note: bytes = b"n") -> Tasks:
    return tuple(
        msgspec.structs.replace(each, resolved=Timestamp(resolved), note=note)
        if each.epoch == epoch
        else each
        for each in tasks
    )


def test_an_opening_takes_its_keys_from_who_had_them() -> None:
    tasks = opened((), span("am"), WHOLE, epoch=1, resolved=Timestamp(5))
    tasks = opened(tasks, span("mz"), WHOLE, epoch=2, resolved=Timestamp(5))
    tasks = moved(moved(tasks, 1, 30), 2, 40)
    assert shown(tasks) == ["am 1 30 b'n'", "mz 2 40 b'n'"]
    again = opened(tasks, span("mz"), WHOLE, epoch=3, resolved=Timestamp(5))
    assert shown(again) == ["am 1 30 b'n'", "mz 3 40 b'n'"]
    cut = opened(again, span("kp"), WHOLE, epoch=4, resolved=Timestamp(5))
    assert shown(cut) == ["ak 0 30 b''", "kp 4 30 b''", "pz 0 40 b''"]


def test_tasks_cover_the_whole_and_no_more() -> None:
    tasks = opened((), span("am"), WHOLE, epoch=1, resolved=ZERO)
    wider = opened(moved(tasks, 1, 30), span("bc"), Span(b"A", b"k"), epoch=2, resolved=ZERO)
    assert shown(wider) == ["Aa 0 0 b''", "ab 0 30 b''", "bc 2 30 b''", "ck 0 30 b''"]


def test_no_opening_lets_what_is_resolved_fall() -> None:
    random, least = Random(3), Timestamp(7)
    tasks = opened((), WHOLE, WHOLE, epoch=1, resolved=least)
    for epoch in range(2, 400):
        start, end = sorted(random.sample("abcdefghijklmz", 2))
        tasks = opened(tasks, span(start + end), WHOLE, epoch=epoch, resolved=least)
        assert least_resolved(tasks) >= least
        assert (tasks[0].start, tasks[-1].end) == (WHOLE.start, WHOLE.end)
        known = _owner(tasks, epoch)
        tasks = moved(tasks, epoch, known.resolved + random.randrange(9))
        least = least_resolved(tasks)


def _owner(tasks: Tasks, epoch: int) -> ReplicaTask:
    (found,) = (each for each in tasks if each.epoch == epoch)
    return found
