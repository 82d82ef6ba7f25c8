"""A checker of histories over lists: which anomalies concurrent transactions show.

Transactions append unique elements to lists and read lists whole. A list that was read tells who
wrote each of its elements, and in which order; so the dependencies between transactions are known
without asking the store (the idea is Elle's, by Kingsbury and Alvaro, 2020):

    ww   x -> y    y's element stands right behind x's
    wr   x -> y    y read a list that ends with x's element
    rw   x -> y    x read a list to which y's element came next

A history is serializable if these edges make no circle; which edges a circle has says which
anomaly it is. What an aborted transaction appended must not be seen at all, nor what a committed
one had appended when it was not done yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntFlag
from itertools import pairwise

Element = int


class Status(Enum):
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"  # it may have committed: seen it counts, unseen it does not


@dataclass(slots=True, eq=False)
class History:
    """One transaction: `operations` are (key, appended element) and (key, list read), in order."""

    name: str
    operations: list[tuple[Hashable, Element | tuple[Element, ...]]] = field(default_factory=list)
    status: Status = Status.UNKNOWN

    def append(self, key: Hashable, element: Element) -> None:
        self.operations.append((key, element))

    def read(self, key: Hashable, elements: Sequence[Element]) -> None:
        self.operations.append((key, tuple(elements)))

    def appended(self) -> dict[Hashable, list[Element]]:
        by_key: dict[Hashable, list[Element]] = {}
        for key, operation in self.operations:
            if isinstance(operation, int):
                by_key.setdefault(key, []).append(operation)
        return by_key

    def external_reads(self) -> dict[Hashable, tuple[Element, ...]]:
        """What it first read of each key that it had not appended to."""
        reads: dict[Hashable, tuple[Element, ...]] = {}
        touched: set[Hashable] = set()
        for key, operation in self.operations:
            if isinstance(operation, tuple) and key not in touched:
                reads[key] = operation
            touched.add(key)
        return reads

    def __repr__(self) -> str:
        return f"<{self.name} {self.status.value} {self.operations}>"


class Edge(IntFlag):
    WW = 1
    WR = 2
    RW = 4


@dataclass(frozen=True, slots=True)
class Anomaly:
    """Adya's name of it (or `internal`, `incompatible order`), and the transactions in it."""

    kind: str
    transactions: tuple[str, ...]
    detail: str = ""


Graph = dict[History, dict[History, Edge]]


def check(transactions: Iterable[History]) -> list[Anomaly]:
    """The anomalies of a history; one circle for each set of transactions that depend on each
    other in a ring."""
    histories = list(transactions)
    writers = _writers(histories)
    readable = [h for h in histories if h.status is Status.COMMITTED]
    found = [*_internal(readable), *_dirty_reads(readable, writers)]
    orders, broken = _orders(readable)
    found += broken
    return found + _circles(_graph(readable, orders, writers))


def _writers(histories: Iterable[History]) -> dict[tuple[Hashable, Element], History]:
    writers: dict[tuple[Hashable, Element], History] = {}
    for history in histories:
        for key, elements in history.appended().items():
            for element in elements:
                assert (key, element) not in writers, "elements are unique in their list"
                writers[key, element] = history
    return writers


def _internal(histories: Iterable[History]) -> list[Anomaly]:
    """A transaction sees its own appends, behind what it saw before."""
    found = []
    for history in histories:
        known: dict[Hashable, tuple[Element, ...]] = {}
        own: dict[Hashable, tuple[Element, ...]] = {}
        for key, operation in history.operations:
            if isinstance(operation, int):
                own[key] = (*own.get(key, ()), operation)
                continue
            mine = own.get(key, ())
            if mine and operation[-len(mine) :] != mine:
                found.append(Anomaly("internal", (history.name,), f"{key!r}: {operation}"))
            known[key] = operation
    return found


def _dirty_reads(
    histories: Iterable[History], writers: Mapping[tuple[Hashable, Element], History]
) -> list[Anomaly]:
    found = []
    for history in histories:
        for key, elements in history.external_reads().items():
            for element in elements:
                writer = writers.get((key, element))
                if writer is None or writer.status is Status.ABORTED:
                    name = "nobody" if writer is None else writer.name
                    found.append(Anomaly("G1a", (history.name, name), f"{key!r}: {element}"))
            last = writers.get((key, elements[-1])) if elements else None
            if (
                last is not None
                and last is not history
                and last.appended()[key][-1] != elements[-1]
            ):
                found.append(Anomaly("G1b", (history.name, last.name), f"{key!r}: {elements}"))
    return found


def _orders(
    histories: Iterable[History],
) -> tuple[dict[Hashable, tuple[Element, ...]], list[Anomaly]]:
    """The longest list read of each key, of which all others must be beginnings."""
    longest: dict[Hashable, tuple[Element, ...]] = {}
    found = []
    reads = [(h, key, read) for h in histories for key, read in h.external_reads().items()]
    for _, key, read in reads:
        if len(read) > len(longest.get(key, ())):
            longest[key] = read
    for history, key, read in reads:
        if longest.get(key, ())[: len(read)] != read:
            found.append(Anomaly("incompatible order", (history.name,), f"{key!r}: {read}"))
    return longest, found


def _graph(
    readable: Sequence[History],
    orders: Mapping[Hashable, tuple[Element, ...]],
    writers: Mapping[tuple[Hashable, Element], History],
) -> Graph:
    graph: Graph = {history: {} for history in readable}

    def add(source: History | None, target: History | None, edge: Edge) -> None:
        if source is not None and target is not None and source is not target:
            edges = graph.setdefault(source, {})
            edges[target] = edges.get(target, Edge(0)) | edge
            graph.setdefault(target, {})

    for key, order in orders.items():
        for before, after in pairwise(order):
            add(writers.get((key, before)), writers.get((key, after)), Edge.WW)
    for history in readable:
        for key, read in history.external_reads().items():
            order = orders.get(key, ())
            if read:
                add(writers.get((key, read[-1])), history, Edge.WR)
            if len(read) < len(order):
                add(history, writers.get((key, order[len(read)])), Edge.RW)
    return graph


def _circles(graph: Graph) -> list[Anomaly]:
    found = []
    for component in _components(graph):
        if len(component) > 1:
            found.append(_worst(graph, set(component)))
    return found


def _worst(graph: Graph, component: set[History]) -> Anomaly:
    """The circle that violates most: without anti-dependencies if there is one."""
    for kind, allowed in (("G0", Edge.WW), ("G1c", Edge.WW | Edge.WR)):
        for start in component:
            path = _path(graph, component, start, start, allowed)
            if path:
                return _anomaly(kind, path)
    for start in component:
        for target, edge in graph[start].items():
            if edge & Edge.RW and target in component:
                path = _path(graph, component, target, start, Edge.WW | Edge.WR)
                if path:
                    return _anomaly("G-single", [start, *path])
    start = min(component, key=lambda history: history.name)
    path = _path(graph, component, start, start, Edge.WW | Edge.WR | Edge.RW)
    assert path, "a component is a circle"
    return _anomaly("G2", path)


def _anomaly(kind: str, path: Sequence[History]) -> Anomaly:
    return Anomaly(kind, tuple(history.name for history in path), "; ".join(map(repr, path)))


def _path(
    graph: Graph, within: set[History], source: History, target: History, allowed: Edge
) -> list[History]:
    """A shortest path of at least one edge, or nothing."""
    came: dict[History, History] = {}
    queue = deque([source])
    while queue:
        here = queue.popleft()
        for there, edge in graph[here].items():
            if not edge & allowed or there not in within or there in came:
                continue
            came[there] = here
            if there is target:
                path = [there]
                while path[-1] is not source or len(path) == 1:
                    path.append(came[path[-1]])
                return path[::-1]
            queue.append(there)
    return []


def _components(graph: Graph) -> list[list[History]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[History, int] = {}
    low: dict[History, int] = {}
    stack: list[History] = []
    on_stack: set[History] = set()
    found: list[list[History]] = []
    for root in graph:
        if root in index:
            continue
        work = [(root, iter(graph[root]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    stack.append(target)
                    on_stack.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in on_stack:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component: list[History] = []
                    while not component or component[-1] is not node:
                        component.append(stack.pop())
                        on_stack.discard(component[-1])
                    found.append(component)
    return found
