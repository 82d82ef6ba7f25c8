"""A fuzzer of the wire protocol: good conversations, damaged at places that a seed chooses.

    python -m tests.api.pgwire.fuzz --seed 1 --messages 100000

Beside the damaged connections one good connection goes on working, and must never notice. The
server may answer what it likes, or hang up; it must not fail, stall, or grow.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
from random import Random
from struct import pack

from tests.harness.pg_door import PgDoor, WireClient, pg_door

MESSAGES_A_CONNECTION = 12
CHECK_EVERY = 50
"""Damaged connections between two looks at the good one."""

TEXTS = (
    "SELECT 1", "SELECT id, note FROM t WHERE id = $1", "INSERT INTO t VALUES ($1, $2)", "BEGIN",
    "COMMIT", "ROLLBACK", "SELECT count(*) FROM t", "COPY t FROM STDIN", "COPY t TO STDOUT",
    "COPY t FROM STDIN (FORMAT csv)", "COPY t FROM STDIN (FORMAT binary)", "SHOW TABLES",
    "DELETE FROM t", "", ";", "SELECT '", "PREPARE p AS SELECT $1", "EXECUTE p (1)",
    "SELECT $1::date",     "SET application_name = 'x'", "SAVEPOINT s",
    "INSERT INTO t VALUES (1, 'a'); SELECT 1; SELECT 1/0",
)  # fmt: skip
VALUES = (b"", b"1", b"x", b"\0\0\0\0\0\0\0\1", b"\xff\xfe", b"2020-01-01", b"9" * 400)
COPIED = (
    b"1\ta\n",
    b"1,a\n",
    b'1,"a\n',
    b"PGCOPY\n\xff\r\n\0" + bytes(8),
    b"\\.\n",
    b"\xff\n",
    b"x",
)


def frame(kind: bytes, body: bytes) -> bytes:
    return kind + pack("!I", len(body) + 4) + body


class Fuzzer:
    """Makes messages from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def message(self) -> bytes:
        """A message as a driver would send it."""
        pick = self.random.choice
        name = pick(("", "s", "p")).encode() + b"\0"
        match pick("QPBDEECSSHdcfpX" if self.random.random() < 0.2 else "QPBDEEC SHdcf"):
            case "Q":
                return frame(b"Q", pick(TEXTS).encode() + b"\0")
            case "P":
                oids = [pick((0, 20, 25, 1082, 424242)) for _ in range(self.random.randrange(3))]
                head = name + pick(TEXTS).encode() + b"\0"
                return frame(b"P", head + pack(f"!H{len(oids)}I", len(oids), *oids))
            case "B":
                return frame(b"B", self._bind(name))
            case "D":
                return frame(b"D", pick((b"S", b"P", b"x")) + name)
            case "E":
                return frame(b"E", name + pack("!i", pick((0, 1, -1, 2**31 - 1))))
            case "C":
                return frame(b"C", pick((b"S", b"P")) + name)
            case "d":
                return frame(b"d", pick(COPIED))
            case "f":
                return frame(b"f", b"no\0")
            case "p":
                return frame(b"p", b"secret\0")
            case kind:
                return frame(kind.replace(" ", "S").encode(), b"")

    def _bind(self, name: bytes) -> bytes:
        pick = self.random.choice
        values = [pick((None, *VALUES)) for _ in range(self.random.randrange(4))]
        formats = [pick((0, 1, 1, 7)) for _ in range(pick((0, 0, 1, len(values))))]
        parts = [name, name, pack(f"!H{len(formats)}h", len(formats), *formats)]
        parts.append(pack("!H", len(values)))
        for value in values:
            parts.append(pack("!i", -1 if value is None else len(value)) + (value or b""))
        return b"".join(parts) + pack("!Hh", 1, pick((0, 1)))

    def damaged(self, message: bytes) -> bytes:
        """The message, or what is left of it."""
        data = bytearray(message)
        at = self.random.randrange(len(data))
        match self.random.randrange(8):
            case 0:
                data[at] = self.random.randrange(256)
            case 1:
                data[at] ^= 1 << self.random.randrange(8)
            case 2:
                del data[at:]
            case 3:
                data[1:5] = pack("!I", self.random.choice((0, 3, 4, 5, 2**31 - 1, 2**32 - 1)))
            case 4:
                data[at:at] = self.random.randbytes(self.random.randrange(1, 9))
            case _:
                pass  # as it is: damage shows best in good company
        return bytes(data)

    def startup(self) -> bytes:
        """A beginning: mostly good, so that what follows is read."""
        body = b"user\0root\0database\0defaultdb\0\0"
        good = pack("!II", len(body) + 8, 196608) + body
        choice = self.random.random()
        if choice < 0.9:
            return good
        if choice < 0.95:
            return self.damaged(good)
        return self.random.choice(
            (pack("!II", 8, 80877103), pack("!II", 8, 80877104), pack("!IIii", 16, 80877102, 1, 1),
             b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01", pack("!II", 8, 131072))
        )  # fmt: skip


async def fuzz(door: PgDoor, seed: int, messages: int) -> list[int]:
    """Sends so many messages. Returns the process's memory in KiB, at each look at it."""
    fuzzer = Fuzzer(seed)
    good = await door.client()
    await good.query("CREATE TABLE t (id INT8 PRIMARY KEY, note STRING)")
    await good.query("CREATE TABLE mine (id INT8 PRIMARY KEY)")
    memory: list[int] = []
    for number in range(-(-messages // MESSAGES_A_CONNECTION)):
        await _one(door, fuzzer)
        if number % CHECK_EVERY == 0:
            await good.query(f"INSERT INTO mine VALUES ({number})")
            count = number // CHECK_EVERY + 1
            assert await good.query("SELECT count(*) FROM mine") == [(str(count),)], seed
            memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    await _settled(door)
    return memory


async def _one(door: PgDoor, fuzzer: Fuzzer) -> None:
    """One damaged connection."""
    client: WireClient = await door.connect()
    client.raw(fuzzer.startup())
    for _ in range(MESSAGES_A_CONNECTION):
        client.raw(fuzzer.damaged(fuzzer.message()))
    if fuzzer.random.random() < 0.5:
        client.raw(frame(b"S", b"") + frame(b"X", b""))
        await asyncio.sleep(0)
    if fuzzer.random.random() < 0.3:
        client.writer.transport.abort()
    else:
        client.writer.close()
    door.forget(client)


async def _settled(door: PgDoor) -> None:
    """Waits until only the good connection is left."""
    async with asyncio.timeout(60):
        while door.server.connection_count > 1:
            await asyncio.sleep(0.01)


async def run(seed: int, messages: int) -> list[int]:
    async with pg_door() as door:
        faults: list[object] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: faults.append(context))
        memory = await fuzz(door, seed, messages)
        assert not faults, (seed, faults[:3])
        return memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--messages", type=int, default=100_000)
    arguments = parser.parse_args()
    memory = asyncio.run(run(arguments.seed, arguments.messages))
    middle, last = memory[len(memory) // 2], memory[-1]
    print(
        f"{arguments.messages} messages: memory {middle // 1024} MiB half way, {last // 1024} MiB"
    )
    assert last < middle * 1.2 + 50 * 1024, "memory has grown"


if __name__ == "__main__":
    main()
