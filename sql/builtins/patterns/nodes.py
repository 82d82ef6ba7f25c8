"""The tree of a pattern.

a+(b|)$     Choice((Repeat(a, 1, None), Repeat(Group(1, Choice((b), ()))), LINE_END))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

from .letters import Letters


class Anchor(Enum):
    """A condition on a place between letters; it consumes no letter."""

    TEXT_START = auto()
    TEXT_END = auto()
    LINE_START = auto()  # or the text's
    LINE_END = auto()  # or the text's


class Preference(Enum):
    """Which of several matches from one place is taken."""

    NONE = auto()  # there is but one, or nothing says
    LONGER = auto()
    SHORTER = auto()


@dataclass(frozen=True, slots=True)
class Group:
    """A part in parentheses; `number` is None for `(?:…)`."""

    number: int | None
    body: Choice


@dataclass(frozen=True, slots=True)
class Repeat:
    """An atom, as often as its quantifier says: `most` is None where nothing limits it."""

    atom: Letters | Group
    least: int = 1
    most: int | None = 1
    preference: Preference = Preference.NONE


Item = Anchor | Repeat
Branch = tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Branches, between which there is a `|`; at least one."""

    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A whole pattern: `groups` is the number of its capturing groups."""

    choice: Choice
    groups: int


def repeats_in(choice: Choice) -> Iterator[Repeat]:
    """Every atom of a part of a pattern with its quantifier, those within groups too."""
    for item in (item for branch in choice.branches for item in branch):
        if isinstance(item, Repeat):
            yield item
            if isinstance(item.atom, Group):
                yield from repeats_in(item.atom.body)


def may_be_empty(choice: Choice) -> bool:
    """Whether a part of a pattern may match no letter at all."""
    return any(all(map(_item_may_be_empty, branch)) for branch in choice.branches)


def _item_may_be_empty(item: Item) -> bool:
    if not isinstance(item, Repeat) or item.least == 0:
        return True
    return isinstance(item.atom, Group) and may_be_empty(item.atom.body)
