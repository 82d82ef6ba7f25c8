"""The Postgres door: messages of the protocol as drivers send them, and damaged."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum
from random import Random
from struct import pack

from .besieged import PATIENCE_SECONDS, Besieged

MESSAGES_A_CONNECTION = 12


class State(Enum):
    """How far a connection has come when its messages begin."""

    UNKNOWN = "unknown"  # nothing was said yet
    ASKED = "asked"  # it has said who it is, and is asked to prove it
    LET_IN = "let_in"


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
        if not message:
            return message
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

    def proof(self) -> bytes:
        """What one says who is asked for a password."""
        first = b"n,,n=,r=" + self.random.randbytes(9).hex().encode()
        final = b"c=biws,r=abc,p=" + self.random.randbytes(32).hex().encode()
        sent = self.random.choice(
            (
                b"SCRAM-SHA-256\0" + pack("!i", len(first)) + first,
                b"SCRAM-SHA-256-PLUS\0" + pack("!i", len(first)) + first,
                b"SCRAM-SHA-1\0" + pack("!i", -1),
                final,
                b"secret\0",
            )
        )
        return frame(b"p", sent)

    def startup(self, user: bytes = b"root") -> bytes:
        """A beginning: mostly good, so that what follows is read."""
        body = b"user\0" + user + b"\0database\0defaultdb\0\0"
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


async def fuzz(besieged: Besieged, state: State, fuzzer: Fuzzer) -> None:
    """One connection with some messages, damaged or not."""
    reader, writer = await asyncio.open_connection("127.0.0.1", besieged.doors.postgres)
    pick = fuzzer.random
    if state is State.UNKNOWN:
        for _ in range(pick.randrange(1, 4)):
            writer.write(fuzzer.damaged(fuzzer.startup()))
    else:
        writer.write(fuzzer.startup(pick.choice((b"root", b"ada", b"nobody"))))
    make = fuzzer.proof if state is State.ASKED else fuzzer.message
    writer.write(b"".join(fuzzer.damaged(make()) for _ in range(MESSAGES_A_CONNECTION)))
    if pick.random() < 0.3:
        writer.transport.abort()
        return
    with suppress(OSError):  # the server may hang up at any moment
        writer.write_eof()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await reader.read()
    writer.close()
