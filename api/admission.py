"""The admission of connections to a door, within its bounds.

A connection is *unknown* until its client has proved who it is, and then *known*. Both kinds are
bounded apart from each other, so that sockets which say nothing take no place of anybody's:

    unknown   a bound of all and one for each address; beyond it the oldest one yields to the new
    known     a bound of all, a share of it for each user, and places kept for admins

The oldest yields because an honest client says who it is within milliseconds: whoever fills the
bound with silence closes its own sockets, and others at the same address still come in.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from ..catalog.values.errors import SQLError
from ..kvlayer.metrics import Metrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The numbers of connections that one door takes."""

    known: int = 2000
    unknown: int = 500
    unknown_per_address: int = 100
    kept_for_admins: int = 20

    @property
    def per_user(self) -> int:
        """Three quarters: what is left lets others work beside one that has gone wild."""
        return max(1, self.known * 3 // 4)

    @property
    def descriptors(self) -> int:
        return self.known + self.unknown


class Place:
    """One connection's place at a door, from `Admission.arrive` until `leave`."""

    def __init__(self, admission: Admission, address: str, yielded: Callable[[], None]) -> None:
        self.address = address
        self.user: str | None = None
        """Whose it is, once that is proved."""
        self.yielded = yielded
        self._admission = admission

    def known(self, user: str, *, admin: bool) -> None:
        """The client has proved to be `user`. Raises SQLError 53300 where that user, or everybody,
        has as many connections as there may be. Saying it again changes nothing."""
        if self.user is None:
            self._admission.know(self, user, admin=admin)

    def leave(self) -> None:
        """Gives the place back. Leaving twice is leaving once."""
        self._admission.leave(self)


class Admission:
    """The places at one door; `door` names it in metrics."""

    def __init__(self, bounds: Bounds, metrics: Metrics, door: str) -> None:
        self.bounds = bounds
        self._metrics = metrics
        self._door = door
        self._unknown: OrderedDict[Place, None] = OrderedDict()
        self._by_address: dict[str, OrderedDict[Place, None]] = {}
        self._known: set[Place] = set()
        self._by_user: Counter[str] = Counter()

    @property
    def count(self) -> int:
        return len(self._unknown) + len(self._known)

    def arrive(self, address: str, yielded: Callable[[], None]) -> Place:
        """A place for a new connection. `yielded` is called when a newer one takes it."""
        from_there = self._by_address.get(address, ())
        if len(from_there) >= self.bounds.unknown_per_address:
            self._yield(next(iter(from_there)))
        elif len(self._unknown) >= self.bounds.unknown:
            self._yield(next(iter(self._unknown)))
        place = Place(self, address, yielded)
        self._unknown[place] = None
        self._by_address.setdefault(address, OrderedDict())[place] = None
        self._metrics.add(f"{self._door}_connections_total")
        self._tell()
        return place

    def know(self, place: Place, user: str, *, admin: bool) -> None:
        if place not in self._unknown:  # it has yielded while its client was being authenticated
            raise SQLError("53300", "too many connections that have not authenticated")
        bounds = self.bounds
        everybody = bounds.known - (0 if admin else bounds.kept_for_admins)
        if len(self._known) >= everybody:
            self._metrics.add(f"{self._door}_connections_refused_total")
            raise SQLError("53300", "sorry, too many clients already")
        if not admin and self._by_user[user] >= bounds.per_user:
            self._metrics.add(f"{self._door}_connections_refused_total")
            raise SQLError("53300", f'too many connections of user "{user}"')
        self._forget_unknown(place)
        place.user = user
        self._known.add(place)
        self._by_user[user] += 1
        self._tell()

    def leave(self, place: Place) -> None:
        if place in self._unknown:
            self._forget_unknown(place)
        elif place in self._known:
            assert place.user is not None, place
            self._known.remove(place)
            self._by_user[place.user] -= 1
            if not self._by_user[place.user]:
                del self._by_user[place.user]
        self._tell()

    def check_invariants(self) -> None:
        bounds = self.bounds
        assert len(self._unknown) <= bounds.unknown, len(self._unknown)
        assert len(self._known) <= bounds.known, len(self._known)
        by_address = [place for places in self._by_address.values() for place in places]
        assert sorted(map(id, by_address)) == sorted(map(id, self._unknown)), by_address
        for address, places in self._by_address.items():
            assert 0 < len(places) <= bounds.unknown_per_address, (address, len(places))
        assert self._by_user == Counter(place.user for place in self._known), self._by_user

    def _yield(self, place: Place) -> None:
        self._forget_unknown(place)
        self._metrics.add(f"{self._door}_connections_yielded_total")
        place.yielded()

    def _forget_unknown(self, place: Place) -> None:
        del self._unknown[place]
        from_there = self._by_address[place.address]
        del from_there[place]
        if not from_there:
            del self._by_address[place.address]

    def _tell(self) -> None:
        self._metrics.put(f"{self._door}_connections", self.count)
        self._metrics.put(f"{self._door}_connections_unknown", len(self._unknown))
