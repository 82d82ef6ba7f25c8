"""Messages of clients: frames taken apart into frozen values.

A frame is a kind (one byte), a length that counts itself (four bytes) and a body; the first ones of
a connection have no kind. Everything is big-endian, and text is UTF-8 that ends in a zero byte.

    51 00 00 00 0d  "SELECT 1" 00        Query("SELECT 1")
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from struct import Struct as Form
from struct import calcsize, unpack_from
from struct import error as struct_error

from msgspec import Struct

from ...catalog.values.errors import SQLError

_INT2 = Form("!h")
_INT4 = Form("!i")

REPEATED_MAX = 1024
REPEATED_BYTES_MAX = 64
"""Messages that come again and again, byte for byte, are taken apart once: those that name a
portal or a statement and say nothing else. So many are remembered, of all connections."""


class ProtocolViolation(SQLError):
    """The stream itself is not what the protocol says: the connection cannot go on."""

    def __init__(self, message: str, *, detail: str | None = None) -> None:
        super().__init__("08P01", message, detail=detail)


# The first messages of a connection


class Startup(Struct, frozen=True):
    minor: int
    parameters: dict[str, str]


class EncryptionRequest(Struct, frozen=True):
    """SSLRequest, or GSSENCRequest where `gss`."""

    gss: bool


class CancelRequest(Struct, frozen=True):
    process_id: int
    secret: int


# Messages with a kind


class Password(Struct, frozen=True):
    """Any answer to an authentication request: what it means depends on the request."""

    body: bytes


class Query(Struct, frozen=True):
    text: str


class Parse(Struct, frozen=True):
    name: str
    text: str
    oids: tuple[int, ...]


class Bind(Struct, frozen=True):
    """Formats are 0 for text and 1 for binary: none, one for all, or one for each."""

    portal: str
    statement: str
    parameter_formats: tuple[int, ...]
    parameters: tuple[bytes | None, ...]
    result_formats: tuple[int, ...]


class Target(Enum):
    STATEMENT = "S"
    PORTAL = "P"


class Describe(Struct, frozen=True):
    target: Target
    name: str


class Execute(Struct, frozen=True):
    """`row_limit` is 0 for all rows."""

    portal: str
    row_limit: int


class Close(Struct, frozen=True):
    target: Target
    name: str


class Sync(Struct, frozen=True):
    pass


class Flush(Struct, frozen=True):
    pass


class Terminate(Struct, frozen=True):
    pass


class CopyData(Struct, frozen=True):
    data: bytes


class CopyDone(Struct, frozen=True):
    pass


class CopyFail(Struct, frozen=True):
    message: str


class Malformed(Struct, frozen=True):
    """A frame whose body is not what its kind says. `kind` is the message it was to be."""

    kind: type[object]
    error: SQLError


First = Startup | EncryptionRequest | CancelRequest
Message = (
    Password
    | Query
    | Parse
    | Bind
    | Describe
    | Execute
    | Close
    | Sync
    | Flush
    | Terminate
    | CopyData
    | CopyDone
    | CopyFail
    | Malformed
)

PROTOCOL_MAJOR = 3
_CANCEL, _SSL, _GSS = 80877102, 80877103, 80877104


class _Body:
    """Reads a body from left to right. Every method raises SQLError on a body that is too short."""

    __slots__ = ("_at", "_bytes")

    def __init__(self, body: bytes, at: int = 0) -> None:
        self._bytes = body
        self._at = at

    def text(self) -> str:
        end = self._bytes.find(b"\0", self._at)
        if end < 0:
            raise SQLError("08P01", "invalid string in message")
        raw = self._bytes[self._at : end]
        self._at = end + 1
        return decode_text(raw)

    def byte(self) -> bytes:
        return self.raw(1)

    def raw(self, length: int) -> bytes:
        start, self._at = self._at, self._at + length
        if self._at > len(self._bytes):
            raise SQLError("08P01", "insufficient data left in message")
        return self._bytes[start : self._at]

    def number(self, form: Form) -> int:
        try:
            value: int = form.unpack_from(self._bytes, self._at)[0]
        except struct_error:
            raise SQLError("08P01", "insufficient data left in message") from None
        self._at += form.size
        return value

    def numbers(self, code: str) -> tuple[int, ...]:
        """A count of two bytes, unsigned, and as many numbers of the format `code`."""
        count = self.number(_INT2) & 0xFFFF
        if not count:
            return ()
        form = f"!{count}{code}"
        try:
            found = unpack_from(form, self._bytes, self._at)
        except struct_error:
            raise SQLError("08P01", "insufficient data left in message") from None
        self._at += calcsize(form)
        return found

    def values(self) -> tuple[bytes | None, ...]:
        """A count of two bytes, unsigned, and as many values behind their lengths: -1 for None."""
        found: list[bytes | None] = []
        count = self.number(_INT2) & 0xFFFF
        whole, at = self._bytes, self._at
        end = len(whole)
        for _ in range(count):
            if at + 4 > end:
                raise SQLError("08P01", "insufficient data left in message")
            (length,) = _INT4.unpack_from(whole, at)
            if length < -1:
                raise SQLError("08P01", f"invalid length of a parameter: {length}")
            at += 4
            found.append(None if length == -1 else whole[at : at + length])
            at += max(length, 0)
        if at > end:
            raise SQLError("08P01", "insufficient data left in message")
        self._at = at
        return tuple(found)

    def end(self) -> None:
        if self._at != len(self._bytes):
            raise SQLError("08P01", "invalid message format")


def decode_text(raw: bytes) -> str:
    """UTF-8 as text. Raises SQLError 22021."""
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        shown = " ".join(f"0x{byte:02x}" for byte in raw[error.start : error.start + 4])
        message = f'invalid byte sequence for encoding "UTF8": {shown}'
        raise SQLError("22021", message) from None


def parse_first(body: bytes) -> First:
    """A message without a kind. Raises ProtocolViolation."""
    reader = _Body(body)
    try:
        code = reader.number(_INT4)
        if code in (_SSL, _GSS):
            reader.end()
            return EncryptionRequest(code == _GSS)
        if code == _CANCEL:
            request = CancelRequest(reader.number(_INT4), reader.number(_INT4))
            reader.end()
            return request
        if code >> 16 != PROTOCOL_MAJOR:
            raise SQLError(
                "0A000",
                f"unsupported frontend protocol {code >> 16}.{code & 0xFFFF}: server supports 3.0",
            )
        parameters: dict[str, str] = {}
        while (name := reader.text()) != "":
            parameters[name] = reader.text()
        reader.end()
    except SQLError as error:
        violation = ProtocolViolation(error.message)
        violation.sqlstate = error.sqlstate
        raise violation from None
    return Startup(code & 0xFFFF, parameters)


def parse_message(kind: int, body: bytes) -> Message:
    """A message by its kind. A body that does not fit makes a Malformed."""
    try:
        if kind in _REPEATED and len(body) <= REPEATED_BYTES_MAX:
            return _repeated(kind, body)
        return _parsed(kind, body)
    except SQLError as error:
        return Malformed(MESSAGE_KINDS[kind], error)


def _parsed(kind: int, body: bytes) -> Message:
    """Raises SQLError on a body that does not fit."""
    parser = PARSERS.get(kind)
    assert parser is not None, kind
    reader = _Body(body)
    message = parser(reader)
    reader.end()
    return message


_repeated = lru_cache(maxsize=REPEATED_MAX)(_parsed)
_REPEATED = frozenset(b"DECSH")


def _bind(body: _Body) -> Bind:
    portal, statement = body.text(), body.text()
    formats, parameters = body.numbers("h"), body.values()
    return Bind(portal, statement, formats, parameters, body.numbers("h"))


def bind_again(body: bytes, at: int, before: Bind) -> Bind:
    """The Bind of a frame's body that names, up to `at`, what the one before does. Raises SQLError
    on a body that does not fit."""
    reader = _Body(body, at)
    formats, parameters = reader.numbers("h"), reader.values()
    message = Bind(before.portal, before.statement, formats, parameters, reader.numbers("h"))
    reader.end()
    return message


def _target(body: _Body) -> Target:
    written = body.byte()
    try:
        return Target(written.decode("latin-1"))
    except ValueError:
        raise SQLError("08P01", f"invalid subtype {written!r} of a message") from None


def _rest(body: _Body) -> bytes:
    return body.raw(len(body._bytes) - body._at)


PARSERS: dict[int, Callable[[_Body], Message]] = {
    ord("Q"): lambda body: Query(body.text()),
    ord("P"): lambda body: Parse(body.text(), body.text(), body.numbers("I")),
    ord("B"): _bind,
    ord("D"): lambda body: Describe(_target(body), body.text()),
    ord("E"): lambda body: Execute(body.text(), body.number(_INT4)),
    ord("C"): lambda body: Close(_target(body), body.text()),
    ord("S"): lambda body: Sync(),
    ord("H"): lambda body: Flush(),
    ord("X"): lambda body: Terminate(),
    ord("d"): lambda body: CopyData(_rest(body)),
    ord("c"): lambda body: CopyDone(),
    ord("f"): lambda body: CopyFail(body.text()),
    ord("p"): lambda body: Password(_rest(body)),
}
MESSAGE_KINDS: dict[int, type[object]] = {
    ord("Q"): Query,
    ord("P"): Parse,
    ord("B"): Bind,
    ord("D"): Describe,
    ord("E"): Execute,
    ord("C"): Close,
    ord("S"): Sync,
    ord("H"): Flush,
    ord("X"): Terminate,
    ord("d"): CopyData,
    ord("c"): CopyDone,
    ord("f"): CopyFail,
    ord("p"): Password,
}
