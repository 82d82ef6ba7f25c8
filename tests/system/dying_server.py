"""`tailrace serve` that kills itself with -9 at a step of a transfer.

    python -m tests.system.dying_server MOMENT serve FOLDER …

MOMENT is a file. It has the step's name and `before` or `behind`, as `Drain behind`; where there is
no such file, the server is as any other. It is removed before the process dies, which so dies once.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from tailrace.api.cli.main import main
from tailrace.kvlayer.raw import Placement, Placements
from tailrace.kvlayer.replication.replica import ReplicaOrder, ReplicaState, RoleChange
from tailrace.kvlayer.span import Span
from tailrace.kvlayer.store import Store

SWAP = "Swap"
"""The step in which the placement changes; the others are called as their orders."""


class Moment:
    """When the process is to die, as the file says."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def come(self, step: str, when: str) -> None:
        """Ends the process if this is the moment."""
        try:
            wanted = self._path.read_text()
        except FileNotFoundError:
            return
        if wanted == f"{step} {when}":
            self._path.unlink()
            os.kill(os.getpid(), signal.SIGKILL)


def die_at(moment: Moment) -> None:
    """Has each step of this process's transfers look whether its moment has come."""
    replica, swap = Store.replica, Placements.swap

    async def stepping(store: Store, span: Span, order: ReplicaOrder) -> ReplicaState | None:
        if not isinstance(order, RoleChange):
            return await replica(store, span, order)
        moment.come(type(order).__name__, "before")
        state = await replica(store, span, order)
        moment.come(type(order).__name__, "behind")
        return state

    async def swapping(
        placements: Placements, group: str, expected: Placement | None, new: Placement
    ) -> bool:
        if expected is None:  # the first placement is no step: the leader claims what it has
            return await swap(placements, group, expected, new)
        moment.come(SWAP, "before")
        swapped = await swap(placements, group, expected, new)
        moment.come(SWAP, "behind")
        return swapped

    Store.replica = stepping  # type: ignore[method-assign, assignment]
    Placements.swap = swapping  # type: ignore[method-assign, assignment]


if __name__ == "__main__":
    die_at(Moment(Path(sys.argv.pop(1))))
    main()
