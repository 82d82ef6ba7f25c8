"""Leadership: of the stores that hold a raw keyspace, which one writes it.

The table of one store's part in it, without I/O. `raw.leadership` drives it, and
`ranges.leadership` carries each step out, durably.

    store    leading     drain        draining      refuses writes, and keeps what it has
    store    draining    reclaim      leading       the placement is still its own: nobody took it
    store    draining    follow       following     the other has taken it
    other    following   take over    taking over   it has everything, and asks for the placement
    other    taking over lead         leading       the placement is its own
    other    taking over follow       following     the placement is somebody else's

A *placement* is the leader of a keyspace and its *epoch*, which rises with each leader. The store
that is everybody's oracle keeps it, and changes it by compare-and-set. So there is one leader at
most: whoever leaves `draining` or `taking over` goes by what the placement says, and asks again
until it is told.
"""

from __future__ import annotations

from enum import Enum


class Role(Enum):
    """The role of a store for the span of a keyspace."""

    LEADING = "leading"  # it is written here
    DRAINING = "draining"  # no longer, and whom it was offered to may have it already
    FOLLOWING = "following"  # it takes what its leader sends
    TAKING_OVER = "taking over"  # it has everything, and may have the placement already


class Event(Enum):
    """The events that change a store's role."""

    DRAIN = "drain"
    RECLAIM = "reclaim"
    TAKE_OVER = "take over"
    LEAD = "lead"
    FOLLOW = "follow"


_NEXT = {
    (Role.LEADING, Event.DRAIN): Role.DRAINING,
    (Role.DRAINING, Event.RECLAIM): Role.LEADING,
    (Role.DRAINING, Event.FOLLOW): Role.FOLLOWING,
    (Role.FOLLOWING, Event.TAKE_OVER): Role.TAKING_OVER,
    (Role.TAKING_OVER, Event.LEAD): Role.LEADING,
    (Role.TAKING_OVER, Event.FOLLOW): Role.FOLLOWING,
}


def next_role(role: Role, event: Event) -> Role | None:
    """The role after an event; None where the event is none of that role's."""
    return _NEXT.get((role, event))
