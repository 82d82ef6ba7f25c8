"""Places on the disk of a node that sink URIs lead to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a sink URI on this node: a path, the folders around it, and whether there is
    something already."""

    path: str
    around: tuple[str, ...]
    occupied: bool


@runtime_checkable
class PlacedKind(Protocol):
    """A kind of sink whose targets are places."""

    def place(self, uri: str) -> Place:
        """Raises SQLError for a URI that will not do."""
        ...


def place_at(path: Path) -> Place:
    """A folder without anything in it is not occupied: checking a URI may make one."""
    occupied = any(path.iterdir()) if path.is_dir() else path.exists()
    return Place(str(path), tuple(map(str, path.parents)), occupied)
