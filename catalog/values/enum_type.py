"""Enumerations: labels in an order that is declared, and may be declared further.

    CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy')      40 sad    80 ok            c0 happy
    ALTER TYPE mood ADD VALUE 'fine' AFTER 'ok'          40 sad    80 ok   a0 fine  c0 happy

A row holds a member's *mark*, bytes that sort as the members do and are never used again: between
any two marks there is room for another, so that no row is rewritten when a member comes or gets
another label. A member that is not *writable* has just come: everybody must be able to read it
before anybody writes it.

A column's type holds the enumeration as it is in that version of its table. So a row is read by the
members that its canonical version knows, and a locked table's enumerations stand still with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...cached import cached_property
from .errors import SQLError
from .identifiers import quote_identifier

LABEL_BYTES_MAX = 63
"""As in PostgreSQL."""
MEMBERS_MAX = 10_000
"""Labels of one type: the descriptor of each of its columns holds all of them."""


@dataclass(frozen=True, slots=True)
class EnumMember:
    label: str
    mark: bytes
    writable: bool = True


@dataclass(frozen=True)
class EnumType:
    """A version of an enumeration. `members` stand in their order."""

    id: int
    name: str
    members: tuple[EnumMember, ...]

    def __post_init__(self) -> None:
        marks = [member.mark for member in self.members]
        assert marks == sorted(set(marks)), marks

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(member.label for member in self.members)

    @cached_property
    def _by_label(self) -> dict[str, EnumMember]:
        return {member.label: member for member in self.members}

    @cached_property
    def label_by_mark(self) -> dict[bytes, str]:
        return {member.mark: member.label for member in self.members}

    @cached_property
    def mark_by_label(self) -> dict[str, bytes]:
        return {member.label: member.mark for member in self.members}

    def find(self, label: str) -> EnumMember | None:
        return self._by_label.get(label)

    def checked(self, label: str) -> str:
        """The label, if a value may have it. Raises SQLError 22P02; 55000 for one that comes."""
        member = self._by_label.get(label)
        if member is None:
            raise SQLError(
                "22P02", f'invalid input value for enum {quote_identifier(self.name)}: "{label}"'
            )
        if not member.writable:
            raise SQLError(
                "55000",
                f'enum value "{label}" is not yet public',
                hint="It is being added. If that was cut off, run ALTER TYPE … ADD VALUE IF NOT "
                "EXISTS again.",
            )
        return label

    def with_member(self, label: str, *, before: str | None, after: str | None) -> EnumType:
        """The type with one more member, not yet writable. Raises SQLError 22023 for a neighbour
        that it lacks."""
        neighbour = before if before is not None else after
        place = len(self.members)
        if neighbour is not None:
            if neighbour not in self._by_label:
                raise SQLError("22023", f'"{neighbour}" is not an existing enum label')
            place = self.labels.index(neighbour) + (before is None)
        low = self.members[place - 1].mark if place else b""
        high = self.members[place].mark if place < len(self.members) else None
        member = EnumMember(checked_label(label), mark_between(low, high), writable=False)
        members = (*self.members[:place], member, *self.members[place:])
        if len(members) > MEMBERS_MAX:
            raise SQLError("54000", f"an enum has at most {MEMBERS_MAX} values")
        return replace(self, members=members)


def new_members(labels: Sequence[str]) -> tuple[EnumMember, ...]:
    """Members with marks far apart. Raises SQLError 42710 for a label that comes twice."""
    if len(labels) > MEMBERS_MAX:
        raise SQLError("54000", f"an enum has at most {MEMBERS_MAX} values")
    for place, label in enumerate(labels):
        if label in labels[:place]:
            raise SQLError("42710", f'enum label "{label}" used more than once')
    width = 1 if len(labels) < 64 else 3
    step = (1 << (8 * width)) // (len(labels) + 1)
    return tuple(
        EnumMember(checked_label(label), (step * place).to_bytes(width, "big").rstrip(b"\x00"))
        for place, label in enumerate(labels, start=1)
    )


def checked_label(label: str) -> str:
    """Raises SQLError 42602 for a label that is too long, or empty."""
    if not 0 < len(label.encode()) <= LABEL_BYTES_MAX:
        raise SQLError(
            "42602",
            f'invalid enum label "{label}"',
            detail=f"Labels have 1 to {LABEL_BYTES_MAX} bytes.",
        )
    return label


def mark_between(low: bytes, high: bytes | None) -> bytes:
    """Bytes above `low` and, where it is there, below `high`.

    Marks are fractions in base 256, without zeros at their end: halfway between 80 and c0 is a0,
    between 80 and 81 is 80 80. Where there is nothing above, halfway to one.
    """
    assert high is None or low < high, (low, high)
    width = max(len(low), len(high or b"")) + 1
    least = int.from_bytes(low.ljust(width, b"\x00"), "big")
    most = 1 << (8 * width) if high is None else int.from_bytes(high.ljust(width, b"\x00"), "big")
    middle = ((least + most) // 2).to_bytes(width, "big")
    # As few bytes as tell it apart from both.
    for length in range(1, width + 1):
        short = middle[:length].rstrip(b"\x00")
        if short > low and (high is None or short < high):
            return short
    raise AssertionError(f"nothing lies between {low.hex()} and {high!r}")
