"""A keyspace that two servers hand to one another under load, killed at moments of the transfer.

    python -m tests.system.transfers --moments 12 --seed 1
    python -m tests.system.transfers --steps

Writers put keys wherever the leader is. Each moment is one transfer, and a kill -9 of the leader or
of the follower: some time after the leader has begun to drain, or right before or behind a step of
the one or the other (`dying_server`). When both are back, one leads and the
other follows; of each key, a put that began when another had been answered has a greater timestamp;
and every put that was answered is in both stores, at its timestamp.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from threading import Event, Thread

import httpx2

from tailrace.api.demo.raw.server import free_port
from tailrace.kvlayer.clock import Timestamp, format_timestamp, parse_timestamp
from tests.harness.server_process import ServerProcess
from tests.system.dying_server import SWAP

DOCUMENT = (Path(__file__).parents[2] / "docs/raw.md").read_text()
KEYS = "/v1/keyspaces/ks/keys"
KEY_COUNT = 20
PATIENCE_SECONDS = 90.0
CHECKED = 10
"""Puts of a key that are looked for in each store: the newest."""

ORACLE = 0
"""The server that keeps the placement."""

LEADERS = frozenset({"Drain", "Follow", "Reclaim"})
"""Steps of the leader; the others are the follower's."""

STEPS = [
    (step, when)
    for step in ("Drain", "TakeOver", SWAP, "Lead", "Follow", "Reclaim")
    for when in ("before", "behind")
]

HANDED_OVER = {
    ("Drain", "before"): False,
    ("Drain", "behind"): False,
    (SWAP, "behind"): True,
    ("Lead", "before"): True,
    ("Lead", "behind"): True,
    ("Follow", "before"): True,
    ("Follow", "behind"): True,
    ("Reclaim", "before"): False,
    ("Reclaim", "behind"): False,
}
"""Whether the keyspace has changed hands then. Else it is whoever swaps the placement first."""


class Writer(Thread):
    """Puts keys of its own at the server that takes them, and remembers what was answered."""

    def __init__(self, servers: list[ServerProcess], number: int, stop: Event) -> None:
        super().__init__()
        self.answered: dict[str, list[tuple[Timestamp, bytes]]] = {}
        self.failure: str | None = None
        self.refused = 0
        self._servers = servers
        self._number = number
        self._stopped = stop

    def run(self) -> None:
        tries, at = 0, 0
        with httpx2.Client(timeout=5.0) as client:
            while not self._stopped.is_set() and self.failure is None:
                tries += 1
                key, value = f"w{self._number}-{tries % KEY_COUNT}", b"%d" % tries
                try:
                    answer = client.put(f"{self._servers[at].url}{KEYS}/{key}", content=value)
                    written = parse_timestamp(answer.json()["timestamp"])
                except (httpx2.HTTPError, KeyError, ValueError):
                    self.refused += 1
                    at = 1 - at  # it does not lead, or was killed
                    time.sleep(0.02)
                    continue
                before = self.answered.setdefault(key, [])
                if before and written <= before[-1][0]:
                    self.failure = f"{key} at {written} came behind one at {before[-1][0]}"
                before.append((written, value))


class Transfers:
    """Two servers, of which the first is the oracle of the second."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        port = free_port()
        self._moments = [folder / "moment_of_first", folder / "moment_of_second"]
        dying = [(sys.executable, "-m", "tests.system.dying_server")] * 2
        commands = [
            (*command, str(moment), "serve")
            for command, moment in zip(dying, self._moments, strict=True)
        ]
        first = ServerProcess(folder / "first", "--rpc-port", str(port), command=commands[0])
        token = folder / "first" / "join.token"
        oracle = ("--oracle", f"127.0.0.1:{port}", "--oracle-token", str(token))
        self.servers = [stack.enter_context(first)]
        second = ServerProcess(folder / "second", *oracle, command=commands[1])
        self.servers.append(stack.enter_context(second))
        self.servers[0].sql("CREATE KEYSPACE ks")
        self._numbers = count(1)
        self.replicate()

    def leader(self) -> int | None:
        """Which server leads, once the other follows."""
        roles = [_role(server) for server in self.servers]
        assert roles.count("main") <= 1 or None in roles, roles
        return roles.index("main") if set(roles) == {"main", "replica"} else None

    def replicate(self) -> None:
        """From the leader into the other, where no replication does that is not over: one that is
        ending still has its place there."""
        leads = self.leader() or 0
        leader, other = self.servers[leads], self.servers[1 - leads]
        shown = leader.rows("SHOW REPLICATIONS")
        if all(row[4] in ("failed", "canceled", "succeeded") for row in shown):
            number = next(self._numbers)
            leader.sql("ALTER KEYSPACE ks SPLIT AT 'w1'")
            leader.sql(
                f"CREATE REPLICATION r{number} FOR KEYSPACE ks "
                f"INTO 'tailrace://127.0.0.1:{other.port}/ks'"
                f"{' WITH (workers = 2)' if number % 2 else ''}"
            )

    def caught_up(self, follower: ServerProcess, upto: Timestamp) -> None:
        """A replication that began before the last transfer may fail while it is waited for."""

        def reached() -> bool:
            self.replicate()
            return _role(follower) == "replica" and _resolved(follower) >= upto

        _wait(reached, "the follower does not catch up")

    def settled(self) -> int:
        """Which server leads, when it is decided."""
        found: list[int] = []

        def decided() -> bool:
            leads = self.leader()
            found.append(-1 if leads is None else leads)
            return leads is not None

        _wait(decided, "no server leads, or nobody follows")
        return found[-1]

    def transfer(self, *, kill: int | None = None, after: float = 0.0) -> bool:
        """Whether the keyspace was handed over. Server `kill` dies so many seconds after the leader
        has begun to drain, and comes back."""
        leads = self.settled()
        leader, answers = self.servers[leads], list[str]()
        asking = self._asking(leads, answers)
        if kill is not None:
            while asking.is_alive() and _role(leader) == "main":
                pass
            time.sleep(after)
            victim = self.servers[kill]
            port = victim.port
            victim.kill()
            victim.start(port=port)
        asking.join()
        handed_over = self.settled() != leads
        assert handed_over or kill is not None, answers
        return handed_over

    def transfer_through(self, step: str, when: str) -> bool:
        """The same; who takes that step dies before or behind it. For a leader to reclaim what it
        has drained, the follower dies before it takes over, and is away until then: so it is not
        the one that keeps the placement."""
        if step == "Reclaim" and self.settled() != ORACLE:
            assert self.transfer()
        leads = self.settled()
        dying = leads if step in LEADERS else 1 - leads
        self._moments[dying].write_text(f"{step} {when}")
        victims = [dying]
        if step == "Reclaim":
            self._moments[1 - leads].write_text("TakeOver before")
            victims = [1 - leads, leads]
        answers: list[str] = []
        asking = self._asking(leads, answers)
        _wait(
            lambda: not any(self.servers[victim].alive for victim in victims),
            f"no server has died {when} {step}",
        )
        for victim in victims:
            server = self.servers[victim]
            port = server.port
            server.kill()
            server.start(port=port)
        asking.join()
        handed_over = self.settled() != leads
        assert handed_over is HANDED_OVER.get((step, when), handed_over), (step, when, answers)
        return handed_over

    def _asking(self, leads: int, answers: list[str]) -> Thread:
        """A thread that asks the leader for a transfer."""
        leader, other = self.servers[leads], self.servers[1 - leads]
        self.caught_up(other, Timestamp(1))
        text = transfer_statement(f"tailrace://127.0.0.1:{other.port}/ks")

        def ask() -> None:
            try:
                with httpx2.Client(timeout=PATIENCE_SECONDS) as client:
                    answers.append(client.post(f"{leader.url}/v1/sql", json={"sql": text}).text)
            except httpx2.HTTPError as error:
                answers.append(repr(error))

        asking = Thread(target=ask)
        asking.start()
        return asking

    def check(self, writers: list[Writer]) -> int:
        """How many puts were answered; each of the last is in both stores."""
        leads = self.settled()
        leader, other = self.servers[leads], self.servers[1 - leads]
        newest = max(puts[-1][0] for writer in writers for puts in writer.answered.values())
        self.caught_up(other, newest)
        for writer in writers:
            assert writer.failure is None, writer.failure
            for key, puts in writer.answered.items():
                for at, value in puts[-CHECKED:]:
                    for server in (leader, other):
                        asked = {"at": format_timestamp(at)}
                        found = server.client.get(f"{server.url}{KEYS}/{key}", params=asked)
                        assert found.content == value, (key, at, value, found.text)
        return sum(len(puts) for writer in writers for puts in writer.answered.values())


def transfer_statement(uri: str) -> str:
    """That of docs/raw.md, for another keyspace."""
    (found,) = re.findall(r"^ALTER KEYSPACE sessions TRANSFER TO '.*';$", DOCUMENT, flags=re.M)
    return re.sub("'.*'", f"'{uri}'", str(found)).replace("sessions", "ks")


def _role(server: ServerProcess) -> str | None:
    """What it does with the keyspace; None where it has none."""
    return next((str(row[4]) for row in server.rows("SHOW KEYSPACES")), None)


def _resolved(server: ServerProcess) -> Timestamp:
    text = server.rows("SHOW KEYSPACES")[0][5]
    return Timestamp(0) if text is None else parse_timestamp(str(text))


def _wait(done: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def transfer_at_moments(
    folder: Path, *, moments: int, seed: int, say: Callable[[str], object] = print
) -> None:
    """Kills servers at times. Raises AssertionError with what was lost."""
    random = Random(seed)
    with _written(folder, say) as transfers:
        for moment in range(1, moments + 1):
            kill, after = random.randrange(2), random.choice((0.0, 0.02, 0.05, 0.1, 0.2))
            handed = transfers.transfer(kill=kill, after=after)
            say(f"moment {moment}: server {kill} killed after {after} s; {_ended(handed)}")
            time.sleep(0.5)


def transfer_at_steps(
    folder: Path, steps: Sequence[tuple[str, str]], *, say: Callable[[str], object] = print
) -> None:
    """Kills servers at steps. Raises AssertionError with what was lost."""
    with _written(folder, say) as transfers:
        for step, when in steps:
            handed = transfers.transfer_through(step, when)
            say(f"killed {when} {step}; {_ended(handed)}")
            time.sleep(0.5)


def _ended(handed: bool) -> str:
    return "handed over" if handed else "kept"


@contextmanager
def _written(folder: Path, say: Callable[[str], object]) -> Iterator[Transfers]:
    """Two servers under load, which have handed the keyspace over once. Behind the block, nothing
    that was answered is lost."""
    with ExitStack() as stack:
        transfers = Transfers(folder, stack)
        stop = Event()
        writers = [Writer(transfers.servers, number, stop) for number in range(2)]
        for writer in writers:
            writer.start()
        try:
            time.sleep(0.5)
            assert transfers.transfer()
            yield transfers
        finally:
            stop.set()
            for writer in writers:
                writer.join()
        say(f"{transfers.check(writers)} puts, {sum(each.refused for each in writers)} refused")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moments", type=int, default=12)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", action="store_true", help="at each step, and not at times")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        if arguments.steps:
            transfer_at_steps(Path(scratch), STEPS)
            return
        transfer_at_moments(Path(scratch), moments=arguments.moments, seed=arguments.seed)


if __name__ == "__main__":
    main()
