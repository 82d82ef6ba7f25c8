"""Joint quiescence: cuts of several domains that share no cell, on one machine.

A domain is quiet from a mark's end to the first event behind it. Where the quiet intervals of all
domains overlap, their states at those marks were there at one time. Ids are compared across
domains, so all must have been given one offset to real time (`ids.machine_clock`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from .ids import before


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """A domain at rest: its state at `cut` holds until `until`, not included; None if it still does
    so far as is known."""

    cut: int
    until: int | None


def joint_cuts(quiet: Mapping[int, Sequence[Quiet]]) -> Iterator[dict[int, int]]:
    """The cuts, by domain, at which all were at rest together, in order.

    `quiet` holds each domain's intervals in their order.
    """
    places = dict.fromkeys(quiet, 0)
    while all(places[domain] < len(intervals) for domain, intervals in quiet.items()):
        now = {domain: intervals[places[domain]] for domain, intervals in quiet.items()}
        ends = {domain: each.until for domain, each in now.items() if each.until is not None}
        if not any(not before(each.cut, end) for end in ends.values() for each in now.values()):
            yield {domain: each.cut for domain, each in now.items()}
        if not ends:
            return
        first = next(iter(ends))
        for domain, end in ends.items():
            if before(end, ends[first]):
                first = domain
        places[first] += 1
