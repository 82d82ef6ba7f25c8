"""Observers of leases: who is told that a table has a new version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol


class LeaseObserver(Protocol):
    """Told in the manager's own step: it may release leases, and must not wait."""

    def on_new_version(self, table_id: int, version: int) -> None:
        """A version newer than all that was told before. Versions may be skipped."""
        ...

    def on_leases_lost(self) -> None:
        """The node's session ended: no lease taken before covers anything from there on."""
        ...


class Observers:
    """Observers by the tables that they watch."""

    def __init__(self) -> None:
        self._by_table: dict[int, list[LeaseObserver]] = defaultdict(list)

    def add(self, table_ids: Iterable[int], observer: LeaseObserver) -> None:
        for table_id in table_ids:
            self._by_table[table_id].append(observer)

    def remove(self, observer: LeaseObserver) -> None:
        for table_id, observers in list(self._by_table.items()):
            left = [other for other in observers if other is not observer]
            if left:
                self._by_table[table_id] = left
            else:
                del self._by_table[table_id]

    def tell_new_version(self, table_id: int, version: int) -> None:
        for observer in tuple(self._by_table.get(table_id, ())):
            observer.on_new_version(table_id, version)

    def tell_leases_lost(self) -> None:
        everyone = {id(one): one for watching in self._by_table.values() for one in watching}
        for observer in everyone.values():
            observer.on_leases_lost()
